//! TLS towards backends that are not what they should be. Each has its cause in the answer and in the access log, its
//! reason in the event log, and costs a client nothing as long as another backend is fine.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;

use evenkeel::config::model::LogFormat;
use evenkeel::message::Cause;
use fake_backend::{Authority, Behaviour, Fake, Running, TlsFault, TlsOptions, TlsVersion};

use super::life_lab::{LogFile, assert_own, end, post, reading, reset_on_close, status, until_ended};
use super::support::{Keel, eventually};
use super::tls_backends_lab::{Lab, SelfSigned, identity, start, told_of, until_left, url, urls};

/// A backend that can't be talked to.
struct Broken {
    backend: Running,
    keys: &'static str,
    cause: Cause,
    /// What the event log says behind the backend's name.
    reason: String,
}

const TRUSTED: &str = "upstream_tls: {ca_file: ca.pem}";
/// Long enough for the good backend beside one that is silent.
const SHORT: &str = "2s";
const SHOWING: &str = "upstream_tls: {ca_file: ca.pem, client_cert: stranger.pem, client_key: stranger.key}";

fn broken(tls: TlsOptions, cause: Cause, reason: &str) -> Broken {
    let backend = start(Fake::http("fake-1"), tls);
    Broken { backend, keys: TRUSTED, cause, reason: reason.to_owned() }
}

fn spoiled(lab: &Lab, fault: TlsFault, cause: Cause, reason: &str) -> Broken {
    let backend = start(Fake::http("fake-1").behave(Behaviour::tls_fault(fault)), lab.tls());
    Broken { backend, keys: TRUSTED, cause, reason: reason.to_owned() }
}

fn every_broken_backend(lab: &Lab) -> Vec<Broken> {
    let stranger = Authority::new("stranger");
    lab.keep("stranger", &stranger.issue_client("stranger"));
    let given = |issued| TlsOptions::new().certificate(issued);
    let here = || lab.authority.leaf(["127.0.0.1"]);
    let only = |version| lab.tls().versions(version, version);
    let choosy = |version| only(version).require_client(lab.authority.ca_pem());
    let nameless = lab.authority.leaf([""; 0]).subject("127.0.0.1").issue();
    let many: Vec<String> = (1..=9).map(|number| format!("host-{number}.example")).collect();
    let refused = "it did not accept our certificate, or wants one (alert";
    let mut all = vec![
        broken(
            lab.tls().names(["a.example"]),
            Cause::UpstreamTlsName,
            "its certificate is valid for a.example, not for 127.0.0.1",
        ),
        broken(
            given(lab.authority.issue(many)),
            Cause::UpstreamTlsName,
            "its certificate is valid for host-1.example, host-2.example, host-3.example and 6 more, not for 127.0.0.1",
        ),
        broken(
            given(nameless),
            Cause::UpstreamTlsName,
            "its certificate has no name (subjectAltName), and 127.0.0.1 is needed",
        ),
        broken(given(here().expired().issue()), Cause::UpstreamTlsExpired, "its certificate expired on 20"),
        broken(
            given(here().not_yet_valid().issue()),
            Cause::UpstreamTlsExpired,
            "its certificate is not in force before 20",
        ),
        broken(
            given(stranger.issue(["127.0.0.1"])),
            Cause::UpstreamTlsIssuer,
            "its certificate was issued by nobody whom we trust",
        ),
        broken(
            given(SelfSigned::new(&["127.0.0.1"], true).issued),
            Cause::UpstreamTlsIssuer,
            "its certificate is self-signed: name that file as `upstream_tls.ca_file`, or set `insecure: true`",
        ),
        broken(
            given(here().for_client().issue()),
            Cause::UpstreamTls,
            "its certificate is wrong: certificate does not allow extended key usage for server authentication",
        ),
        broken(
            choosy(TlsVersion::Tls12),
            Cause::UpstreamTlsRefused,
            &format!("{refused} CertificateRequired)"),
        ),
        broken(
            choosy(TlsVersion::Tls13),
            Cause::UpstreamTlsRefused,
            &format!("{refused} CertificateRequired)"),
        ),
        broken(
            // In TLS 1.3 the server of these tests closes without the alert.
            only(TlsVersion::Tls12).alpn(["h2"]),
            Cause::UpstreamTls,
            "it ended the session with the alert NoApplicationProtocol",
        ),
        spoiled(lab, TlsFault::Plain, Cause::UpstreamNotTls, "it does not speak TLS"),
        spoiled(lab, TlsFault::TalkFirst, Cause::UpstreamNotTls, "it does not speak TLS"),
        spoiled(lab, TlsFault::Hang, Cause::UpstreamTlsTimeout, &format!("no handshake in {SHORT}")),
        spoiled(lab, TlsFault::Half, Cause::UpstreamTlsTimeout, &format!("no handshake in {SHORT}")),
        spoiled(lab, TlsFault::Close, Cause::UpstreamTls, "it closed the connection in the handshake"),
    ];
    for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
        let wrong = broken(choosy(version), Cause::UpstreamTlsRefused, refused);
        all.push(Broken { keys: SHOWING, ..wrong });
    }
    all
}

#[test]
fn every_broken_backend_has_its_cause_and_its_reason_and_costs_nothing_beside_a_good_one() {
    let lab = Lab::new();
    let good = start(Fake::http("good"), lab.tls());
    let mut reasons = BTreeSet::new();
    for Broken { backend, keys, cause, reason } in every_broken_backend(&lab) {
        // Short only where nothing else ends the handshake.
        let patience = if cause == Cause::UpstreamTlsTimeout { SHORT } else { "10s" };
        let keys = &format!("{keys}, timeouts: {{tls: {patience}}}");
        let mut config = lab.config("http", keys, &urls(&[&backend]));
        let log = LogFile::of(&mut config, LogFormat::Json);
        let keel = Keel::start(&config);
        let identity = identity(&keel);
        for request in ["GET /secret HTTP/1.1\r\nHost: test\r\n\r\n".to_owned(), post("/", "body")] {
            let answer = keel.client().ask(&request);
            assert_own(&answer, cause);
            assert_eq!(
                answer.header("proxy-status"),
                Some(format!("evenkeel; details={cause}").as_str()),
                "{reason}"
            );
            for secret in ["127.0.0.1", "example", "certificate expired", "in clear", "alert", "Hello"] {
                let said = format!("{}{}", answer.head, answer.text());
                assert!(!said.contains(secret), "{reason}: `{secret}` in {said}");
            }
        }
        assert_eq!(backend.requests(), 0, "{reason}: nothing was forwarded");
        assert!(status(&keel, 0).ejected_until.is_some(), "{reason}: passed over like a refused connect");
        end(keel);
        let records = log.records();
        assert!(records.iter().all(|record| record["cause"] == cause.token()), "{reason}: {records:?}");

        let told = told_of(&identity);
        assert!(told.len() == 1 && told[0].contains("WARN"), "{reason}: once for two failures: {told:?}");
        assert!(told[0].contains(&reason), "{reason}: {told:?}");
        reasons
            .insert(told[0].split("failed: ").nth(1).unwrap().split(" backend=").next().unwrap().to_owned());

        let keel = Keel::start(&lab.config(
            "http",
            &format!("{TRUSTED}, timeouts: {{tls: {patience}}}"),
            &urls(&[&backend, &good]),
        ));
        let mut client = keel.client();
        for _ in 0..2 {
            let answer = client.get("/");
            assert_eq!((answer.status, answer.text().as_str()), (200, "Hello from good"), "{reason}");
        }
        until_ended(&keel, Cause::Done, 2);
        let read = reading(&keel, 0);
        assert!(read.attempts > 0 && read.failures == read.attempts, "{reason}: {read:?}");
    }
    assert!(reasons.len() >= 14, "{} that can be told from each other: {reasons:#?}", reasons.len());
}

/// A backend that refuses our certificate in TLS 1.3 does so when we have perhaps sent the request.
#[test]
fn a_post_is_not_repeated_elsewhere_after_a_late_refusal_once_it_is_out() {
    let lab = Lab::new();
    let tls = lab.tls().versions(TlsVersion::Tls13, TlsVersion::Tls13);
    let choosy = start(Fake::http("choosy"), tls.require_client(lab.authority.ca_pem()));
    let good = start(Fake::http("good"), lab.tls());
    let keel = lab.keel(&[&choosy, &good]);
    assert_own(&keel.client().ask(&post("/", "body")), Cause::UpstreamTlsRefused);
    assert_eq!((choosy.requests(), good.requests()), (0, 0));
    // The refusing one is passed over now.
    assert_eq!(keel.client().ask(&post("/", "body")).text(), "Hello from good");
}

#[test]
fn a_post_goes_to_the_next_backend_when_the_handshake_fails_before_it() {
    let lab = Lab::new();
    for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
        let wrong = start(Fake::http("wrong"), lab.tls().names(["a.example"]).versions(version, version));
        let good = start(Fake::http("good"), lab.tls());
        let keel = lab.keel(&[&wrong, &good]);
        let answer = keel.client().ask(&post("/count", "body"));
        assert_eq!((answer.status, answer.text().as_str()), (200, "4"));
        assert_eq!((wrong.requests(), good.requests()), (0, 1));
    }
}

#[test]
fn a_tcp_client_is_told_by_a_close_and_the_log_by_the_cause() {
    let lab = Lab::new();
    let choosy = |version| lab.tls().versions(version, version).require_client(lab.authority.ca_pem());
    for (tls, cause) in [
        (lab.tls().names(["a.example"]), Cause::UpstreamTlsName),
        (choosy(TlsVersion::Tls12), Cause::UpstreamTlsRefused),
        (choosy(TlsVersion::Tls13), Cause::UpstreamTlsRefused),
    ] {
        let backend = start(Fake::tcp("fake-1"), tls);
        let keel = Keel::start(&lab.config("tcp", TRUSTED, &urls(&[&backend])));
        let mut client = keel.client();
        assert!(client.rest().is_empty());
        until_ended(&keel, cause, 1);
        assert!(status(&keel, 0).ejected_until.is_some(), "{cause}");
        assert_eq!(backend.requests(), 0);
    }
}

#[test]
fn a_client_that_leaves_does_not_leave_a_handshake_behind() {
    let lab = Lab::new();
    for fault in [TlsFault::Hang, TlsFault::Half] {
        let backend = start(Fake::http("fake-1").behave(Behaviour::tls_fault(fault)), lab.tls());
        // Ten seconds for a handshake: what ends it here is the client.
        let keel = lab.keel(&[&backend]);
        let mut client = keel.client();
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        eventually("the handshake is under way", || backend.open_connections() == 1);
        reset_on_close(&client.socket);
        drop(client);
        eventually("it is given up", || backend.open_connections() == 0);
        until_ended(&keel, Cause::ClientGone, 1);
        assert_eq!(status(&keel, 0).ejected_until, None, "{fault:?}: not the backend's doing");
        assert!(told_of(&identity(&keel)).is_empty());
    }
}

/// What stands in clear before the handshake must reach nobody, whatever comes behind it (CVE-2026-1642).
#[test]
fn bytes_before_the_handshake_end_it_and_reach_no_client() {
    let lab = Lab::new();
    let poison = Behaviour::tls_fault(TlsFault::TalkFirst);
    let backend = start(Fake::http("fake-1").behave(poison), lab.tls());
    let keel = lab.keel(&[&backend]);
    let mut client = keel.client();
    for _ in 0..2 {
        let answer = client.get("/");
        assert_own(&answer, Cause::UpstreamNotTls);
        assert!(!answer.text().contains("in clear"));
    }
    backend.behave(Behaviour::default());
    assert_eq!(client.get("/").text(), "Hello from fake-1");
    eventually("both have failed", || backend.stats().failed_handshakes == 2);
}

/// What a backend sends instead of its part of the handshake, with the cause and the reason.
#[test]
fn what_is_no_handshake_is_told_from_one_that_is_broken() {
    let lab = Lab::new();
    let table: [(&[u8], Cause, &str); 9] = [
        (b"SSH-2.0-OpenSSH_9.9\r\n", Cause::UpstreamNotTls, "it does not speak TLS"),
        (b"\x4a\0\0\0\x0a8.0.36\0", Cause::UpstreamNotTls, "it does not speak TLS"),
        (b"\x16\x05\x05\0\x05hello", Cause::UpstreamNotTls, "it does not speak TLS"),
        (b"\x15\x03\x03\0\x02\x02\x28", Cause::UpstreamTls, "the alert HandshakeFailure"),
        (b"\x15\x03\x03\0\x02\x02\x70", Cause::UpstreamTls, "the alert UnrecognisedName"),
        (b"\x17\x03\x03\0\x05hello", Cause::UpstreamTls, "received unexpected message"),
        (b"\x15\x03\x03\0\x02\x02\x46", Cause::UpstreamTls, "it speaks no version of TLS from 1.2 on"),
        (b"\x16\x03\x03", Cause::UpstreamTls, "it closed the connection in the handshake"),
        (b"", Cause::UpstreamTls, "the connection broke in the handshake: Connection reset by peer"),
    ];
    for (bytes, cause, reason) in table {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let backend = url(&format!("https://{address}"));
        let keel = Keel::start(&lab.config("http", TRUSTED, &[backend]));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut socket = super::support::accept(&listener);
                let mut hello = [0; 4096];
                assert!(socket.read(&mut hello).unwrap() > 0);
                if bytes.is_empty() {
                    reset_on_close(&socket);
                    return;
                }
                socket.write_all(bytes).unwrap();
                socket.shutdown(std::net::Shutdown::Write).unwrap();
                // Closing with unread bytes would reset what was said away.
                let _ = socket.read_to_end(&mut Vec::new());
            });
            assert_own(&keel.client().get("/"), cause);
        });
        let told = told_of(&identity(&keel));
        assert!(told.len() == 1 && told[0].contains(reason), "{reason}: {told:?}");
    }
}

#[test]
fn a_reason_is_told_again_when_trouble_comes_back_and_not_for_every_request() {
    let lab = Lab::new();
    let backend = lab.fake();
    let keel = lab.keel_with("breaker: off, upstream_tls: {ca_file: ca.pem}", &[&backend]);
    let told = || told_of(&identity(&keel)).len();
    let mut client = keel.client();
    assert_eq!((client.get("/").status, told()), (200, 0));
    backend.behave(Behaviour::tls_fault(TlsFault::Close));
    until_left(&backend);
    for _ in 0..20 {
        assert_own(&client.get("/"), Cause::UpstreamTls);
    }
    assert_eq!(told(), 1);
    backend.behave(Behaviour::default().closing());
    assert_eq!(client.get("/").status, 200);
    backend.behave(Behaviour::tls_fault(TlsFault::Close));
    eventually("it is told once more", || {
        assert_own(&client.get("/"), Cause::UpstreamTls);
        told() == 2
    });
}
