//! Probes that speak no HTTP, or go to another port.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use evenkeel::config::model::{BackendAddress, Bind, Config, HealthCheck};
use evenkeel::config::{self, Flags};
use evenkeel::targets::{BackendStatus, Health, Source};

use super::life_lab::{probe, until};
use super::support::{Keel, eventually, fakes, quick_health};

/// A server of a few words: it waits for `hears` and then says what it is told to.
struct Server {
    port: u16,
    says: Arc<Mutex<Vec<u8>>>,
}

impl Server {
    fn start(hears: &'static [u8], says: &[u8]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let says = Arc::new(Mutex::new(says.to_vec()));
        let words = Arc::clone(&says);
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let Ok(mut socket) = socket else { return };
                let mut heard = vec![0; hears.len()];
                // Who asks for something else, or leaves, gets nothing.
                if socket.read_exact(&mut heard).is_ok() && heard == hears {
                    let _ = socket.write_all(&words.lock().unwrap());
                }
            }
        });
        Server { port, says }
    }

    fn say(&self, words: &[u8]) {
        *self.says.lock().unwrap() = words.to_vec();
    }
}

/// The published example, in front of these servers.
fn databases(ports: [u16; 3]) -> Config {
    let path = Path::new("fixtures/config/valid/databases.yaml");
    let mut config = config::load(Some(path), &Flags::default(), &|_| None).unwrap().config;
    for (target, port) in config.targets.iter_mut().zip(ports) {
        target.backends[0].address = BackendAddress::Host { host: "127.0.0.1".into(), port };
        let health = target.health.take().unwrap();
        let HealthCheck { interval, rise, fall, .. } = quick_health();
        target.health = Some(HealthCheck { interval, rise, fall, ..health });
    }
    for listener in &mut config.listeners {
        listener.binds = vec![Bind::Tcp("127.0.0.1:0".parse().unwrap())];
    }
    config
}

fn status(keel: &Keel, target: usize) -> BackendStatus {
    keel.server.targets()[target].status().remove(0)
}

#[test]
fn redis_postgres_and_mail_are_probed_in_their_own_words() {
    let redis = Server::start(b"PING\r\n", b"+PONG\r\n");
    let postgres = Server::start(b"\0\0\0\x08\x04\xd2\x16\x2f", b"N");
    let mail = Server::start(b"", b"220 mail.internal ESMTP\r\n");
    let keel = Keel::start(&databases([redis.port, postgres.port, mail.port]));
    for target in 0..3 {
        eventually("it is up", || status(&keel, target).health == Health::Up);
    }
    redis.say(b"-LOADING dataset\r\n");
    postgres.say(b"E");
    mail.say(b"421 closing\r\n");
    for (target, reason) in [
        (0, "it said \"-LOADING dataset\\r\\n\", not \"+PONG\", it closed"),
        (1, "it said \"E\", not \"N\", it closed"),
        (2, "it said \"421 closing\\r\\n\", not \"220 \", it closed"),
    ] {
        eventually("it is down", || status(&keel, target).health == Health::Down);
        let status = status(&keel, target);
        assert_eq!((status.source, &*status.reason), (Source::Probe, reason));
    }
    redis.say(b"+PONG\r\n");
    eventually("it is back", || status(&keel, 0).health == Health::Up);
    assert_eq!(&*status(&keel, 0).reason, "2 probes passed");
}

#[test]
fn another_port_of_the_backend_is_asked_and_requests_go_where_they_went() {
    let backends = fakes(2);
    let keel = Keel::with(&[&backends[0]], |config| {
        probe(config, HealthCheck { port: Some(backends[1].port()), ..quick_health() });
    });
    until(&keel, 0, Health::Up);
    assert_eq!(keel.client().get("/").text(), "Hello from fake-1");
    assert_eq!((backends[0].probes(), backends[1].requests()), (0, 0));
    backends[1].set_healthy(false);
    until(&keel, 0, Health::Down);
    assert_eq!(backends[0].probes(), 0);
}
