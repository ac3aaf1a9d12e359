//! Client certificates: who gets in, what the backend is told, and that nobody can say it in our place.

use std::io::{self, Read as _, Write as _};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel::config::model::{LogFormat, Protocol};
use evenkeel::message::Cause;
use fake_backend::{Authority, Issued, Recorded};
use rustls::{AlertDescription, SupportedProtocolVersion};

use super::life_lab::{LogFile, end, until_ended};
use super::support::tls::{Secure, TLS12, TLS13, TlsSocket, alert, client_config, first_der};
use super::support::{Keel, chunked, recording};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";

/// A handshake and a request, with this certificate: why it failed.
fn attempt(
    secure: &Secure,
    versions: &[&'static SupportedProtocolVersion],
    identity: Option<&Issued>,
) -> Result<(), io::Error> {
    let config = Arc::new(client_config(&[secure.authority.ca_pem()], versions, identity));
    let mut socket = TlsSocket::open(secure.keel.address(), &config, "localhost")?;
    // With TLS 1.3 the client has done its part before the server has seen its certificate.
    let _ = socket.write_all(REQUEST);
    socket.read_exact(&mut [0; 12])
}

fn refused(
    secure: &Secure,
    versions: &[&'static SupportedProtocolVersion],
    identity: Option<&Issued>,
) -> AlertDescription {
    let error = attempt(secure, versions, identity).expect_err("refused");
    alert(&error).unwrap_or_else(|| panic!("no alert, but {error}"))
}

#[test]
fn a_required_certificate_must_be_there_and_convince() {
    let backend = recording();
    let mut log = None;
    let secure = Secure::with(Protocol::Http, &[&backend], ", client_ca: ca.pem", |config| {
        log = Some(LogFile::of(config, LogFormat::Json));
    });
    let others = Authority::new("somebody else");
    let expired = secure.authority.leaf([""; 0]).subject("late").for_client().expired().issue();
    let early = secure.authority.leaf([""; 0]).subject("early").for_client().not_yet_valid().issue();
    let server = secure.authority.issue(["localhost"]);
    let mut count = 0;
    for versions in [TLS12, TLS13] {
        assert_eq!(refused(&secure, versions, None), AlertDescription::CertificateRequired);
        assert_eq!(
            refused(&secure, versions, Some(&others.issue_client("mallory"))),
            AlertDescription::UnknownCA
        );
        assert_eq!(refused(&secure, versions, Some(&expired)), AlertDescription::CertificateExpired);
        refused(&secure, versions, Some(&early));
        // A certificate for servers is none for clients.
        refused(&secure, versions, Some(&server));
        count += 5;
        until_ended(&secure.keel, Cause::ClientCertificate, count);
        attempt(&secure, versions, Some(&secure.authority.issue_client("alice"))).unwrap();
    }
    assert_eq!(backend.requests(), 2, "nobody else got through");
    end(secure.keel);
    let records = log.unwrap().records();
    let causes: Vec<_> = records.iter().filter(|record| record["cause"] == "client_certificate").collect();
    assert_eq!(causes.len() as u64, count);
    for record in causes {
        assert!(record["status"].is_null() && record["backend"].is_null(), "{record}");
        assert_eq!((&record["listener"], &record["kind"]), (&"web".into(), &"http".into()));
        assert!(record["client"].as_str().unwrap().starts_with("127.0.0.1:"));
    }
}

#[test]
fn an_optional_certificate_may_be_missing_and_may_not_be_wrong() {
    let backend = recording();
    let secure =
        Secure::with(Protocol::Http, &[&backend], ", client_ca: ca.pem, client_auth: optional", |_| ());
    let wrong = Authority::new("somebody else").issue_client("mallory");
    for versions in [TLS12, TLS13] {
        attempt(&secure, versions, None).unwrap();
        let seen = backend.take_requests().pop().unwrap();
        assert!(seen.header("client-cert").is_empty() && seen.header("x-forwarded-client-cert").is_empty());
        assert_eq!(refused(&secure, versions, Some(&wrong)), AlertDescription::UnknownCA);
        attempt(&secure, versions, Some(&secure.authority.issue_client("alice"))).unwrap();
        let seen = backend.take_requests().pop().unwrap();
        assert_eq!(seen.header("client-cert").len(), 1);
    }
    until_ended(&secure.keel, Cause::ClientCertificate, 2);
}

#[test]
fn a_tcp_target_lets_in_whom_it_knows() {
    let backends = super::life_lab::tcp_fakes(1, |fake| fake);
    let secure = Secure::with(Protocol::Tcp, &[&backends[0]], ", client_ca: ca.pem", |_| ());
    attempt(&secure, TLS13, Some(&secure.authority.issue_client("alice"))).unwrap();
    refused(&secure, TLS13, None);
    until_ended(&secure.keel, Cause::ClientCertificate, 1);
    assert_eq!(backends[0].connections(), 1);
}

#[test]
fn without_client_ca_nobody_is_asked() {
    let backend = recording();
    let secure = Secure::http(&[&backend]);
    attempt(&secure, TLS13, Some(&secure.authority.issue_client("alice"))).unwrap();
    assert!(backend.take_requests().pop().unwrap().header("client-cert").is_empty());
}

/// Every way in which a client may try to be somebody.
const LIES: &str = "Client-Cert: :bGll:\r\nclient_cert: :bGll:\r\nClient-Cert-Chain: :bGll:\r\nClient_Cert_Chain: :bGll:\r\n\
                    X-Forwarded-Client-Cert: Hash=bGll\r\nX_Forwarded_Client_Cert: Hash=bGll\r\n\
                    x-forwarded-client_cert: Hash=bGll\r\n\
                    Connection: Client-Cert, X-Forwarded-Client-Cert, Client_Cert, keep-alive\r\n";

/// What is left of them in a request.
fn lies(seen: &Recorded) -> bool {
    seen.head_text().contains("bGll") || String::from_utf8_lossy(&seen.trailers).contains("bGll")
}

#[test]
fn nobody_can_speak_of_a_certificate_in_our_place() {
    let backend = recording();
    let asking = |more| Secure::with(Protocol::Http, &[&backend], more, |_| ());
    let optional = asking(", client_ca: ca.pem, client_auth: optional");
    let required = asking(", client_ca: ca.pem");
    let open = asking("");
    let plain = Keel::http(&[&backend]);
    let alice = required.authority.issue_client("alice");
    let with_alice = Arc::new(client_config(&[required.authority.ca_pem()], TLS13, Some(&alice)));
    let request = format!("GET / HTTP/1.1\r\nHost: test\r\n{LIES}\r\n");
    // In trailers, which a careless backend merges into the head.
    let trailers: String = LIES
        .lines()
        .filter(|line| !line.starts_with("Connection"))
        .map(|line| format!("{line}\r\n"))
        .collect();
    let mut chunks = format!("POST /count HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\nTrailer: Client-Cert\r\n{LIES}\r\n").into_bytes();
    chunks.extend(chunked(b"hello", &[5], &trailers));
    let mut seen = Vec::new();
    for request in [request.as_bytes(), &chunks] {
        seen.push(plain.client().send(request).answer().status);
        seen.push(open.client().send(request).answer().status);
        seen.push(optional.client().send(request).answer().status);
        seen.push(required.client_with(&with_alice).send(request).answer().status);
    }
    // Trailers about the client may be refused or dropped, and requests in the head are served.
    assert_eq!(&seen[..4], [200; 4]);
    assert!(seen[4..].iter().all(|status| matches!(status, 200 | 400)), "{seen:?}");
    let arrived = backend.take_requests();
    assert!(arrived.len() >= 4);
    assert!(!arrived.iter().any(lies), "{:?}", arrived.iter().map(Recorded::head_text).collect::<Vec<_>>());
    for (seen, expected) in arrived.iter().zip([0, 0, 0, 1]) {
        for name in ["client-cert", "x-forwarded-client-cert"] {
            assert_eq!(seen.header(name).len(), expected, "{}", seen.head_text());
        }
    }
    let told = &arrived[3];
    let der = first_der(&alice.cert_pem);
    assert_eq!(told.header("client-cert"), [format!(":{}:", STANDARD.encode(&der))], "RFC 9440");
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &der);
    let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(told.header("x-forwarded-client-cert"), [format!("Hash={hash};Subject=\"CN=alice\"")]);
}

#[test]
fn every_request_of_a_connection_is_told_and_no_other_connection() {
    let backend = recording();
    let secure =
        Secure::with(Protocol::Http, &[&backend], ", client_ca: ca.pem, client_auth: optional", |config| {
            // All share one upstream connection.
            config.workers = 1;
        });
    let config = |name: &str| {
        let issued = secure.authority.issue_client(name);
        Arc::new(client_config(&[secure.authority.ca_pem()], TLS13, Some(&issued)))
    };
    let mut alice = secure.client_with(&config("alice"));
    let mut bob = secure.client_with(&config("bob"));
    let mut nobody = secure.client();
    for _ in 0..3 {
        for client in [&mut alice, &mut bob, &mut nobody] {
            assert_eq!(client.get("/").status, 200);
        }
    }
    let told: Vec<String> =
        backend.take_requests().iter().map(|seen| seen.header("x-forwarded-client-cert").concat()).collect();
    for round in told.chunks(3) {
        assert!(
            round[0].contains("CN=alice") && round[1].contains("CN=bob") && round[2].is_empty(),
            "{told:?}"
        );
    }
    assert_eq!((told.len(), backend.connections()), (9, 1));
}

#[test]
fn a_certificate_as_large_as_they_come_is_passed_on_whole() {
    let backend = recording();
    let secure = Secure::with(Protocol::Http, &[&backend], ", client_ca: ca.pem", |_| ());
    let names: Vec<String> = (0..200).map(|number| format!("host-{number}.example.test")).collect();
    let large = secure.authority.leaf(names).for_client().subject("large").issue();
    attempt(&secure, TLS13, Some(&large)).unwrap();
    let seen = backend.take_requests().pop().unwrap();
    assert_eq!(seen.header("client-cert"), [format!(":{}:", STANDARD.encode(first_der(&large.cert_pem)))]);
    assert!(seen.header("x-forwarded-client-cert")[0].ends_with(";DNS=\"host-199.example.test\""));
}
