//! The load that the demo sends itself. Requests come when their time has come, whatever the answers take (`arrivals`), over a
//! bounded number of connections (`client`). One that finds all of them taken, or comes too late, is left out and counted.

mod arrivals;
mod client;
mod mix;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fake_backend::Authority;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout};

use self::arrivals::DemoArrivals;
use self::client::{DemoClient, greet, listen};
use self::mix::{DemoWay, Mix};
use super::config::DemoPorts;
use super::terminal::Terminal;

/// Requests that are under way at once, at most.
const AT_ONCE: usize = 128;
/// Who waits for longer leaves.
const PATIENCE: Duration = Duration::from_secs(10);
/// What comes later than this was not sent in time: this machine has other things to do, or was asleep.
const LATE: Duration = Duration::from_millis(250);
/// When it is told for the first time that requests were left out, and how often, at most. Not at once, or it would be one.
const TELL_FIRST: Duration = Duration::from_secs(1);
const TELL_EVERY: Duration = Duration::from_secs(60);

/// A load that runs until it is dropped.
pub(super) struct DemoLoad {
    per_second: u32,
    http: Arc<DemoClient>,
    https: Arc<DemoClient>,
    tcp: SocketAddr,
    udp: SocketAddr,
    host: String,
}

/// What became of the requests so far.
#[derive(Debug)]
struct Skipped {
    count: u64,
    of: u64,
    /// From when on it is told again.
    tell: Duration,
}

impl DemoLoad {
    /// So many requests a second for the listeners at these ports.
    pub(super) fn new(per_second: u32, ports: &DemoPorts, authority: &Authority) -> anyhow::Result<DemoLoad> {
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.ca_pem().as_bytes())?)?;
        let trust = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(DemoLoad {
            per_second,
            http: Arc::new(DemoClient::new(at(ports.http), None)),
            https: Arc::new(DemoClient::new(at(ports.https), Some(Arc::new(trust)))),
            tcp: at(ports.tcp),
            udp: at(ports.udp),
            host: format!("localhost:{}", ports.http),
        })
    }

    /// Sends requests for ever.
    pub(super) async fn run(self, terminal: &Terminal) {
        if self.per_second == 0 {
            return;
        }
        let (begun, room) = (Instant::now(), Arc::new(Semaphore::new(AT_ONCE)));
        let (mut mix, mut skipped) =
            (Mix::new(self.host.clone(), rand::random()), Skipped { count: 0, of: 0, tell: TELL_FIRST });
        for due in DemoArrivals::new(self.per_second, rand::random()) {
            sleep_until(begun + due).await;
            skipped.of += 1;
            let place = Arc::clone(&room).try_acquire_owned();
            let (false, Ok(place)) = (begun.elapsed() > due + LATE, place) else {
                skipped.count += 1;
                if let Some(line) = skipped.line(begun.elapsed()) {
                    terminal.say(&line);
                }
                continue;
            };
            let (way, request) = mix.draw();
            let (http, https) = (Arc::clone(&self.http), Arc::clone(&self.https));
            let (tcp, udp) = (self.tcp, self.udp);
            tokio::spawn(async move {
                let asked = async {
                    match way {
                        DemoWay::Http => http.ask(request).await,
                        DemoWay::Https => https.ask(request).await,
                        DemoWay::Tcp => listen(tcp).await,
                        DemoWay::Udp => greet(udp).await,
                    }
                };
                // What went wrong is to be seen on the page, as it would be with anybody else's requests.
                let _ = timeout(PATIENCE, asked).await;
                drop(place);
            });
        }
    }
}

impl Skipped {
    /// What is to be told of it, now and then.
    fn line(&mut self, since: Duration) -> Option<String> {
        if since < self.tell {
            return None;
        }
        self.tell = since + TELL_EVERY;
        Some(format!("The load left out {} of {} requests: no room for more at once", self.count, self.of))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use fake_backend::{Behaviour, Fake};

    use super::*;

    #[tokio::test]
    async fn what_nobody_answers_does_not_pile_up() {
        let silent = Fake::http("one").behave(Behaviour::hang()).start_in_thread().expect("it starts");
        let port = silent.port();
        let ports = DemoPorts { http: port, https: port, tcp: port, udp: port, admin: port };
        let load = DemoLoad::new(10_000, &ports, &Authority::new("test")).expect("a load");
        let (said, lines) = sync_channel(1);
        let running = tokio::spawn(async move { load.run(&Terminal::to(said)).await });
        let line = tokio::task::spawn_blocking(move || lines.recv_timeout(PATIENCE)).await.expect("it waits");
        let open = silent.open_connections();
        running.abort();
        let line = line.expect("it says that it leaves out some");
        assert!(line.starts_with("The load left out ") && line.ends_with('\n'), "{line}");
        assert!((2..=AT_ONCE as u64).contains(&open), "{open} connections");
    }

    #[test]
    fn what_is_left_out_is_told_now_and_then() {
        let mut skipped = Skipped { count: 1, of: 10, tell: TELL_FIRST };
        assert_eq!(skipped.line(TELL_FIRST.mul_f64(0.9)), None);
        skipped.count = 5;
        assert!(skipped.line(TELL_FIRST).is_some_and(|line| line.contains("left out 5 of 10 requests")));
        assert_eq!(skipped.line(TELL_EVERY), None);
        skipped.of = 50;
        assert!(skipped.line(TELL_FIRST + TELL_EVERY).is_some_and(|line| line.contains("5 of 50")));
    }
}
