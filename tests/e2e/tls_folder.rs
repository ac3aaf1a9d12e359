//! Certificates of a folder, names that nobody has, and what sessions are made of.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use evenkeel::message::Cause;
use fake_backend::{Authority, Issued};
use rustls::AlertDescription;

use super::life_lab::until_ended;
use super::support::process::Process;
use super::support::tls::{BOTH, TLS12, TlsSocket, alert, client_config, first_der, listener_tls};
use super::support::{Keel, config, eventually, fakes};
use evenkeel::config::model::Protocol;

/// As tools for certificates write: beside it, and then in its place.
fn put(folder: &Path, name: &str, text: &str) {
    let beside = folder.join(".new");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, folder.join(name)).unwrap();
}

fn both(issued: &Issued) -> String {
    format!("{}{}", issued.cert_pem, issued.key_pem)
}

#[test]
fn what_comes_into_a_folder_is_served_and_what_is_wrong_with_it_changes_nothing() {
    let authority = Authority::new("test authority");
    let backend = &fakes(1)[0];
    let folder = tempfile::tempdir().unwrap();
    let certs = folder.path().join("certs");
    fs::create_dir(&certs).unwrap();
    let one = authority.issue(["one.example"]);
    put(&certs, "one.pem", &both(&one));
    let text = format!(
        "targets:\n  web:\n    protocol: https\n    listener: 127.0.0.1:0\n    health_check: off\n    \
         tls: {{certificates: [{{dir: certs}}], unknown_sni: refuse}}\n    \
         backends: [{{host: 127.0.0.1, port: {}}}]\n",
        backend.port()
    );
    fs::write(folder.path().join("evenkeel.yaml"), text).unwrap();
    let process = Process::start_in(folder, 1);
    let client = Arc::new(client_config(&[authority.ca_pem()], BOTH, None));
    let open = |name: &str| TlsSocket::open(process.address("web"), &client, name);
    let is_unknown = |name: &str| {
        open(name).err().and_then(|error| alert(&error)) == Some(AlertDescription::UnrecognisedName)
    };
    assert_eq!(open("one.example").unwrap().leaf(), first_der(&one.cert_pem));
    assert!(is_unknown("two.example"));
    // Certificate and key come one after the other; nothing is served of the half.
    let two = authority.issue(["two.example"]);
    put(&certs, "two.crt", &two.cert_pem);
    put(&certs, "two.key", &two.key_pem);
    eventually("the new one is served", || open("two.example").is_ok());
    // Renewed.
    let again = authority.issue(["one.example"]);
    put(&certs, "one.pem", &both(&again));
    let leaf = first_der(&again.cert_pem);
    eventually("the renewed one is served", || open("one.example").unwrap().leaf() == leaf);
    put(&certs, "three.pem", "nothing");
    // What was told of the changes before may come after this one was made.
    eventually("it is told", || {
        process
            .reloads()
            .iter()
            .any(|told| told.contains("three.pem") && told.contains("has no certificate in it"))
    });
    assert!(open("one.example").is_ok() && open("two.example").is_ok() && is_unknown("three.example"));
    let (status, report) = process.ask("GET /api/v1/status", b"");
    assert_eq!(status, 200);
    let shown = &report["listeners"][0]["certificates"];
    assert_eq!(shown.as_array().unwrap().len(), 2, "{shown}");
    assert_eq!(shown[1]["names"][0], "two.example");
    assert!(shown[0]["key"] == "ECDSA P-256" && shown[0]["is_default"] == false, "{shown}");
    fs::remove_file(certs.join("three.pem")).unwrap();
    fs::remove_file(certs.join("two.crt")).unwrap();
    eventually("what has gone is served no more", || is_unknown("two.example"));
}

#[test]
fn a_name_that_no_certificate_has_is_refused_before_a_handshake_if_asked_for() {
    let authority = Authority::new("test authority");
    let backends = fakes(1);
    let issued = authority.issue(["*.wild.example", "one.example"]);
    let files = [("a.pem", &*issued.cert_pem), ("a.key", &*issued.key_pem)];
    let client = Arc::new(client_config(&[authority.ca_pem()], BOTH, None));
    for protocol in [Protocol::Http, Protocol::Tcp] {
        let mut config = config(protocol, &[backends[0].addr()]);
        config.listeners[0].tls =
            Some(listener_tls("cert_file: a.pem, cert_key: a.key, unknown_sni: refuse", &files));
        let keel = Keel::start(&config);
        let open = |name: &str| TlsSocket::open(keel.address(), &client, name);
        for known in ["one.example", "a.wild.example"] {
            assert!(open(known).is_ok(), "{known}");
        }
        // Who comes by an address names nothing.
        for unknown in ["two.example", "wild.example", "a.b.wild.example", "127.0.0.1"] {
            let error = open(unknown).err().unwrap();
            assert_eq!(alert(&error), Some(AlertDescription::UnrecognisedName), "{unknown}: {error}");
        }
        until_ended(&keel, Cause::UnknownSni, 4);
    }
}

#[test]
fn sessions_are_made_of_what_a_listener_takes() {
    use rustls::{CipherSuite, NamedGroup, ProtocolVersion};
    let authority = Authority::new("test authority");
    let backends = fakes(1);
    let issued = authority.issue(["one.example"]);
    let files = [("a.pem", &*issued.cert_pem), ("a.key", &*issued.key_pem)];
    for (keys, versions, wanted) in [
        (
            "cipher_suites: TLS_AES_128_GCM_SHA256, groups: P-256",
            BOTH,
            Some((CipherSuite::TLS13_AES_128_GCM_SHA256, NamedGroup::secp256r1)),
        ),
        ("groups: x25519", BOTH, Some((CipherSuite::TLS13_AES_256_GCM_SHA384, NamedGroup::X25519))),
        (
            "groups: [SecP256r1MLKEM768, x25519]",
            BOTH,
            Some((CipherSuite::TLS13_AES_256_GCM_SHA384, NamedGroup::X25519)),
        ),
        (
            "cipher_suites: [ECDHE-ECDSA-CHACHA20-POLY1305, ECDHE-RSA-AES128-GCM-SHA256]",
            BOTH,
            Some((CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, NamedGroup::X25519)),
        ),
        ("cipher_suites: TLS_AES_128_GCM_SHA256", TLS12, None),
        ("groups: X25519MLKEM768", TLS12, None),
    ] {
        let mut config = config(Protocol::Http, &[backends[0].addr()]);
        config.listeners[0].tls =
            Some(listener_tls(&format!("cert_file: a.pem, cert_key: a.key, {keys}"), &files));
        let keel = Keel::start(&config);
        let client = Arc::new(client_config(&[authority.ca_pem()], versions, None));
        let socket = TlsSocket::open(keel.address(), &client, "one.example");
        let got = socket.ok().map(|socket| {
            let suite = socket.session.negotiated_cipher_suite().unwrap().suite();
            (suite, socket.session.negotiated_key_exchange_group().unwrap().name(), socket.version())
        });
        assert_eq!(got.map(|(suite, group, _)| (suite, group)), wanted, "{keys}");
        let is_new = wanted.is_some_and(|(suite, _)| format!("{suite:?}").starts_with("TLS13"));
        assert_eq!(got.is_some_and(|(.., version)| version == ProtocolVersion::TLSv1_3), is_new, "{keys}");
    }
}
