//! Probes of backends that speak HTTP/2 and nothing else: by a path, and by `grpc.health.v1`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use evenkeel::config::model::tls::UpstreamTls;
use evenkeel::config::model::{Config, HealthCheck, Http2, Protocol, UpstreamProtocol};
use evenkeel::proxy::http::h2::frame;
use evenkeel::targets::BackendCondition;
use rustls::pki_types::ServerName;

use super::support::grpc::framed;
use super::support::h2_backend::RawH2;
use super::support::tls::Secure;
use super::support::{Keel, config, eventually, quick_health, recording};

const HEAD: [(&str, &str); 1] = [("content-type", "application/grpc")];

/// In front of one backend that is probed in this way.
fn keel(address: SocketAddr, upstream: UpstreamProtocol, health: HealthCheck) -> Keel {
    let mut config = config(Protocol::Http, &[address]);
    config.workers = 1;
    config.targets[0].upstream = upstream;
    config.targets[0].health = Some(health);
    Keel::start(&config)
}

fn comes_to(keel: &Keel, condition: BackendCondition) {
    eventually(&format!("{condition:?}"), || keel.server.targets()[0].backends[0].condition() == condition);
}

/// Why its latest probe has failed.
fn fault(keel: &Keel) -> String {
    let probe = keel.server.targets()[0].status()[0].last_probe.clone();
    probe.and_then(|probe| probe.fault).map(|fault| fault.to_string()).unwrap_or_default()
}

/// Paths with what was sent to them.
type Sent = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// What a server says about its health: a serving status, or from 100 on the `grpc-status` that it ends with.
fn server(says: &Arc<AtomicU8>, asked: &Sent) -> RawH2 {
    let (says, asked) = (Arc::clone(says), Arc::clone(asked));
    RawH2::start(move |_, line| {
        line.settings(&[]);
        let mut path = String::new();
        while let Some(came) = line.next() {
            match came.kind {
                frame::HEADERS => path = line.request(&came).path,
                frame::DATA if !came.payload.is_empty() => {
                    asked.lock().unwrap().push((std::mem::take(&mut path), came.payload));
                    match says.load(Ordering::Acquire) {
                        ended @ 100.. => {
                            let number = (ended - 100).to_string();
                            line.head(came.stream, true, 200, &[HEAD[0], ("grpc-status", &number)]);
                        }
                        status => {
                            line.head(came.stream, false, 200, &HEAD);
                            line.frame(frame::DATA, 0, came.stream, &framed(&[0x08, status]));
                            line.trailers(came.stream, &[("grpc-status", "0")]);
                        }
                    }
                }
                _ => {}
            }
        }
    })
}

#[test]
fn a_backend_is_as_well_as_it_says_by_grpc() {
    let (says, asked) = (Arc::new(AtomicU8::new(1)), Arc::default());
    let backend = server(&says, &asked);
    for (service, message) in [("", vec![0, 0, 0, 0, 0]), ("a.B", framed(b"\x0a\x03a.B"))] {
        says.store(1, Ordering::Release);
        let health = HealthCheck { grpc: Some(service.to_owned()), ..quick_health() };
        let keel = keel(backend.address, UpstreamProtocol::Grpc, health);
        comes_to(&keel, BackendCondition::Up);
        for (word, reason) in [
            (2, "it says NOT_SERVING"),
            (3, "it says SERVICE_UNKNOWN"),
            (112, "grpc-status 12 (unimplemented): it has no grpc.health.v1"),
            (105, "grpc-status 5 (not_found): it knows no such service"),
        ] {
            says.store(word, Ordering::Release);
            comes_to(&keel, BackendCondition::Down);
            eventually(reason, || fault(&keel) == reason);
            says.store(1, Ordering::Release);
            comes_to(&keel, BackendCondition::Up);
        }
        let last = asked.lock().unwrap().pop();
        assert_eq!(last, Some(("/grpc.health.v1.Health/Check".to_owned(), message)));
    }
}

#[test]
fn a_server_of_http_1_1_is_no_grpc() {
    let backend = recording();
    let health = HealthCheck { grpc: Some(String::new()), ..quick_health() };
    let keel = keel(backend.addr(), UpstreamProtocol::Grpc, health);
    comes_to(&keel, BackendCondition::Down);
    eventually("it is told", || fault(&keel) == "not HTTP/2");
}

#[test]
fn a_path_is_asked_for_in_what_requests_are_spoken_in() {
    let backend = recording();
    // With prior knowledge, and with TLS where HTTP/2 is agreed on.
    let ask = |address: SocketAddr, tls: Option<Arc<UpstreamTls>>| {
        let mut config = config(Protocol::Http, &[address]);
        config.targets[0].upstream = UpstreamProtocol::H2;
        config.targets[0].health = Some(quick_health());
        config.targets[0].backends[0].probe_path = Some("/health?x=y".to_owned());
        config.targets[0].backends[0].tls = tls;
        let front = Keel::start(&config);
        comes_to(&front, BackendCondition::Up);
        let head = backend.take_requests()[0].head_text();
        assert!(head.starts_with("GET /health?x=y HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("Via: 2.0 evenkeel\r\n"), "{head}");
        assert!(head.to_lowercase().contains("user-agent: evenkeel-probe\r\n"), "{head}");
    };
    let http2 = |config: &mut Config| config.listeners[0].http2 = Some(Http2::default());
    ask(Keel::with(&[&backend], http2).address(), None);
    let secure = Secure::with(Protocol::Http, &[&backend], "", http2);
    let name = ServerName::try_from("localhost").unwrap();
    let tls = UpstreamTls { authorities: None, name, identity: None, insecure: true };
    ask(secure.keel.address(), Some(Arc::new(tls.clone())));
    // Who does not agree is told of.
    let old = Secure::with(Protocol::Http, &[&backend], "", |config| config.listeners[0].http2 = None);
    let mut config = config(Protocol::Http, &[old.keel.address()]);
    config.targets[0].upstream = UpstreamProtocol::H2;
    config.targets[0].health = Some(quick_health());
    config.targets[0].backends[0].probe_path = Some("/".to_owned());
    config.targets[0].backends[0].tls = Some(Arc::new(tls));
    let front = Keel::start(&config);
    comes_to(&front, BackendCondition::Down);
    let fault = fault(&front);
    assert!(fault.starts_with("TLS: "), "{fault}");
}
