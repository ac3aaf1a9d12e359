//! Health checks of backends with TLS: the settings of the traffic, and reasons in words.

use std::time::Duration;

use evenkeel::config::model::HealthCheck;
use evenkeel::targets::Health;
use fake_backend::{Authority, Behaviour, Fake, Fault, Running, TlsFault, TlsVersion};

use super::life_lab::{probe, until};
use super::support::{Keel, PATIENCE, events, eventually, quick_health};
use super::tls_backends_lab::{Lab, identity, start, urls};

const TRUSTED: &str = "upstream_tls: {ca_file: ca.pem}";

/// Where only its timeout ends a probe, or its end is what is waited for.
const SHORT: Duration = Duration::from_millis(500);

/// In front of this backend, probed: with GET /health, or by a handshake alone.
fn probed(lab: &Lab, keys: &str, backend: &Running, asks: bool) -> Keel {
    probed_within(PATIENCE, lab, keys, backend, asks)
}

/// The same with this timeout of a probe.
fn probed_within(timeout: Duration, lab: &Lab, keys: &str, backend: &Running, asks: bool) -> Keel {
    let mut config = lab.config(if asks { "http" } else { "tcp" }, keys, &urls(&[backend]));
    let health = HealthCheck { timeout, ..quick_health() };
    if asks {
        probe(&mut config, health);
    } else {
        config.targets[0].health = Some(health);
    }
    Keel::start(&config)
}

fn is_down_because(keel: &Keel, reason: &str) {
    let status = until(keel, 0, Health::Down);
    assert!(status.reason.contains(reason), "{}", status.reason);
    let line = format!("backend {} is down: {reason}", identity(keel));
    eventually("it is logged", || events::with(&line).len() == 1);
}

fn fake(asks: bool) -> Fake {
    if asks { Fake::http("fake-1") } else { Fake::tcp("fake-1") }
}

#[test]
fn a_good_backend_is_up_and_each_probe_shakes_hands_in_full() {
    let lab = Lab::new();
    for asks in [true, false] {
        let backend = start(fake(asks), lab.tls());
        let keel = probed(&lab, TRUSTED, &backend, asks);
        until(&keel, 0, Health::Up);
        // A resumed session would not show a certificate that has run out.
        eventually("it is probed again", || backend.stats().handshakes >= 4);
        assert_eq!((backend.stats().resumed, backend.stats().failed_handshakes), (0, 0));
        if asks {
            let probe = backend.last_requests().remove(0);
            assert_eq!(probe.header("host"), [backend.addr().to_string()]);
            assert_eq!(probe.tls.as_ref().unwrap().alpn.as_deref(), Some("http/1.1"));
        }
    }
}

#[test]
fn what_is_wrong_with_the_certificate_is_told_in_the_transition() {
    let lab = Lab::new();
    let here = || lab.authority.leaf(["127.0.0.1"]);
    let given = |issued| fake_backend::TlsOptions::new().certificate(issued);
    for asks in [true, false] {
        for (tls, reason) in [
            (
                lab.tls().names(["a.example"]),
                "TLS: its certificate is valid for a.example, not for 127.0.0.1",
            ),
            (given(here().expired().issue()), "TLS: its certificate expired on 20"),
            (
                lab.tls().authority(&Authority::new("stranger")),
                "TLS: its certificate was issued by nobody whom we trust",
            ),
        ] {
            let backend = start(fake(asks), tls);
            is_down_because(&probed(&lab, TRUSTED, &backend, asks), reason);
        }
    }
}

#[test]
fn a_backend_that_spoils_tls_is_down() {
    let lab = Lab::new();
    for asks in [true, false] {
        for (fault, reason) in [
            (TlsFault::Plain, if asks { "TLS: it does not speak TLS" } else { "TLS: " }),
            (TlsFault::TalkFirst, "TLS: it does not speak TLS"),
            (TlsFault::Close, "TLS: closed in the handshake"),
            (TlsFault::Half, "timeout after 500ms"),
        ] {
            let backend = start(fake(asks).behave(Behaviour::tls_fault(fault)), lab.tls());
            let timeout = if fault == TlsFault::Half { SHORT } else { PATIENCE };
            is_down_because(&probed_within(timeout, &lab, TRUSTED, &backend, asks), reason);
        }
    }
}

/// In TLS 1.3 a backend looks at our certificate when our side of the handshake is done: a probe that asks nothing has to
/// wait for what it says.
#[test]
fn a_backend_that_wants_our_certificate_is_up_with_it_and_down_without() {
    let lab = Lab::new();
    lab.keep("keel", &lab.authority.issue_client("keel"));
    lab.keep("stranger", &Authority::new("stranger").issue_client("keel"));
    let keys = |name: &str| {
        format!("upstream_tls: {{ca_file: ca.pem, client_cert: {name}.pem, client_key: {name}.key}}")
    };
    for asks in [true, false] {
        for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
            let tls = lab.tls().versions(version, version).require_client(lab.authority.ca_pem());
            let backend = start(fake(asks), tls.clone());
            until(&probed(&lab, &keys("keel"), &backend, asks), 0, Health::Up);
            eventually("it has noticed", || !backend.last_handshakes().is_empty());
            let facts = backend.last_handshakes()[0].outcome.clone().unwrap();
            assert_eq!(facts.client_subject.as_deref(), Some("CN=keel"));
            for keys in [TRUSTED.to_owned(), keys("stranger")] {
                let backend = start(fake(asks), tls.clone());
                let reason = "TLS: it did not accept our certificate, or wants one (alert";
                is_down_because(&probed(&lab, &keys, &backend, asks), reason);
            }
        }
    }
}

/// A backend that has asked for a certificate may still refuse it; one that says nothing more does not.
#[test]
fn a_backend_that_is_silent_behind_the_handshake_is_up() {
    let lab = Lab::new();
    lab.keep("keel", &lab.authority.issue_client("keel"));
    let silent = Behaviour::fault(Fault::HangUnread);
    let tls = lab.tls().ask_client(lab.authority.ca_pem());
    let backend = start(Fake::tcp("fake-1").behave(silent), tls);
    for keys in [TRUSTED, "upstream_tls: {ca_file: ca.pem, client_cert: keel.pem, client_key: keel.key}"] {
        until(&probed_within(SHORT, &lab, keys, &backend, false), 0, Health::Up);
    }
}

#[test]
fn a_text_is_looked_for_in_a_body_over_verified_tls() {
    let lab = Lab::new();
    let with_body = |backend: &Running, text: &str| {
        let mut config = lab.config("http", TRUSTED, &urls(&[backend]));
        probe(&mut config, HealthCheck { timeout: PATIENCE, body: Some(text.into()), ..quick_health() });
        Keel::start(&config)
    };
    let backend = start(fake(true), lab.tls());
    until(&with_body(&backend, "healthy"), 0, Health::Up);
    is_down_because(&with_body(&backend, "ready"), "the body lacks \"ready\"");
    // Whatever it says: it is not who it should be.
    for (tls, reason) in [
        (lab.tls().names(["a.example"]), "TLS: its certificate is valid for a.example, not for 127.0.0.1"),
        (
            lab.tls().authority(&Authority::new("stranger")),
            "TLS: its certificate was issued by nobody whom we trust",
        ),
    ] {
        let backend = start(fake(true), tls);
        is_down_because(&with_body(&backend, "healthy"), reason);
        assert_eq!(backend.probes(), 0, "it was asked nothing");
    }
}
