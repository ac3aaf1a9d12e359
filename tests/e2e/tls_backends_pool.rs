//! Pooled TLS connections: reused, and never when something is left on them.

use std::io::{Read as _, Write as _};

use evenkeel::message::Cause;
use fake_backend::{Behaviour, Ending, Fake, Fault, TlsFault};

use super::life_lab::{assert_own, pause, post, status, until_ended};
use super::support::{Client, Keel, eventually};
use super::tls_backends_lab::{Lab, Puppet, Strings, answer, identity, start, told_of, until_left, url};

#[test]
fn connections_are_kept_and_shake_hands_once() {
    let lab = Lab::new();
    let backend = lab.fake();
    let keel = lab.keel(&[&backend]);
    let mut client = keel.client();
    for size in [0, 5, 16_384, 16_385, 100_000] {
        for framing in ["bytes", "chunked"] {
            assert_eq!(client.get(&format!("/{framing}/{size}")).body.len(), size);
        }
    }
    let (stats, pool) = (backend.stats(), keel.server.readings().pool);
    assert_eq!((stats.connections, stats.handshakes, pool.opened), (1, 1, 1));
    assert_eq!(pool.reused, 9);
}

/// How often a backend sees a request whose connection it breaks, and what the client gets.
#[test]
fn a_stale_connection_costs_a_repeatable_request_nothing_and_no_other_is_sent_twice() {
    let lab = Lab::new();
    let backend = lab.fake();
    let keel = lab.keel(&[&backend]);
    let get = || "GET / HTTP/1.1\r\nHost: test\r\n\r\n".to_owned();
    let empty = || "POST / HTTP/1.1\r\nHost: test\r\n\r\n".to_owned();
    let large = post("/", &"x".repeat(300_000));
    let table = [
        (Fault::CloseMidHead, get(), (502, 1)),
        (Fault::CloseUnanswered, empty(), (502, 1)),
        (Fault::ResetUnanswered, empty(), (502, 1)),
        (Fault::CloseUnanswered, post("/", "body"), (502, 1)),
        (Fault::ResetUnanswered, large.clone(), (502, 1)),
        (Fault::ResetMidHead, large, (502, 1)),
    ];
    let ask = |fault: &Fault, request: &str| {
        let mut client = keel.client();
        assert_eq!(client.get("/").status, 200);
        let before = backend.requests();
        backend.behave(Behaviour::fault(fault.clone()).times(1));
        let answer = client.ask(request);
        backend.behave(Behaviour::default());
        (answer.status, backend.requests() - before)
    };
    for (fault, request, expected) in table {
        assert_eq!(ask(&fault, &request), expected, "{fault:?} at {:.20}", request);
    }
    for fault in [Fault::CloseUnanswered, Fault::ResetUnanswered] {
        // On a busy machine it may look like a backend that has thought about it.
        eventually("it closes at once", || ask(&fault, &get()) == (200, 2));
    }
}

/// A reset in the middle of a body that the backend does not read: parts of records are out, and count as sent.
#[test]
fn a_post_of_which_a_part_of_a_record_is_out_is_not_sent_again() {
    let lab = Lab::new();
    let puppet = Puppet::new(&lab);
    let good = start(Fake::http("good"), lab.tls());
    let keel = Keel::start(&lab.config(
        "http",
        "upstream_tls: {ca_file: ca.pem}",
        &[puppet.url(), format!("{{url: '{}'}}", good.url())],
    ));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let Strings { mut socket, .. } = puppet.accept();
            // A few bytes of the first record, then nothing: the rest fills the kernel's buffers.
            socket.read_exact(&mut [0; 100]).unwrap();
            super::life_lab::reset_on_close(&socket);
        });
        let mut client = keel.client();
        let body = vec![b'x'; 30_000_000];
        let reset = client.post("/", &body);
        assert!(reset.status == 502 || reset.cut, "{}", reset.head);
    });
    until_ended(&keel, Cause::BackendClosed, 1);
    assert_eq!(good.requests(), 0);
}

#[test]
fn a_backend_that_says_goodbye_while_idle_costs_nothing() {
    let lab = Lab::new();
    // Two, as one who meets the goodbye late is sent to the other.
    let backends = [lab.fake(), lab.fake()];
    let keel = lab.keel(&[&backends[0], &backends[1]]);
    let requests = || backends[0].requests() + backends[1].requests();
    let mut client = keel.client();
    for round in 1..=10 {
        assert_eq!((client.get("/").status, requests()), (200, round));
        // The next request meets the goodbye at any moment of its own.
        backends.iter().for_each(|backend| backend.close_idle());
    }
    backends.iter().for_each(until_left);
    assert_eq!(client.ask(&post("/count", "body")).text(), "4");
    assert_eq!(requests(), 11);
}

#[test]
fn bytes_behind_an_answer_in_the_same_record_end_the_connection() {
    let lab = Lab::new();
    let backend = lab.fake();
    let keel = lab.keel(&[&backend]);
    let bytes = (answer("hello") + &answer("poison")).into_bytes();
    backend.behave(Behaviour::fault(Fault::Raw { bytes, ending: Ending::KeepOpen }).times(1));
    let mut client = keel.client();
    assert_eq!(client.get("/").text(), "hello");
    assert_eq!(client.get("/").text(), "Hello from fake-1");
    assert_eq!(backend.connections(), 2);
}

/// That such a backend lets us in was never in doubt.
#[test]
fn an_alert_on_a_connection_that_has_served_is_no_refused_handshake() {
    let lab = Lab::new();
    let puppet = Puppet::new(&lab);
    let keel = Keel::start(&lab.config("http", "upstream_tls: {ca_file: ca.pem}", &[puppet.url()]));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut it = puppet.accept();
            it.read_until("\r\n\r\n");
            let hello = it.record(&answer("hello"));
            it.send(&hello);
            it.read_until("\r\n\r\n");
            // What closes at once passes for a connection that was closed before.
            pause(100);
            it.session.read_tls(&mut &[[23, 3, 3, 0, 32].as_slice(), &[0; 32]].concat()[..]).unwrap();
            assert!(it.session.process_new_packets().is_err());
            let alert = it.pending();
            it.send(&alert);
        });
        let mut client = keel.client();
        assert_eq!(client.get("/").text(), "hello");
        assert_own(&client.get("/"), Cause::BackendClosed);
    });
    assert_eq!((status(&keel, 0).ejected_until, told_of(&identity(&keel))), (None, vec![]));
}

/// What a puppet sends with an answer, and what it sends before it is asked again.
type Leftover = fn(&mut Strings) -> (Vec<u8>, Vec<u8>);

/// The second half of a record must not pass for the answer to the next request.
#[test]
fn whatever_is_left_behind_an_answer_reaches_nobody() {
    let lab = Lab::new();
    let table: [(&str, Leftover); 5] = [
        ("a record of its own, with the answer", |it| {
            ([it.record(&answer("hello")), it.record("poison")].concat(), Vec::new())
        }),
        ("a record of its own, later", |it| (it.record(&answer("hello")), it.record(&answer("poison")))),
        ("a record, half of it later", |it| {
            let (mut now, mut record) = (it.record(&answer("hello")), it.record(&answer("poison")));
            let later = record.split_off(record.len() / 2);
            now.append(&mut record);
            (now, later)
        }),
        ("a record, all but its first byte later", |it| {
            let (mut now, mut record) = (it.record(&answer("hello")), it.record(&answer("poison")));
            let later = record.split_off(1);
            now.append(&mut record);
            (now, later)
        }),
        ("new keys, later", |it| {
            let now = it.record(&answer("hello"));
            it.session.refresh_traffic_keys().unwrap();
            (now, it.pending())
        }),
    ];
    for (what, leftover) in table {
        let puppet = &Puppet::new(&lab);
        let keel = Keel::start(&lab.config("http", "upstream_tls: {ca_file: ca.pem}", &[puppet.url()]));
        let mut client = keel.client();
        std::thread::scope(|scope| {
            let backend = scope.spawn(move || {
                let mut first = puppet.accept();
                assert!(first.read_until("\r\n\r\n").starts_with("GET /1 "), "{what}");
                let (now, later) = leftover(&mut first);
                first.send(&now);
                (first, later)
            });
            assert_eq!(client.get("/1").text(), "hello", "{what}");
            let (mut first, later) = backend.join().unwrap();
            // The rest of a record comes when the next request is under way; anything else before it.
            let is_part = what.starts_with("a record, ");
            if !is_part {
                first.send(&later);
            }
            let backend = scope.spawn(move || {
                if is_part {
                    // Were this connection used again, the request would be followed by this.
                    first.send(&later);
                }
                let mut second = puppet.accept();
                assert!(second.read_until("\r\n\r\n").starts_with("GET /2 "), "{what}");
                let fine = second.record(&answer("fine"));
                second.send(&fine);
                (first, second)
            });
            assert_eq!(client.get("/2").text(), "fine", "{what}");
            drop(backend.join().unwrap());
        });
    }
}

/// Each asks for an answer in kind and carries nothing. Enough is enough, and nobody else has to wait for it.
#[test]
fn a_backend_that_floods_us_with_new_keys_loses_its_connection_and_holds_up_nobody() {
    let lab = Lab::new();
    let (puppet, good) = (Puppet::new(&lab), lab.fake());
    let trusted = "retries: off, upstream_tls: {ca_file: ca.pem}";
    let keel = Keel::start(&lab.config("http", trusted, &[puppet.url(), url(&good.url())]));
    let address = keel.address();
    std::thread::scope(|scope| {
        let asked = scope.spawn(move || Client::connect(address).get("/"));
        let mut strings = puppet.accept();
        assert!(strings.read_until("\r\n\r\n").starts_with("GET / "));
        let other = scope.spawn(move || Client::connect(address).get("/"));
        let mut records = 0u64;
        eventually("it is given up", || {
            strings.session.refresh_traffic_keys().unwrap();
            let record = strings.pending();
            records += 1;
            strings.socket.write_all(&record).is_err()
        });
        assert_eq!(other.join().unwrap().text(), "Hello from fake-1", "behind {records} records");
        assert_own(&asked.join().unwrap(), Cause::BackendClosed);
    });
}

#[test]
fn an_answer_that_ends_with_the_connection_is_complete_only_with_close_notify() {
    let lab = Lab::new();
    let backend = lab.fake();
    let keel = lab.keel(&[&backend]);
    let whole = keel.client().get("/close/70000");
    assert!(whole.status == 200 && !whole.cut && whole.body.len() == 70_000);
    backend.behave(Behaviour::tls_fault(TlsFault::NoCloseNotify));
    let cut = keel.client().get("/close/70000");
    assert!(cut.status == 200 && cut.cut, "{}", cut.body.len());
    until_ended(&keel, Cause::AnswerCut, 1);
    // Where the length is known the end says nothing.
    let known = keel.client().get("/bytes/70000");
    assert!(known.status == 200 && !known.cut && known.body.len() == 70_000);
}
