//! Where things get stuck: evenkeel as a process, in front of backends that say nothing, half of something, or do not
//! even read.

use std::io::{ErrorKind, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fake_backend::{Behaviour, Ending, Fake, Fault, Running, TcpMode, TlsOptions};
use rustls::ClientConnection;

use super::stuck_tls::Secrets;
use super::support::process::Process;
use super::support::{Client, accept, eventually, settled};

/// More than all buffers between a client and a backend hold.
const ENDLESS: u64 = 1 << 40;

/// The deadlines of a target, as its keys are called.
pub const DEADLINES: [&str; 7] = ["head", "keep_alive", "first_byte", "idle", "tunnel", "connect", "tls"];

/// A process, its backends, and what is held open.
pub struct Lab {
    pub process: Process,
    pub http: Running,
    /// Behaves for one request as it is told; only whoever tells it asks it, and waits until that was taken.
    told: Running,
    tcp_told: Running,
    /// Sends bytes that never end.
    _source: Running,
    /// Speaks TLS, and then answers nothing.
    _hang: Running,
    pub secrets: Secrets,
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
        let told = Fake::http("fake-2").start_in_thread().unwrap();
        let tcp_told = Fake::tcp("fake-3").start_in_thread().unwrap();
        let source = Fake::tcp("fake-4").behave(Behaviour::tcp(TcpMode::Source(ENDLESS)));
        let source = source.start_in_thread().unwrap();
        let hang =
            Fake::http("fake-5").tls(TlsOptions::new()).behave(Behaviour::hang()).start_in_thread().unwrap();
        let (full, secrets) = (FullBacklog::new(), Secrets::new());
        let mut config = String::from("workers: 1\ntargets:\n");
        let mut target = |name: &str, protocol: &str, backend: SocketAddr, more: &str| {
            let keys = if protocol == "tcp" { &DEADLINES[4..] } else { &DEADLINES[..] };
            let time = |key: &&str| if *key == short { "3s" } else { "1h" };
            let secured = more.contains("tls: {");
            let keys = keys.iter().filter(|&&key| key != "tls" || secured);
            let timeouts: Vec<_> = keys.map(|key| format!("{key}: {}", time(key))).collect();
            let (timeouts, port) = (timeouts.join(", "), backend.port());
            // A body that stops would end after 20 seconds for being slow, whatever its deadline.
            let limits = if protocol == "tcp" { "" } else { "limits: {body_rate: off}" };
            config.push_str(&format!(
                "  {name}:\n    protocol: {protocol}\n    listener: \"127.0.0.1:0\"\n    {more}\n    {limits}\n    \
                 timeouts: {{{timeouts}}}\n    backends: [{{host: 127.0.0.1, port: {port}}}]\n",
            ));
        };
        let (mute_at, by_hand_at) = (mute.local_addr().unwrap(), by_hand.local_addr().unwrap());
        let off = "health_check: off";
        target("web", "http", http.addr(), off);
        target("mute", "http", mute_at, off);
        target("full", "http", full.address, off);
        target("by_hand", "http", by_hand_at, off);
        target("told", "http", told.addr(), off);
        target("tcp_told", "tcp", tcp_told.addr(), off);
        target("tcp_source", "tcp", source.addr(), off);
        target("tcp_mute", "tcp", mute_at, off);
        target("tcp_by_hand", "tcp", by_hand_at, off);
        target("tcp_full", "tcp", full.address, off);
        let check = format!("health_check: {{path: /health, interval: 1h, timeout: {probe}}}");
        target("probed_mute", "http", mute_at, &check);
        target("probed_full", "http", full.address, &check);
        target(
            "probed_connect",
            "tcp",
            full.address,
            &format!("health_check: {{interval: 1h, timeout: {probe}}}"),
        );
        let to_tls = "upstream_tls: {insecure: true}";
        target("probed_tls", "http", mute_at, &format!("{check}\n    {to_tls}"));
        let (off_and_to, off_and_tls) =
            (format!("{off}\n    {to_tls}"), format!("{off}\n    {}", secrets.key()));
        target("to_tls", "http", mute_at, &off_and_to);
        target("tcp_to_tls", "tcp", mute_at, &off_and_to);
        target("tls_by_hand", "http", by_hand_at, &off_and_to);
        target("tls_hang", "http", hang.addr(), &off_and_to);
        target("https", "https", http.addr(), &off_and_tls);
        target("tls_mute", "tcp", mute_at, &off_and_tls);
        target("tls_source", "tcp", source.addr(), &off_and_tls);
        config.push_str(&format!(
            "  plain:\n    protocol: http\n    listener: \"127.0.0.1:0\"\n    backends: [{{host: 127.0.0.1, port: {}}}]\n",
            http.port()
        ));
        Lab {
            process: Process::start(&config, 22),
            http,
            told,
            tcp_told,
            _source: source,
            _hang: hang,
            secrets,
            _mute: mute,
            by_hand,
            _full: full,
            held: Vec::new(),
        }
    }

    /// A client of this target, with an address of its own by which its records are told.
    pub fn client(&self, target: &str) -> Client {
        static CLIENTS: AtomicU32 = AtomicU32::new(1);
        let number = CLIENTS.fetch_add(1, Ordering::Relaxed);
        let own = Ipv4Addr::from_bits(Ipv4Addr::new(127, 1, 0, 0).to_bits() + number);
        Client::connect_from(own, self.process.address(target))
    }

    /// The causes in the access log of what this client has asked; `-`: all was well.
    pub fn causes(&self, client: &Client) -> Vec<String> {
        let address = client.socket.local_addr().unwrap().to_string();
        let records = self.process.records();
        let own = records.iter().filter(|record| record["client"] == address.as_str());
        own.map(|record| record["cause"].as_str().unwrap_or("-").to_owned()).collect()
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
        self.told(Behaviour::fault(fault), request)
    }

    /// A client that asks a backend that behaves like this.
    pub fn told(&self, behaviour: Behaviour, request: &str) -> Client {
        self.told.behave(behaviour.times(1));
        let client = self.says("told", request);
        eventually("the backend has the request", || self.told.behaviour() == Behaviour::default());
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
        self.tcp_told.behave(Behaviour::tcp(mode).times(1));
        let client = self.client("tcp_told");
        eventually("the backend has the connection", || self.tcp_told.behaviour() == Behaviour::default());
        client
    }

    /// A client of a TCP backend that has sent its end and still takes.
    pub fn half_closed_backend(&mut self) -> Client {
        let client = self.client("tcp_by_hand");
        let accepted = accept(&self.by_hand);
        accepted.shutdown(Shutdown::Write).unwrap();
        self.held.push(accepted);
        client
    }

    /// A client whose upgrade was granted by a backend that then only holds the connection.
    pub fn upgraded_by_hand(&mut self, request: &str) -> Client {
        let mut client = self.says("by_hand", request);
        let mut accepted = accept(&self.by_hand);
        let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        accepted.write_all(answer.as_bytes()).unwrap();
        self.held.push(accepted);
        assert_eq!(client.answer().status, 101);
        client
    }

    /// A client that sends so many bytes of a ClientHello and no more.
    pub fn hello(&self, target: &str, count: usize) -> Client {
        let hello = self.secrets.hello();
        let count = if count > hello.len() { hello.len() - (usize::MAX - count) } else { count };
        let mut client = self.client(target);
        client.send(&hello[..count]);
        client
    }

    /// A client in a TLS session.
    pub fn secured(&self, target: &str) -> (Client, ClientConnection) {
        let mut client = self.client(target);
        let session = self.secrets.shake(&mut client);
        (client, session)
    }

    /// A client whose backend answers a ClientHello with this and no more.
    pub fn server_hello(&mut self, request: &str, bytes: &[u8]) -> Client {
        let client = self.says("tls_by_hand", request);
        let mut accepted = accept(&self.by_hand);
        accepted.write_all(bytes).unwrap();
        self.held.push(accepted);
        client
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
    fill_with(client, "a")
}

/// Sends this again and again until nothing on the way takes any more.
pub fn fill_with(client: Client, text: &str) -> Client {
    client.socket.set_nonblocking(true).unwrap();
    let piece = text.repeat(64 * 1024 / text.len());
    let (mut total, mut at) = (0, 0);
    settled("all buffers are full", || {
        loop {
            match (&client.socket).write(&piece.as_bytes()[at..]) {
                Ok(count) => (total, at) = (total + count as u64, (at + count) % piece.len()),
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
