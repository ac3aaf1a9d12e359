//! Clients and backends of UDP.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::support::PATIENCE;
use super::support::process::Process;

/// A backend that answers each datagram with its name, a colon and what it got, as often as it is told to.
pub struct Echo {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    heard: AtomicU64,
    times: AtomicU64,
    is_over: AtomicBool,
    is_held: AtomicBool,
}

impl Echo {
    pub fn start(name: &str) -> Echo {
        Echo::start_at(name, SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    pub fn start_at(name: &str, address: SocketAddr) -> Echo {
        let socket = UdpSocket::bind(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let address = socket.local_addr().unwrap();
        let shared = Arc::new(Shared { times: AtomicU64::new(1), ..Shared::default() });
        let (of_thread, name) = (Arc::clone(&shared), name.to_owned());
        let thread = std::thread::spawn(move || {
            let mut space = vec![0; 65_536];
            while !of_thread.is_over.load(Ordering::Relaxed) {
                if of_thread.is_held.load(Ordering::Relaxed) {
                    std::thread::park_timeout(Duration::from_millis(5));
                    continue;
                }
                let Ok((length, from)) = socket.recv_from(&mut space) else { continue };
                of_thread.heard.fetch_add(1, Ordering::Relaxed);
                let answer = [name.as_bytes(), b":", &space[..length]].concat();
                for _ in 0..of_thread.times.load(Ordering::Relaxed) {
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        Echo { address, shared, thread: Some(thread) }
    }

    /// How many datagrams it got.
    pub fn heard(&self) -> u64 {
        self.shared.heard.load(Ordering::Relaxed)
    }

    /// Whether it lets wait what comes.
    pub fn hold(&self, is_held: bool) {
        self.shared.is_held.store(is_held, Ordering::Relaxed);
    }

    /// From now on it answers so many times.
    pub fn answer(&self, times: u64) {
        self.shared.times.store(times, Ordering::Relaxed);
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// So many of them, called `b0`, `b1`, ….
pub fn echoes(count: usize) -> Vec<Echo> {
    (0..count).map(|number| Echo::start(&format!("b{number}"))).collect()
}

/// A config with one target of these, called `game`; `more` stands in it.
pub fn config(backends: &[Echo], more: &str) -> String {
    let line = |(number, backend): (usize, &Echo)| {
        format!("      - {{name: b{number}, host: 127.0.0.1, port: {}}}\n", backend.address.port())
    };
    let all: String = backends.iter().enumerate().map(line).collect();
    format!(
        "workers: 2\ntargets:\n  game:\n    protocol: udp\n    listener: 127.0.0.1:0\n{more}    backends:\n{all}"
    )
}

/// A client with a port of its own.
pub struct UdpClient(UdpSocket);

impl UdpClient {
    pub fn to(address: SocketAddr) -> UdpClient {
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        UdpClient::from(any, address)
    }

    pub fn from(own: &str, address: SocketAddr) -> UdpClient {
        let socket = UdpSocket::bind(own).unwrap();
        socket.connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        UdpClient(socket)
    }

    pub fn send(&self, bytes: &[u8]) {
        self.0.send(bytes).unwrap();
    }

    /// What comes next.
    pub fn receive(&self) -> Vec<u8> {
        let mut space = vec![0; 65_536];
        let length = self.0.recv(&mut space).expect("an answer in time");
        space.truncate(length);
        space
    }

    /// What comes within this time.
    pub fn receive_within(&self, time: Duration) -> Option<Vec<u8>> {
        self.0.set_read_timeout(Some(time)).unwrap();
        let mut space = vec![0; 65_536];
        let length = self.0.recv(&mut space);
        self.0.set_read_timeout(Some(PATIENCE)).unwrap();
        space.truncate(length.ok()?);
        Some(space)
    }

    /// Asks and gives the answer as text.
    pub fn ask(&self, text: &str) -> String {
        self.send(text.as_bytes());
        String::from_utf8(self.receive()).unwrap()
    }
}

fn scrape(process: &Process) -> String {
    let mut stream = UnixStream::connect(process.socket()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The sum of a metric's samples that have this among their labels.
pub fn metric(process: &Process, family: &str, labels: &str) -> u64 {
    let text = scrape(process);
    let lines = text.lines().filter(|line| {
        line.strip_prefix(family).is_some_and(|rest| rest.starts_with(['{', ' '])) && line.contains(labels)
    });
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64).sum()
}

/// The local port of a socket of this process that is connected to this port.
pub fn peer_of(process: u32, port: u16) -> Option<u16> {
    let table = std::fs::read_to_string(format!("/proc/{process}/net/udp")).unwrap();
    table.lines().skip(1).find_map(|line| {
        let mut cells = line.split_whitespace().skip(1);
        let (local, remote) = (cells.next()?, cells.next()?);
        let port_of = |cell: &str| u16::from_str_radix(cell.rsplit(':').next()?, 16).ok();
        (port_of(remote)? == port).then(|| port_of(local))?
    })
}
