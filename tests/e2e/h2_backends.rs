//! HTTP/2 to backends: what goes on from clients of either protocol, and what comes back.
//!
//! What stands behind is another evenkeel, which speaks HTTP/2 as a server and has a fake backend behind itself.

use std::time::Duration;

use evenkeel::config::model::{Http2, Protocol, UpstreamProtocol};
use fake_backend::{Running, pattern};

use super::support::h2::H2Client;
use super::support::{Keel, config, eventually, fakes, recording};

/// Two of them, one behind the other, with HTTP/2 between; both speak it with clients too.
struct Chain {
    front: Keel,
    inner: Keel,
}

fn chain(backends: &[&Running]) -> Chain {
    let inner = Keel::with(backends, |config| config.listeners[0].http2 = Some(Http2::default()));
    let mut outer = config(Protocol::Http, &[inner.address()]);
    outer.workers = 1;
    outer.listeners[0].http2 = Some(Http2::default());
    outer.targets[0].upstream = UpstreamProtocol::H2;
    Chain { front: Keel::start(&outer), inner }
}

impl Chain {
    /// Connections that the inner one has.
    fn connections(&self) -> usize {
        self.inner.server.connections()
    }

    /// Requests that are with a backend of one of them.
    fn in_flight(&self, keel: &Keel) -> u32 {
        keel.server.targets()[0].backends[0].in_flight()
    }
}

#[test]
fn a_get_goes_through_and_comes_back() {
    let backend = recording();
    let chain = chain(&[&backend]);
    let mut client = chain.front.client();
    for _ in 0..3 {
        let answer = client.get("/hello?x=y");
        assert_eq!((answer.status, answer.text().as_str()), (200, "Hello from fake-1"));
    }
    let requests = backend.take_requests();
    assert_eq!(requests.len(), 3);
    let head = requests[0].head_text();
    assert!(head.starts_with("GET /hello?x=y HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains("via: 1.1 evenkeel"), "{head}");
    assert_eq!(chain.connections(), 1);
}

#[test]
fn many_requests_share_a_connection_and_each_has_its_own_answer() {
    let backends = fakes(2);
    let chain = chain(&[&backends[0], &backends[1]]);
    let client = H2Client::connect(chain.front.address());
    let calls: Vec<_> = (0..100)
        .map(|number| {
            let request = H2Client::request("GET", &format!("/bytes/{}", number * 1000));
            client.begin(request.body(()).unwrap(), true)
        })
        .collect();
    for (number, call) in calls.into_iter().enumerate() {
        let answer = client.finish(call.answer).unwrap();
        assert_eq!((answer.status, answer.body), (200, pattern(number * 1000)), "{number}");
    }
    assert_eq!((backends[0].requests(), backends[1].requests()), (50, 50));
    assert_eq!(chain.connections(), 1);
}

#[test]
fn bodies_of_known_and_of_unknown_length_go_both_ways_whole_from_clients_of_both_protocols() {
    let backend = recording();
    let chain = chain(&[&backend]);
    let client = H2Client::connect(chain.front.address());
    let body = pattern(3_000_000);
    for length in [Some(body.len()), None] {
        let mut request = H2Client::request("POST", "/echo");
        if let Some(length) = length {
            request = request.header("content-length", length);
        }
        let mut call = client.begin(request.body(()).unwrap(), false);
        let (client, body) = (&client, &body);
        let answer = std::thread::scope(|scope| {
            let answer = scope.spawn(move || client.finish(call.answer));
            client.send(&mut call.body, body, true);
            answer.join().unwrap().unwrap()
        });
        assert!(answer.body == *body, "{length:?}: {} bytes", answer.body.len());
    }
    let mut client = chain.front.client();
    let answer = client.post("/echo", &body[..200_000]);
    assert!(answer.status == 200 && answer.body == body[..200_000]);
    let heads: Vec<String> =
        backend.take_requests().iter().map(|request| request.head_text().to_lowercase()).collect();
    assert!(heads[0].contains("content-length: 3000000"), "{}", heads[0]);
    assert!(heads[1].contains("transfer-encoding: chunked"), "{}", heads[1]);
}

#[test]
fn a_client_that_leaves_ends_its_request_at_the_backend_and_no_other() {
    let backend = recording();
    let chain = chain(&[&backend]);
    let mut other = chain.front.client();
    assert_eq!(other.get("/").status, 200);
    let mut client = chain.front.client();
    client.send("GET /delay/60000 HTTP/1.1\r\nHost: a.example\r\n\r\n");
    eventually("front: 1 in flight", || chain.in_flight(&chain.front) == 1);
    drop(client);
    eventually("front: 0 in flight", || chain.in_flight(&chain.front) == 0);
    eventually("inner: 0 in flight", || chain.in_flight(&chain.inner) == 0);
    assert_eq!(other.get("/").status, 200);
    assert_eq!(chain.connections(), 1);
}

#[test]
fn a_backend_that_is_not_there_is_a_503_with_its_cause() {
    let gone = {
        let backends = fakes(1);
        backends[0].addr()
    };
    let mut config = config(Protocol::Http, &[gone]);
    config.targets[0].upstream = UpstreamProtocol::H2;
    config.targets[0].timeouts.connect = Duration::from_secs(1);
    let front = Keel::start(&config);
    let answer = front.client().get("/");
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(answer.text().contains("cause: connect_failed"), "{}", answer.text());
}
