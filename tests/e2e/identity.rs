//! Connections that carry a client's identity (NTLM, Negotiate): they belong to that client's connection, and to nobody else.

use std::time::Duration;

use evenkeel::config::model::resilience::BreakerConfig;
use evenkeel::config::model::{Balance, Config, Sticky};
use evenkeel::targets::Health;
use fake_backend::{Behaviour, Fake, Fault, Running};

use super::life_lab::{post, probe_quickly, reading, until};
use super::support::{Answer, Client, Keel, PATIENCE, eventually};
use super::tls_backends_lab::{Lab, until_left};

/// One worker, so that whatever is shared is shared.
fn one_worker(config: &mut Config) {
    config.workers = 1;
}

/// A backend that says on which connection a request came.
fn backend(name: &str) -> Running {
    Fake::http(name).record().start_in_thread().unwrap()
}

/// `GET /login`, with this Authorization line if there is one.
fn login(client: &mut Client, authorization: &str) -> Answer {
    let line =
        if authorization.is_empty() { String::new() } else { format!("Authorization: {authorization}\r\n") };
    client.ask(&format!("GET /login HTTP/1.1\r\nHost: test\r\n{line}\r\n"))
}

/// The three legs of NTLM: asked, challenged, proved.
fn log_in(client: &mut Client, name: &str) {
    assert_eq!(login(client, "").status, 401);
    assert_eq!(
        login(client, &format!("NTLM hello-{name}")).header("www-authenticate"),
        Some("NTLM challenge")
    );
    let answer = login(client, &format!("NTLM proof-{name}"));
    assert_eq!((answer.status, answer.text()), (200, format!("hello {name}")));
}

/// The connections on which requests came since this was last asked.
fn connections(backend: &Running) -> Vec<u64> {
    backend.take_requests().iter().map(|request| request.connection).collect()
}

#[test]
fn a_second_client_without_credentials_is_not_taken_for_the_first() {
    let backend = backend("fake-1");
    let keel = Keel::with(&[&backend], one_worker);
    for authorization in ["Negotiate alice", "negotiate alice", "NEGOTIATE  alice"] {
        let (mut alice, mut eve) = (keel.client(), keel.client());
        assert_eq!(login(&mut alice, authorization).status, 200);
        // While alice is there, and when she is gone.
        assert_eq!(login(&mut eve, "").status, 401, "{authorization}");
        drop(alice);
        assert_eq!(login(&mut eve, "").status, 401, "{authorization}");
    }
    let (mut alice, mut eve) = (keel.client(), keel.client());
    log_in(&mut alice, "alice");
    assert_eq!(login(&mut eve, "").status, 401);
    assert_eq!(login(&mut eve, "NTLM proof-alice").status, 401);
}

#[test]
fn one_of_several_credentials_is_enough_to_keep_a_connection_private() {
    let backend = backend("fake-1");
    let keel = Keel::with(&[&backend], one_worker);
    for lines in [
        "Authorization: Basic YTpi\r\nAuthorization: NTLM hello-x\r\n",
        "Authorization: NTLM\r\n",
        "AUTHORIZATION:\tnegotiate\tabc\r\n",
    ] {
        let before = backend.connections();
        for _ in 0..2 {
            // A status that offers nothing.
            assert_eq!(
                keel.client().ask(&format!("GET / HTTP/1.1\r\nHost: test\r\n{lines}\r\n")).status,
                200
            );
        }
        assert_eq!(backend.connections(), before + 2, "{lines:?} was shared");
        eventually("they are closed", || backend.open_connections() == 0);
    }
    for lines in [
        "Authorization: Basic TlRMTSA=\r\n",
        "Authorization: Digest realm=\"a\", nc=1\r\n",
        "X-Authorization: NTLM x\r\n",
    ] {
        let before = backend.connections();
        for _ in 0..2 {
            assert_eq!(
                keel.client().ask(&format!("GET / HTTP/1.1\r\nHost: test\r\n{lines}\r\n")).status,
                200
            );
        }
        assert!(backend.connections() <= before + 1, "{lines:?} was not shared");
    }
}

#[test]
fn three_legs_reach_one_connection_while_others_come_and_go() {
    let backend = backend("fake-1");
    let keel = Keel::with(&[&backend], one_worker);
    let (mut alice, mut bob, mut eve) = (keel.client(), keel.client(), keel.client());
    // Each leg of one between those of the others.
    for leg in ["", "NTLM hello-", "NTLM proof-", "", ""] {
        for (name, client) in [("alice", &mut alice), ("bob", &mut bob)] {
            let name = if leg.is_empty() { "" } else { name };
            login(client, &format!("{leg}{name}"));
        }
        assert_eq!(eve.get("/").status, 200);
    }
    assert_eq!(login(&mut alice, "").text(), "hello alice");
    assert_eq!(login(&mut bob, "").text(), "hello bob");
    assert_eq!(login(&mut eve, "").status, 401);
    // Whatever it asks for, and a body goes along even when it has rested.
    assert_eq!(alice.post("/login", b"body").text(), "hello alice");
    let seen = backend.take_requests();
    let of = |name: &str| {
        let mine = seen
            .iter()
            .filter(|request| request.header("authorization").iter().any(|line| line.contains(name)));
        mine.map(|request| request.connection).collect::<Vec<_>>()
    };
    let (hers, his) = (of("alice"), of("bob"));
    assert!(hers.iter().all(|connection| *connection == hers[0]), "{hers:?}");
    assert!(his.iter().all(|connection| *connection == his[0] && *connection != hers[0]), "{his:?}");
}

#[test]
fn requests_that_come_at_once_go_out_one_after_the_other_on_the_same_connection() {
    let backend = backend("fake-1");
    let keel = Keel::with(&[&backend], one_worker);
    let mut alice = keel.client();
    let leg = |line: &str| format!("GET /login HTTP/1.1\r\nHost: test\r\n{line}\r\n");
    alice.send(
        [
            leg("Authorization: NTLM hello-alice\r\n"),
            leg("Authorization: NTLM proof-alice\r\n"),
            leg(""),
            post("/login", "x"),
        ]
        .concat(),
    );
    let answers: Vec<String> = (0..4).map(|_| alice.answer().text()).collect();
    assert_eq!(answers, ["who are you?", "hello alice", "hello alice", "hello alice"]);
    assert_eq!(connections(&backend), [1; 4]);
}

#[test]
fn the_connection_is_closed_when_its_client_leaves() {
    let backend = backend("fake-1");
    let keel = Keel::with(&[&backend], one_worker);
    let mut alice = keel.client();
    log_in(&mut alice, "alice");
    assert_eq!(backend.open_connections(), 1);
    drop(alice);
    eventually("it is closed", || backend.open_connections() == 0);
    // The backend may see it before it is counted.
    eventually("it is counted", || keel.server.readings().pool.closed_idle == 1);

    // HTTP/1.0, and whoever says that it was the last one.
    for request in ["GET /login HTTP/1.0\r\n", "GET /login HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"] {
        let mut alice = keel.client();
        assert_eq!(
            alice.ask(&format!("{request}Authorization: Negotiate alice\r\n\r\n")).text(),
            "hello alice"
        );
        eventually("it is closed", || backend.open_connections() == 0);
        assert_eq!(login(&mut keel.client(), "").status, 401);
    }
}

#[test]
fn a_backend_that_says_close_is_asked_anew() {
    let backend = backend("fake-1");
    let keel = Keel::with(&[&backend], one_worker);
    let mut alice = keel.client();
    backend.behave(Behaviour::default().closing());
    assert_eq!(login(&mut alice, "Negotiate alice").text(), "hello alice");
    assert_eq!(login(&mut alice, "").status, 401, "the identity went with the connection");
    assert_eq!(connections(&backend), [1, 2]);
}

#[test]
fn a_connection_that_the_backend_has_closed_is_given_up() {
    let backend = backend("fake-1");
    let keel = Keel::with(&[&backend], one_worker);
    let mut alice = keel.client();
    log_in(&mut alice, "alice");
    until_left(&backend);
    eventually("it is noticed", || keel.server.readings().pool.discarded_stale == 1);
    assert_eq!(login(&mut alice, "").status, 401);
    log_in(&mut alice, "alice");
    // Nor does one that dies under a request cost more than the request.
    backend.behave(Behaviour::fault(Fault::CloseMidHead).times(1));
    assert_eq!(login(&mut alice, "").status, 502);
    log_in(&mut alice, "alice");
}

#[test]
fn the_backend_of_the_connection_is_asked_as_long_as_it_may_be() {
    let (first, second) = (backend("fake-1"), backend("fake-2"));
    let keel = Keel::with(&[&first, &second], |config| {
        one_worker(config);
        probe_quickly(config);
    });
    for nth in [0, 1] {
        until(&keel, nth, Health::Up);
    }
    let mut alice = keel.client();
    log_in(&mut alice, "alice");
    // Round robin would send every other one elsewhere.
    for _ in 0..5 {
        assert_eq!(login(&mut alice, "").text(), "hello alice");
    }
    let (hers, other) = if first.requests() > 0 { (&first, &second) } else { (&second, &first) };
    assert_eq!((hers.requests(), other.requests()), (8, 0));
    // Each of its requests is one of the backend's, and none is left when it is over.
    let nth = u32::from(std::ptr::eq(hers, &second));
    eventually("all are over", || reading(&keel, nth).attempts == 8);
    let backends = &keel.server.targets()[0].backends;
    assert!(backends.iter().all(|backend| backend.in_flight() == 0));

    hers.set_healthy(false);
    until(&keel, nth as usize, Health::Down);
    eventually("its connection is closed", || hers.open_connections() == 0);
    assert_eq!(login(&mut alice, "").status, 401);
    assert_eq!(other.requests(), 1);
}

#[test]
fn a_trial_of_its_backend_gives_it_up() {
    let backend = backend("fake-1");
    let keel = Keel::with(&[&backend], |config| {
        one_worker(config);
        let resilience = &mut config.targets[0].resilience;
        (resilience.outlier, resilience.retries) = (None, None);
        resilience.breaker = Some(BreakerConfig {
            failures: 1,
            open: Duration::from_millis(100),
            statuses: vec![500..=500],
            open_is_default: false,
        });
    });
    let mut alice = keel.client();
    log_in(&mut alice, "alice");
    assert_eq!(alice.get("/status/500").status, 500);
    // Its connection has stayed open.
    eventually("it is tried again", || alice.get("/").status == 200);
    assert_eq!(login(&mut alice, "").status, 401);
    assert_eq!(connections(&backend)[..5], [1, 1, 1, 1, 2]);
}

#[test]
fn a_full_backend_is_waited_for_rather_than_left() {
    let (first, second) = (backend("fake-1"), backend("fake-2"));
    let keel = Keel::with(&[&first, &second], |config| {
        one_worker(config);
        config.targets[0].balance = Balance::First.into();
        config.targets[0].resilience.max_in_flight = Some(1);
        config.targets[0].timeouts.queue = PATIENCE;
    });
    let mut alice = keel.client();
    log_in(&mut alice, "alice");
    first.behave(Behaviour::hang().times(1));
    let mut other = keel.client();
    other.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("it is full", || first.requests() == 4);
    alice.send("GET /login HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("she waits", || keel.server.targets()[0].waiting() == 1);
    drop(other);
    assert_eq!(alice.answer().text(), "hello alice");
    assert_eq!(second.requests(), 0);
}

#[test]
fn a_cookie_that_names_another_backend_goes_before_the_connection() {
    let (first, second) = (backend("fake-1"), backend("fake-2"));
    let keel = Keel::with(&[&first, &second], |config| {
        one_worker(config);
        config.targets[0].sticky =
            Some(Sticky { cookie: "keel".into(), key: (*b"key").into(), is_fleeting: false });
    });
    let cookie = |answer: &Answer| {
        answer.header("set-cookie").map(|line| line.split(';').next().unwrap_or_default().to_owned())
    };
    let mut cookies = Vec::new();
    while cookies.len() < 2 {
        let answer = keel.client().get("/");
        let came = (answer.text(), cookie(&answer).unwrap());
        if !cookies.contains(&came) {
            cookies.push(came);
        }
    }
    let mut alice = keel.client();
    let mut ask = |cookie: &str, authorization: &str| {
        alice.ask(&format!("GET /login HTTP/1.1\r\nHost: test\r\nCookie: {cookie}\r\n{authorization}\r\n"))
    };
    let (one, other) = (&cookies[0].1, &cookies[1].1);
    assert_eq!(ask(one, "Authorization: Negotiate alice\r\n").text(), "hello alice");
    assert_eq!(ask(one, "").text(), "hello alice");
    let without = ask("a=b", "");
    assert_eq!(
        (without.text(), cookie(&without)),
        ("hello alice".to_owned(), Some(one.clone())),
        "it is told of its backend"
    );
    assert_eq!(ask(other, "").status, 401);
    assert_eq!(ask(one, "").status, 401, "it was given up");
}

#[test]
fn an_offer_makes_it_private_too_and_under_tls_it_is_the_same() {
    let lab = Lab::new();
    let backend = lab.fake();
    let keel = lab.keel(&[&backend]);
    let (mut alice, mut bob) = (keel.client(), keel.client());
    // Nobody has said a name yet: the offer alone is the beginning.
    assert_eq!(login(&mut alice, "").status, 401);
    assert_eq!(login(&mut bob, "").status, 401);
    assert_eq!(connections(&backend), [1, 2]);
    log_in(&mut alice, "alice");
    assert_eq!(login(&mut bob, "").status, 401);
    assert_eq!(login(&mut alice, "").text(), "hello alice");
    assert!(connections(&backend).iter().all(|connection| *connection <= 2));
    drop((alice, bob));
    eventually("both are closed", || backend.open_connections() == 0);
}

#[test]
fn a_tunnel_takes_the_connection_with_it() {
    let backend = backend("fake-1");
    let keel = Keel::with(&[&backend], one_worker);
    let mut alice = keel.client();
    log_in(&mut alice, "alice");
    alice.send("GET /upgrade HTTP/1.1\r\nHost: test\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    assert_eq!(alice.answer().status, 101);
    assert_eq!(connections(&backend), [1; 4]);
    drop(alice);
    eventually("it is closed", || backend.open_connections() == 0);
}
