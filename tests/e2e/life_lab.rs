//! What the `life_*` tests share beside `support`: TCP, health, access logs, and workloads with pauses.

use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use evenkeel::config::model::{
    AccessLog, BackendAddress, BackendConfig, BackendState, Config, HealthCheck, LogFormat, LogPath, Portion,
    Protocol, Share,
};
use evenkeel::message::{BackendId, Cause};
use evenkeel::targets::{BackendStatus, Health};
use evenkeel::telemetry::cells::BackendReading;
use evenkeel::tick::Tick;
use evenkeel::worker::Ended;
use fake_backend::{Fake, Running};

use super::support::{self, Answer, Client, Keel, eventually, quick_health};

/// So many TCP backends, called `fake-1`, `fake-2`, …, made by `build`.
pub fn tcp_fakes(count: usize, build: impl Fn(Fake) -> Fake) -> Vec<Running> {
    (1..=count).map(|number| build(Fake::tcp(format!("fake-{number}"))).start_in_thread().unwrap()).collect()
}

/// In front of these TCP backends, health checks off, with changes.
pub fn tcp(backends: &[&Running], change: impl FnOnce(&mut Config)) -> Keel {
    let addresses: Vec<_> = backends.iter().map(|running| running.addr()).collect();
    let mut config = support::config(Protocol::Tcp, &addresses);
    change(&mut config);
    Keel::start(&config)
}

/// Probes every backend with GET /health.
pub fn probe(config: &mut Config, health: HealthCheck) {
    config.targets[0].health = Some(health);
    for backend in &mut config.targets[0].backends {
        backend.probe_path = Some("/health".into());
    }
}

/// Probes every backend with GET /health, quickly.
pub fn probe_quickly(config: &mut Config) {
    probe(config, quick_health());
}

/// A backend by host name.
pub fn by_name(host: &str, port: u16) -> BackendConfig {
    let address = BackendAddress::Host { host: host.into(), port };
    BackendConfig {
        name: format!("{host}:{port}"),
        address,
        probe_path: None,
        tls: None,
        portion: Portion::default(),
        state: BackendState::Up,
        state_by: None,
        dialing: Default::default(),
        found: None,
    }
}

/// What the `nth` backend is now.
pub fn status(keel: &Keel, nth: usize) -> BackendStatus {
    keel.server.targets()[0].status()[nth].clone()
}

/// Waits until the `nth` backend is in this state, and until requests are picked for accordingly.
pub fn until(keel: &Keel, nth: usize, health: Health) -> BackendStatus {
    eventually(health.as_str(), || status(keel, nth).health == health);
    // Its status says so a moment before it is in or out. Whoever asks for the whole waits for who is changing it.
    let _ = keel.server.targets()[0].overview(Tick::ZERO);
    status(keel, nth)
}

/// What the `nth` backend has counted.
pub fn reading(keel: &Keel, nth: u32) -> BackendReading {
    keel.server.readings().backend(BackendId(nth)).cloned().unwrap_or_default()
}

/// Waits until `count` records ended with `cause`.
pub fn until_ended(keel: &Keel, cause: Cause, count: u64) {
    eventually(cause.token(), || keel.server.readings().ended_with(cause) == count);
}

/// Asserts that an answer is one of our own for `cause`.
#[track_caller]
pub fn assert_own(answer: &Answer, cause: Cause) {
    assert_eq!(answer.status, cause.status(), "{answer:?}");
    assert!(answer.text().contains(&format!("cause: {}\n", cause.token())), "{}", answer.text());
    assert!(!answer.cut);
}

/// Asks to end and waits for it.
pub fn end(keel: Keel) -> Ended {
    keel.server.shutdown().advance();
    keel.server.wait().unwrap()
}

/// A `POST path` with this body.
pub fn post(path: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// A raw connection.
pub fn connect(address: SocketAddr) -> TcpStream {
    Client::connect(address).socket
}

/// Everything until the peer's end; `Err`: it was a reset, with what came before.
pub fn read_to_end(socket: &mut TcpStream) -> Result<Vec<u8>, Vec<u8>> {
    let mut all = Vec::new();
    match socket.read_to_end(&mut all) {
        Ok(_) => Ok(all),
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "after {} bytes", all.len());
            Err(all)
        }
    }
}

/// Makes the close of this socket a reset.
pub fn reset_on_close(socket: &TcpStream) {
    socket2::SockRef::from(socket).set_linger(Some(Duration::ZERO)).unwrap();
}

/// Waits until connects are refused. One whose handshake is ignored meanwhile counts as not yet.
pub fn until_refused(address: SocketAddr) {
    eventually("connects are refused", || {
        TcpStream::connect_timeout(&address, Duration::from_millis(100))
            .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    });
}

/// A pause that belongs to a workload; nothing is synchronised by it.
#[expect(clippy::disallowed_methods, reason = "the pause is what the test is about")]
pub fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

/// Time as a bystander sees it.
pub struct Watch(Instant);

impl Watch {
    #[expect(clippy::disallowed_methods, reason = "there is no runtime here")]
    pub fn start() -> Watch {
        Watch(Instant::now())
    }

    #[expect(clippy::disallowed_methods, reason = "there is no runtime here")]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// An access log in a folder of its own.
pub struct LogFile {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl LogFile {
    /// Makes `config` write one.
    pub fn of(config: &mut Config, format: LogFormat) -> LogFile {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        config.access_log = Some(AccessLog { path: LogPath::File(path.clone()), format, sample: Share::ALL });
        LogFile { _folder: folder, path }
    }

    /// Its lines. Complete once the server has ended.
    pub fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.path).unwrap().lines().map(str::to_owned).collect()
    }

    /// Its lines, parsed.
    pub fn records(&self) -> Vec<serde_json::Value> {
        self.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A listening socket that answers no handshake any more: its queue is full.
pub struct Deaf {
    pub address: SocketAddr,
    _sockets: Vec<socket2::Socket>,
}

impl Deaf {
    pub fn on(ip: IpAddr) -> Deaf {
        let socket = |_| socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        let listener = socket(());
        listener.bind(&SocketAddr::new(ip, 0).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let mut sockets = vec![listener];
        loop {
            let filler = socket(());
            let late = filler.connect_timeout(&address, Duration::from_millis(100)).is_err();
            sockets.push(filler);
            if late {
                return Deaf { address: address.as_socket().unwrap(), _sockets: sockets };
            }
        }
    }
}
