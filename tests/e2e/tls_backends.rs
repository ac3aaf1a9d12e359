//! TLS towards backends that are what they should be: every way to write it, to name them and to trust them.

use std::collections::BTreeSet;

use evenkeel::message::Cause;
use fake_backend::{Behaviour, Fake, Running, TcpMode, TlsFacts, TlsOptions, TlsVersion};

use super::http_connections::is_good_or_met_the_end;
use super::life_lab::{assert_own, pause};
use super::support::{Keel, all_to, events, eventually};
use super::tls_backends_lab::{Lab, SelfSigned, start, url, urls};

/// What the only handshake of a backend agreed on.
fn facts(backend: &Running) -> TlsFacts {
    let handshakes = backend.last_handshakes();
    let [only] = &handshakes[..] else { panic!("one handshake: {handshakes:?}") };
    only.outcome.clone().unwrap()
}

fn greets(keel: &Keel) {
    let answer = keel.client().get("/");
    assert_eq!((answer.status, answer.text().as_str()), (200, "Hello from fake-1"), "{}", answer.text());
}

#[test]
fn every_way_to_write_a_backend_with_tls_works_and_names_the_right_host() {
    let lab = Lab::new();
    let inside = || lab.tls().names(["app.internal"]);
    let socket = lab.path().join("app.sock");
    let address = |backend: &Running| backend.addr().to_string();
    let host_and_port = |backend: &Running| format!("{{host: 127.0.0.1, port: {}}}", backend.port());
    let trusted = "upstream_tls: {ca_file: ca.pem}";
    let named = "upstream_tls: {ca_file: ca.pem, server_name: App.Internal.}";
    type Written<'a> = &'a dyn Fn(&Running) -> String;
    // By its address a backend is verified too, and no name is sent (RFC 6066 §3).
    let table: [(Fake, TlsOptions, &str, Written<'_>, Option<&str>); 8] = [
        (Fake::http("fake-1"), lab.tls(), trusted, &|it| url(&it.url()), None),
        (Fake::http("fake-1"), lab.tls(), trusted, &host_and_port, None),
        (
            Fake::http("fake-1"),
            lab.tls(),
            trusted,
            &|it| url(&format!("https://localhost:{}", it.port())),
            Some("localhost"),
        ),
        (Fake::http("fake-1"), inside(), named, &|it| url(&it.url()), Some("app.internal")),
        (
            Fake::http("fake-1"),
            lab.tls().names(["*.apps.internal"]),
            "upstream_tls: {ca_file: ca.pem, server_name: one.apps.internal}",
            &|it| url(&it.url()),
            Some("one.apps.internal"),
        ),
        (
            Fake::http("fake-1"),
            lab.tls().names(["10.9.9.9"]),
            "upstream_tls: {ca_file: ca.pem, server_name: 10.9.9.9}",
            &|it| url(&it.url()),
            None,
        ),
        (
            Fake::http("fake-1").bind("[::1]:0"),
            lab.tls(),
            trusted,
            &|it| url(&format!("https://{}", address(it))),
            None,
        ),
        (Fake::http("fake-1").unix(&socket), inside(), named, &|it| url(&it.url()), Some("app.internal")),
    ];
    for (fake, tls, keys, written, sni) in table {
        let backend = start(fake, tls);
        let written = written(&backend);
        let keel = Keel::start(&lab.config("http", keys, std::slice::from_ref(&written)));
        eventually("its name resolves", || keel.server.targets()[0].status()[0].health.as_str() == "up");
        greets(&keel);
        let facts = facts(&backend);
        assert_eq!(facts.server_name.map(|name| name.to_lowercase()).as_deref(), sni, "{written}");
        assert_eq!(facts.alpn.as_deref(), Some("http/1.1"));
        assert_eq!((facts.version.as_str(), facts.resumed), ("TLSv1.3", false));
        assert_eq!(facts.group.as_deref(), Some("X25519MLKEM768"));
    }
}

#[test]
fn a_tcp_target_relays_through_tls_and_offers_no_protocol() {
    let lab = Lab::new();
    let backend = start(Fake::tcp("fake-1").behave(Behaviour::tcp(TcpMode::Echo)), lab.tls());
    let keel = Keel::start(&lab.config("tcp", "upstream_tls: {ca_file: ca.pem}", &urls(&[&backend])));
    let mut client = keel.client();
    client.send("hello");
    assert_eq!(client.take(5), b"hello");
    // The end is passed on within TLS: the backend sends its rest and its own end, and both arrive.
    client.send("last").finish_sending();
    assert_eq!(client.rest(), b"last");
    assert!(!client.was_reset());
    assert_eq!(facts(&backend).alpn, None);
}

#[test]
fn a_tcp_backend_that_vanishes_without_a_word_is_a_reset_for_the_client() {
    let lab = Lab::new();
    let cut = Behaviour {
        tcp: TcpMode::Source(1000),
        ..Behaviour::tls_fault(fake_backend::TlsFault::NoCloseNotify)
    };
    for (behaviour, whole) in [(Behaviour::tcp(TcpMode::Source(1000)), true), (cut, false)] {
        let backend = start(Fake::tcp("fake-1").behave(behaviour), lab.tls());
        let keel = Keel::start(&lab.config("tcp", "upstream_tls: {ca_file: ca.pem}", &urls(&[&backend])));
        let mut client = keel.client();
        assert_eq!(client.take(1000).len(), 1000);
        client.finish_sending();
        assert!(client.rest().is_empty());
        assert_eq!(client.was_reset(), !whole);
    }
}

#[test]
fn both_versions_are_spoken_and_resumed_per_backend() {
    let lab = Lab::new();
    for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
        // Both have the same name and share nothing, so a ticket of one is worth nothing at the other.
        let backends: Vec<Running> = (1..=2)
            .map(|number| {
                let fake = Fake::http(format!("fake-{number}")).behave(Behaviour::default().closing());
                start(fake, lab.tls().versions(version, version))
            })
            .collect();
        let keel = lab.keel(&[&backends[0], &backends[1]]);
        for _ in 0..10 {
            assert_eq!(keel.client().get("/").status, 200);
        }
        for backend in &backends {
            let stats = backend.stats();
            assert_eq!((stats.handshakes, stats.resumed, stats.failed_handshakes), (5, 4, 0), "{version:?}");
            let versions: BTreeSet<String> =
                backend.last_handshakes().into_iter().map(|one| one.outcome.unwrap().version).collect();
            let expected = if version == TlsVersion::Tls12 { "TLSv1.2" } else { "TLSv1.3" };
            assert_eq!(versions, BTreeSet::from([expected.to_owned()]));
        }
    }
}

#[test]
fn a_self_signed_certificate_is_taken_when_it_stands_in_ca_file_and_only_for_what_it_says() {
    let lab = Lab::new();
    let ask = |shown: &fake_backend::Issued, trusted: &SelfSigned| {
        lab.write("pin.pem", &trusted.issued.cert_pem);
        let backend = start(Fake::http("fake-1"), TlsOptions::new().certificate(shown.clone()));
        lab.keel_with("upstream_tls: {ca_file: pin.pem}", &[&backend]).client().get("/")
    };
    for authority in [false, true] {
        let own = SelfSigned::new(&["127.0.0.1"], authority);
        assert_eq!(ask(&own.issued, &own).status, 200, "authority: {authority}");
        let elsewhere = SelfSigned::new(&["10.9.9.9"], authority);
        assert_own(&ask(&elsewhere.issued, &elsewhere), Cause::UpstreamTlsName);
        assert_own(&ask(&own.issued, &elsewhere), Cause::UpstreamTlsIssuer);
    }
    let expired = SelfSigned::expired(&["127.0.0.1"]);
    assert_own(&ask(&expired.issued, &expired), Cause::UpstreamTlsExpired);
    // Whoever holds the key of one backend must not pass for another.
    let neighbour = SelfSigned::new(&["10.9.9.9"], false);
    assert_own(&ask(&neighbour.sign(&["127.0.0.1"]), &neighbour), Cause::UpstreamTlsIssuer);
}

#[test]
fn the_certificates_between_a_backends_own_and_the_authoritys_must_come_from_the_backend() {
    let lab = Lab::new();
    let whole = lab.authority.intermediate("between").issue(["127.0.0.1"]);
    let end = "-----END CERTIFICATE-----\n";
    let alone = whole.cert_pem.split_inclusive(end).next().unwrap().to_owned();
    assert_ne!(alone, whole.cert_pem);
    for (cert_pem, cause) in [(whole.cert_pem.clone(), None), (alone, Some(Cause::UpstreamTlsIssuer))] {
        let backend = start(Fake::http("fake-1"), TlsOptions::new().pem(cert_pem, whole.key_pem.clone()));
        let answer = lab.keel(&[&backend]).client().get("/");
        match cause {
            None => assert_eq!(answer.status, 200),
            Some(cause) => assert_own(&answer, cause),
        }
    }
}

#[test]
fn our_certificate_is_shown_to_a_backend_that_wants_one() {
    let lab = Lab::new();
    lab.keep("keel", &lab.authority.issue_client("keel"));
    for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
        let tls = lab.tls().versions(version, version).require_client(lab.authority.ca_pem());
        let backend = start(Fake::http("fake-1"), tls);
        let keys = "upstream_tls: {ca_file: ca.pem, client_cert: keel.pem, client_key: keel.key}";
        greets(&lab.keel_with(keys, &[&backend]));
        assert_eq!(facts(&backend).client_subject.as_deref(), Some("CN=keel"), "{version:?}");
    }
}

#[test]
fn insecure_takes_any_certificate_and_the_start_says_so_once_for_each_target() {
    let lab = Lab::new();
    let stranger = fake_backend::Authority::new("stranger");
    let expired = stranger.leaf(["elsewhere.example"]).expired().issue();
    let backends: Vec<Running> = (1..=2)
        .map(|_| start(Fake::http("fake-1"), TlsOptions::new().certificate(expired.clone())))
        .collect();
    let mut config =
        lab.config("http", "upstream_tls: {insecure: true}", &urls(&[&backends[0], &backends[1]]));
    config.targets[0].name = "open-to-all".into();
    config.listeners[0].routes = all_to("open-to-all");
    let keel = Keel::start(&config);
    greets(&keel);
    greets(&keel);
    let told = events::with("target open-to-all:");
    assert!(told.len() == 1 && told[0].contains("WARN"), "{told:?}");
    assert!(told[0].contains("`upstream_tls.insecure`"), "{told:?}");

    let mut verified = lab.config("http", "upstream_tls: {ca_file: ca.pem}", &urls(&[&backends[0]]));
    verified.targets[0].name = "closed-to-some".into();
    verified.listeners[0].routes = all_to("closed-to-some");
    assert_own(&Keel::start(&verified).client().get("/"), Cause::UpstreamTlsExpired);
    assert!(events::with("target closed-to-some:").is_empty());
}

#[test]
fn tls_in_the_middle_of_a_load_with_idle_closes_loses_nothing() {
    let lab = Lab::new();
    let early = Behaviour::default().idle_close(std::time::Duration::from_millis(40));
    let backend = start(Fake::http("fake-1").behave(early), lab.tls());
    let keel = lab.keel(&[&backend]);
    let address = keel.address();
    let ask = |thread: u64| {
        let mut client = super::support::Client::connect(address);
        let mut answers = (0..40u64).map(|number| {
            let answer = if number % 2 == 0 { client.get("/") } else { client.post("/count", b"12345") };
            pause((number * 13 + thread * 5) % 70);
            is_good_or_met_the_end(&answer)
        });
        answers.all(|is_good| is_good)
    };
    let loses_nothing = |_| {
        let before = (backend.requests(), backend.stats().handshakes);
        let is_good = std::thread::scope(|scope| {
            let threads = [0, 1, 2].map(|thread| scope.spawn(move || ask(thread)));
            threads.into_iter().fold(true, |all, thread| thread.join().unwrap() & all)
        });
        if is_good {
            assert_eq!(backend.requests() - before.0, 120, "nothing was sent twice, nothing was lost");
            assert!((4..120).contains(&(backend.stats().handshakes - before.1)));
        }
        is_good
    };
    // Where a busy machine lets it wait between its decision and its end for longer than counts as at once, nobody knows that it has done nothing with what
    // came meanwhile: but not in each of three rounds.
    assert!((0..3).any(loses_nothing));
}
