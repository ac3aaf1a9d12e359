//! HTTP/2 to backends: what goes on from clients of either protocol, and what comes back.
//!
//! What stands behind is another evenkeel, which speaks HTTP/2 as a server and has a fake backend behind itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use evenkeel::config::model::resilience::Hedging;
use evenkeel::config::model::tls::UpstreamTls;
use evenkeel::config::model::{Config, Http2, Protocol, Sticky, UpstreamProtocol};
use evenkeel::net::now;
use fake_backend::{Behaviour, Ending, Fake, Fault, Running, pattern};
use rustls::pki_types::ServerName;

use super::mirror_lab;
use super::support::h2::H2Client;
use super::support::port::Reserved;
use super::support::tls::Secure;
use super::support::{Client, Keel, config, eventually, fakes, recording};

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
    client.ask_a_hundred();
    assert_eq!((backends[0].requests(), backends[1].requests()), (50, 50));
    assert_eq!(chain.connections(), 1);
}

#[test]
fn bodies_of_known_and_of_unknown_length_go_both_ways_whole_from_clients_of_both_protocols() {
    let backend = recording();
    let chain = chain(&[&backend]);
    let client = H2Client::connect(chain.front.address());
    let body = pattern(3_000_000);
    client.echo(&body, true);
    client.echo(&body, false);
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
    let reserved = Reserved::new();
    let gone = SocketAddr::from(([127, 0, 0, 1], reserved.number()));
    let mut config = config(Protocol::Http, &[gone]);
    config.targets[0].upstream = UpstreamProtocol::H2;
    config.targets[0].timeouts.connect = Duration::from_secs(1);
    let front = Keel::start(&config);
    let answer = front.client().get("/");
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(answer.text().contains("cause: connect_failed"), "{}", answer.text());
}

/// In front of these, with HTTP/2 towards them.
fn front(backends: &[SocketAddr]) -> Config {
    let mut outer = config(Protocol::Http, backends);
    outer.workers = 1;
    outer.targets[0].upstream = UpstreamProtocol::H2;
    outer
}

/// TLS to whoever it is.
fn any_tls() -> Option<Arc<UpstreamTls>> {
    let name = ServerName::try_from("localhost").unwrap();
    Some(Arc::new(UpstreamTls { authorities: None, name, identity: None, insecure: true }))
}

#[test]
fn with_tls_both_sides_agree_on_http_2_or_there_is_no_request() {
    let backend = recording();
    let inner = Secure::with(Protocol::Http, &[&backend], "", |config| {
        config.listeners[0].http2 = Some(Http2::default());
    });
    let mut outer = front(&[inner.keel.address()]);
    outer.targets[0].backends[0].tls = any_tls();
    let keel = Keel::start(&outer);
    assert_eq!(keel.client().get("/").text(), "Hello from fake-1");
    let head = backend.take_requests().remove(0).head_text().to_lowercase();
    assert!(head.contains("2.0 evenkeel"), "{head}");

    let old = Secure::with(Protocol::Http, &[&backend], "", |config| config.listeners[0].http2 = None);
    let mut outer = front(&[old.keel.address()]);
    outer.targets[0].backends[0].tls = any_tls();
    let answer = Keel::start(&outer).client().get("/");
    assert!(answer.status == 502 && answer.text().contains("cause: upstream_tls"), "{}", answer.text());
}

/// Asks again and again until told to stop; gives how many answers were good, and all others.
fn load(address: SocketAddr, stop: &AtomicBool, done: &AtomicUsize) -> Vec<String> {
    let mut bad = Vec::new();
    let mut client = Client::connect(address);
    while !stop.load(Ordering::Acquire) {
        let answer = client.get("/");
        if answer.status == 200 {
            done.fetch_add(1, Ordering::AcqRel);
        } else {
            bad.push(format!("{} {}", answer.status, answer.text()));
        }
        if answer.header("connection") == Some("close") {
            client = Client::connect(address);
        }
    }
    bad
}

/// Does `work` while eight clients ask, and a hundred of their requests before and after it; no request may fail.
fn under_load(address: SocketAddr, work: impl FnOnce()) {
    let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    let more = |what: &str| {
        let before = done.load(Ordering::Acquire);
        eventually(what, || done.load(Ordering::Acquire) >= before + 100);
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(|| load(address, &stop, &done))).collect();
        more("before");
        work();
        more("afterwards");
        stop.store(true, Ordering::Release);
        for client in clients {
            assert!(client.join().unwrap().is_empty());
        }
    });
}

#[test]
fn reloads_from_one_protocol_to_the_other_lose_no_request() {
    let backend = fakes(1);
    let inner = Keel::with(&[&backend[0]], |config| config.listeners[0].http2 = Some(Http2::default()));
    let mut config = front(&[inner.address()]);
    config.targets[0].resilience.retries = None;
    let keel = Keel::start(&config);
    under_load(keel.address(), || {
        for turn in 0..20 {
            let upstream = [UpstreamProtocol::Http, UpstreamProtocol::H2][turn % 2];
            config.targets[0].upstream = upstream;
            assert!(keel.reload(&config).is_ok());
        }
    });
    eventually("no lease is left", || keel.server.targets()[0].backends[0].in_flight() == 0);
}

#[test]
fn a_backend_that_drains_loses_no_request() {
    let backend = fakes(1);
    let inners: Vec<Keel> = (0..2)
        .map(|_| Keel::with(&[&backend[0]], |config| config.listeners[0].http2 = Some(Http2::default())))
        .collect();
    let addresses: Vec<SocketAddr> = inners.iter().map(Keel::address).collect();
    let keel = Keel::start(&front(&addresses));
    under_load(keel.address(), || inners[0].server.shutdown().drain.cancel());
    for backend in &keel.server.targets()[0].backends {
        eventually("no lease is left", || backend.in_flight() == 0);
    }
}

#[test]
fn streams_wait_for_room_at_their_backend_and_are_counted() {
    let backend = fakes(1);
    let chain = chain(&[&backend[0]]);
    let mut config = front(&[chain.inner.address()]);
    config.targets[0].resilience.max_in_flight = Some(2);
    config.targets[0].timeouts.queue = Duration::from_secs(60);
    let keel = Keel::start(&config);
    let address = keel.address();
    thread::scope(|scope| {
        let asking: Vec<_> =
            (0..6).map(|_| scope.spawn(move || Client::connect(address).get("/delay/500").status)).collect();
        eventually("two at once", || keel.server.targets()[0].backends[0].in_flight() == 2);
        assert!(asking.into_iter().all(|asking| asking.join().unwrap() == 200));
    });
    assert_eq!(backend[0].stats().most, 2);
}

#[test]
fn a_cookie_keeps_its_client_with_one_backend() {
    let backends: Vec<Running> =
        ["one", "two"].map(|name| Fake::http(name).start_in_thread().unwrap()).into();
    let inners: Vec<Keel> = backends
        .iter()
        .map(|backend| Keel::with(&[backend], |config| config.listeners[0].http2 = Some(Http2::default())))
        .collect();
    let addresses: Vec<SocketAddr> = inners.iter().map(Keel::address).collect();
    let mut config = front(&addresses);
    let key = Arc::from(&b"0123456789abcdef"[..]);
    config.targets[0].sticky = Some(Sticky { cookie: "id".into(), key, is_fleeting: false });
    let keel = Keel::start(&config);
    let mut client = keel.client();
    let first = client.get("/");
    let cookie = first.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    for _ in 0..5 {
        let again = client.ask(&format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n"));
        assert_eq!(again.text(), first.text());
    }
}

#[test]
fn trailers_and_heads_before_the_answer_pass_both_hops() {
    let backend = recording();
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
                  3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n";
    let raw = Fault::Raw { bytes: answer.as_bytes().to_vec(), ending: Ending::Serve };
    backend.behave(Behaviour::fault(raw).times(1));
    let chain = chain(&[&backend]);
    let mut client = chain.front.client();
    let request = "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3\r\nabc\r\n0\r\nX-Up: 5\r\n\r\n";
    let answer = client.ask(request);
    assert_eq!((answer.status, answer.text().as_str()), (200, "abc"));
    assert_eq!(answer.trailers.trim_end(), "x-sum: 7");
    let requests = backend.take_requests();
    assert_eq!(String::from_utf8_lossy(&requests[0].trailers), "x-up: 5\r\n");
    assert!(requests[0].head_text().to_lowercase().contains("te: trailers"), "{}", requests[0].head_text());
    let mut client = chain.front.client();
    client.send("POST /count HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    assert_eq!(client.answer().status, 100);
    client.send("abc");
    assert_eq!(client.answer().status, 200);
    client.send("GET /early-hints HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((client.answer().status, client.answer().status), (103, 200));
}

#[test]
fn nobody_logs_in_a_connection_that_is_shared() {
    let backend = recording();
    let chain = chain(&[&backend]);
    let mut client = chain.front.client();
    let answer = client.ask("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: NTLM TlRMTVNTUAAB\r\n\r\n");
    assert!(answer.status == 421 && answer.text().contains("cause: needs_http_1_1"), "{}", answer.text());
    assert!(backend.take_requests().is_empty(), "it went nowhere");
    assert_eq!(chain.front.client().get("/").status, 200);
}

#[test]
fn clients_that_take_nothing_hold_up_no_other_answer() {
    let backend = fakes(1);
    let chain = chain(&[&backend[0]]);
    // Each of them has more than a window's worth to come, and together more than a connection of HTTP/2 begins with.
    let slow: Vec<Client> = (0..60)
        .map(|_| {
            let mut client = chain.front.client();
            client.send("GET /bytes/20000000 HTTP/1.1\r\nHost: a\r\n\r\n");
            client
        })
        .collect();
    eventually("all are being answered", || chain.in_flight(&chain.front) == 60);
    for _ in 0..10 {
        assert_eq!(chain.front.client().get("/bytes/100000").body.len(), 100_000);
    }
    drop(slow);
    eventually("nothing is left", || chain.in_flight(&chain.front) == 0);
}

#[test]
fn copies_go_to_a_shadow_over_http_2_with_their_bodies() {
    let [web, shadow] = ["web", "shadow"].map(|name| Fake::http(name).record().start_in_thread().unwrap());
    let inner = Keel::with(&[&shadow], |config| config.listeners[0].http2 = Some(Http2::default()));
    let config =
        mirror_lab::config(web.addr(), inner.address(), mirror_lab::ALL, "", "upstream_protocol: h2,");
    let keel = Keel::start(&config);
    assert_eq!(keel.client().post("/a", b"one").status, 200);
    assert_eq!(keel.client().get("/b").status, 200);
    // Its chunks pass as they came to the one that answers.
    let chunks = "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\ntw\r\n1\r\no\r\n0\r\nX-Sum: 2\r\n\r\n";
    assert_eq!(keel.client().ask(chunks).status, 200);
    eventually("copies end", || mirror_lab::copies(&keel).ended() == 3);
    let mut copied: Vec<(String, Vec<u8>)> = shadow
        .take_requests()
        .into_iter()
        .map(|request| (request.head_text().lines().next().unwrap_or_default().to_owned(), request.body))
        .collect();
    copied.sort();
    assert_eq!(copied[0], ("GET /b HTTP/1.1".to_owned(), Vec::new()));
    assert_eq!(copied[1], ("POST /a HTTP/1.1".to_owned(), b"one".to_vec()));
    assert_eq!(copied[2], ("POST /c HTTP/1.1".to_owned(), b"two".to_vec()));
    eventually("no lease is left", || {
        keel.server.targets().iter().all(|target| target.backends[0].in_flight() == 0)
    });
}

#[test]
fn a_competitor_of_a_slow_answer_wins_on_a_stream_too() {
    let [slow, quick] = ["slow", "quick"].map(|name| Fake::http(name).start_in_thread().unwrap());
    let inners: Vec<Keel> = [&slow, &quick]
        .map(|backend| Keel::with(&[backend], |config| config.listeners[0].http2 = Some(Http2::default())))
        .into();
    let addresses: Vec<SocketAddr> = inners.iter().map(Keel::address).collect();
    let mut config = front(&addresses);
    config.targets[0].resilience.hedging = Some(Hedging { budget: 100, ..Hedging::default() });
    let keel = Keel::start(&config);
    let mut client = keel.client();
    while keel.server.targets()[0].state.pace.percentile(95, now()).is_none() {
        assert_eq!(client.get("/").status, 200);
    }
    slow.behave(Behaviour::hang());
    for _ in 0..4 {
        assert_eq!(client.get("/").text(), "Hello from quick");
    }
    for backend in &keel.server.targets()[0].backends {
        eventually("no lease is left", || backend.in_flight() == 0);
    }
}
