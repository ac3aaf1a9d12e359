//! Where things get stuck: evenkeel as a process, in front of backends that say nothing, half of something, or do not
//! even read.

use std::io::{ErrorKind, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use fake_backend::{Behaviour, Ending, Fake, Fault, Running, TcpMode};

use super::support::process::Process;
use super::support::{Client, eventually, settled};

/// More than all buffers between a client and a backend hold.
const ENDLESS: u64 = 1 << 40;

/// The deadlines of a target, as its keys are called.
pub const DEADLINES: [&str; 6] = ["head", "keep_alive", "first_byte", "idle", "tunnel", "connect"];

/// A process, its backends, and what is held open.
pub struct Lab {
    pub process: Process,
    pub http: Running,
    pub tcp: Running,
    /// The kernel accepts for it, and nobody ever reads.
    _mute: TcpListener,
    /// The same, for tests that accept.
    by_hand: TcpListener,
    /// Its backlog is full: a handshake is not answered.
    _full: FullBacklog,
    /// Connections that were accepted by hand.
    held: Vec<TcpStream>,
}

impl Lab {
    /// Every deadline is an hour but the one called `short`. `probe` is the timeout of health checks.
    pub fn start(short: &str, probe: &str) -> Lab {
        let (mute, by_hand) = (listener(), listener());
        let http = Fake::http("fake-1").start_in_thread().unwrap();
        let tcp = Fake::tcp("fake-1").start_in_thread().unwrap();
        let full = FullBacklog::new();
        let timeouts = |of: &[&str]| {
            let each = of.iter().map(|&key| format!("{key}: {}", if key == short { "150ms" } else { "1h" }));
            each.collect::<Vec<_>>().join(", ")
        };
        let mut config = String::from("workers: 1\ntargets:\n");
        let mut target = |name: &str, protocol: &str, backend: SocketAddr, health: &str| {
            let of = if protocol == "http" { &DEADLINES[..] } else { &DEADLINES[4..] };
            config.push_str(&format!(
                "  {name}:\n    protocol: {protocol}\n    listener: \"127.0.0.1:0\"\n    health_check: {health}\n    \
                 timeouts: {{{}}}\n    backends: [{{host: 127.0.0.1, port: {}}}]\n",
                timeouts(of),
                backend.port()
            ));
        };
        let (mute_at, by_hand_at) = (mute.local_addr().unwrap(), by_hand.local_addr().unwrap());
        target("web", "http", http.addr(), "off");
        target("mute", "http", mute_at, "off");
        target("full", "http", full.address, "off");
        target("by_hand", "http", by_hand_at, "off");
        target("tcp", "tcp", tcp.addr(), "off");
        target("tcp_mute", "tcp", mute_at, "off");
        target("tcp_by_hand", "tcp", by_hand_at, "off");
        target("tcp_full", "tcp", full.address, "off");
        let check = format!("{{path: /health, interval: 1h, timeout: {probe}}}");
        target("probed_mute", "http", mute_at, &check);
        target("probed_full", "http", full.address, &check);
        let connects = format!("{{interval: 1h, timeout: {probe}}}");
        target("probed_connect", "tcp", full.address, &connects);
        config.push_str(&format!(
            "  plain:\n    protocol: http\n    listener: \"127.0.0.1:0\"\n    backends: [{{host: 127.0.0.1, port: {}}}]\n",
            http.port()
        ));
        Lab {
            process: Process::start(&config, 12),
            http,
            tcp,
            _mute: mute,
            by_hand,
            _full: full,
            held: Vec::new(),
        }
    }

    /// A client of this target.
    pub fn client(&self, target: &str) -> Client {
        Client::connect(self.process.address(target))
    }

    /// A client that sends this and no more.
    pub fn says(&self, target: &str, bytes: &str) -> Client {
        let mut client = self.client(target);
        client.send(bytes);
        client
    }

    /// A client that asks, and the backend's whole answer is this.
    pub fn hears(&self, request: &str, answer: &str) -> Client {
        let bytes = answer.as_bytes().to_vec();
        let fault =
            if answer.is_empty() { Fault::Hang } else { Fault::Raw { bytes, ending: Ending::KeepOpen } };
        self.http.behave(Behaviour::fault(fault).times(1));
        let client = self.says("web", request);
        eventually("the backend has the request", || self.http.behaviour() == Behaviour::default());
        client
    }

    /// A client whose upgrade was granted; what it sends is echoed.
    pub fn upgraded(&self) -> Client {
        let mut client = self.says(
            "web",
            "GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        );
        assert_eq!(client.answer().status, 101);
        client
    }

    /// A client of a TCP backend in this mode.
    pub fn tcp_in(&self, mode: TcpMode) -> Client {
        self.tcp.behave(Behaviour::tcp(mode).times(1));
        let client = self.client("tcp");
        eventually("the backend has the connection", || self.tcp.behaviour() == Behaviour::default());
        client
    }

    /// A client of a TCP backend that has sent its end and still takes.
    pub fn half_closed_backend(&mut self) -> Client {
        let client = self.client("tcp_by_hand");
        let accepted = self.by_hand.accept().unwrap().0;
        accepted.shutdown(Shutdown::Write).unwrap();
        self.held.push(accepted);
        client
    }

    /// A client whose upgrade was granted by a backend that then only holds the connection.
    pub fn upgraded_by_hand(&mut self, request: &str) -> Client {
        let mut client = self.says("by_hand", request);
        let mut accepted = self.by_hand.accept().unwrap().0;
        let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        accepted.write_all(answer.as_bytes()).unwrap();
        self.held.push(accepted);
        assert_eq!(client.answer().status, 101);
        client
    }

    /// The source of bytes that never end.
    pub fn endless() -> TcpMode {
        TcpMode::Source(ENDLESS)
    }

    /// An answer that never ends is asked for; the client takes `taken` bytes of it.
    pub fn asks_for_endless(&self, framing: &str, taken: usize) -> Client {
        let mut client = self.says("web", &format!("GET /{framing}/{ENDLESS} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(client.take(taken).len(), taken);
        client
    }

    /// A client without a request for which all is well.
    pub fn good(&self) -> u16 {
        self.client("plain").get("/").status
    }
}

/// Sends until nothing on the way takes any more.
pub fn fill(client: Client) -> Client {
    client.socket.set_nonblocking(true).unwrap();
    let piece = [b'a'; 64 * 1024];
    let mut total = 0;
    settled("all buffers are full", || {
        loop {
            match (&client.socket).write(&piece) {
                Ok(count) => total += count as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return total,
                // Its deadline came first.
                Err(_) => return 0,
            }
        }
    });
    client.socket.set_nonblocking(false).unwrap();
    client
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// A listening socket that answers no handshake.
struct FullBacklog {
    address: SocketAddr,
    _socket: socket2::Socket,
    _filling: Vec<TcpStream>,
}

impl FullBacklog {
    fn new() -> FullBacklog {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        socket.listen(0).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let mut filling = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(150)) {
            filling.push(stream);
            assert!(filling.len() < 64, "the backlog can't be filled here");
        }
        FullBacklog { address, _socket: socket, _filling: filling }
    }
}
