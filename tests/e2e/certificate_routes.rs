//! Routes by what a client's certificate says, over real TLS.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use evenkeel::config::model::route::{Action, CertificateMatch, PathPattern, Respond};
use evenkeel::config::model::{Config, Protocol, RouteConfig, Wildcard};
use fake_backend::Issued;
use rustls::SupportedProtocolVersion;

use super::support::recording;
use super::support::tls::{Secure, TLS12, TLS13, TlsSocket, client_config};

/// A route that answers with this status, for whom these patterns stand.
fn told(status: u16, subject: &str, name: &str) -> Arc<RouteConfig> {
    let patterns = |text: &str| text.split_whitespace().map(Wildcard::new).collect();
    let mut route = RouteConfig::catch_all("web");
    route.name = status.to_string();
    route.matches.path = PathPattern::Prefix("/".to_owned());
    route.matches.certificate = CertificateMatch { subjects: patterns(subject), names: patterns(name) };
    route.action = Action::Respond(Arc::new(Respond {
        status,
        body: Vec::new(),
        content_type: None,
        headers: Vec::new(),
    }));
    Arc::new(route)
}

fn routed(config: &mut Config) {
    config.listeners[0].routes = vec![
        told(201, "*CN=robot*", ""),
        told(202, "", "*.Robots.example spiffe://shop/*"),
        told(203, "*CN=robot*", "r2.robots.example"),
        told(204, "*", "10.*"),
        told(299, "", ""),
    ];
}

/// What is answered, twice on one connection: `HTTP/1.1 200`.
fn statuses(
    secure: &Secure,
    versions: &[&'static SupportedProtocolVersion],
    identity: Option<&Issued>,
) -> [u16; 2] {
    let config = Arc::new(client_config(&[secure.authority.ca_pem()], versions, identity));
    let mut socket = TlsSocket::open(secure.keel.address(), &config, "localhost").unwrap();
    [(); 2].map(|()| {
        socket
            .write_all(b"GET / HTTP/1.1\r\nHost: test\r\nClient-Cert: :bGll:\r\nX-Forwarded-Client-Cert: Subject=\"CN=robot\"\r\n\r\n")
            .unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        String::from_utf8(head).unwrap()[9..12].parse().unwrap()
    })
}

#[test]
fn a_certificate_decides_which_route_a_request_has() {
    let backend = recording();
    let secure =
        Secure::with(Protocol::Http, &[&backend], ", client_ca: ca.pem, client_auth: optional", routed);
    let issued = |subject: &str, names: &[&str]| {
        secure.authority.leaf(names.iter().copied()).subject(subject).for_client().issue()
    };
    for versions in [TLS12, TLS13] {
        for (subject, names, status) in [
            ("robot", &[][..], 201),
            ("robot7", &["other.example"][..], 201),
            ("Robot", &[], 299),
            ("else", &["a.robots.EXAMPLE"], 202),
            ("else", &["robots.example"], 299),
            ("robot", &["R2.robots.example"], 203),
            ("else", &["10.1.2.3"], 204),
            ("a, CN=robot", &[], 299),
        ] {
            let identity = issued(subject, names);
            assert_eq!(statuses(&secure, versions, Some(&identity)), [status; 2], "{subject} {names:?}");
        }
        // Whatever its headers say, a client without a certificate is nobody.
        assert_eq!(statuses(&secure, versions, None), [299; 2]);
    }
}

#[test]
fn a_session_that_goes_on_is_still_that_of_its_certificate() {
    let backend = recording();
    let secure = Secure::with(Protocol::Http, &[&backend], ", client_ca: ca.pem", routed);
    let identity = secure.authority.issue_client("robot");
    let config = Arc::new(client_config(&[secure.authority.ca_pem()], TLS13, Some(&identity)));
    for is_resumed in [false, true] {
        let mut socket = TlsSocket::open(secure.keel.address(), &config, "localhost").unwrap();
        let answer =
            socket.exchange(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n", |came| came.ends_with(b"\r\n\r\n"));
        assert!(answer.starts_with(b"HTTP/1.1 201 "), "{}", String::from_utf8_lossy(&answer));
        assert_eq!(socket.is_resumed(), is_resumed);
    }
}
