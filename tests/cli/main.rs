//! The command as users run it: real processes, real signals, real exit codes.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod commands;
mod demo;
mod events;
mod habits;
mod https;
mod log;
mod logs;
mod reload;
mod routing_tests;
mod shutdown;
mod simulate;
mod starts;
mod status;
mod sticky_keys;
mod why;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use fake_backend::{Authority, Behaviour, Fake, Running};
use rustix::process::{Pid, Signal, kill_process};
use rustls::ALL_VERSIONS;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel");
const PATIENCE: Duration = Duration::from_secs(20);

/// Polls until `condition` holds; fails the test when it does not in time.
#[expect(clippy::disallowed_methods, reason = "waits by polling; there is no runtime here")]
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A running command; killed when the test ends.
struct Started {
    child: Child,
    lines: mpsc::Receiver<String>,
    seen: Vec<String>,
}

impl Started {
    fn new(mut command: Command) -> Started {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (send, lines) = mpsc::channel();
        let sources: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for source in sources {
            let send = send.clone();
            std::thread::spawn(move || {
                BufReader::new(source).lines().map_while(Result::ok).all(|line| send.send(line).is_ok())
            });
        }
        Started { child, lines, seen: Vec::new() }
    }

    /// The first line from now on that contains `what`.
    fn wait_for(&mut self, what: &str) -> String {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(what) {
                        return line;
                    }
                }
                Err(_) => panic!("no line with {what:?} among {:#?}", self.seen),
            }
        }
    }

    /// Reads on until each of these was in some line.
    fn wait_for_all(&mut self, wanted: &[&str]) {
        for what in wanted {
            if !self.seen.iter().any(|line| line.contains(what)) {
                self.wait_for(what);
            }
        }
    }

    /// The first line of all that contains `what`: what comes by the two ways has no order.
    fn line(&mut self, what: &str) -> String {
        self.wait_for_all(&[what]);
        self.seen.iter().find(|line| line.contains(what)).unwrap().clone()
    }

    /// Whether some line that came by now contains `what`; does not wait.
    fn has_said(&mut self, what: &str) -> bool {
        self.seen.extend(self.lines.try_iter());
        self.seen.iter().any(|line| line.contains(what))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn exit_code(&mut self) -> Option<i32> {
        let mut ended = None;
        eventually("it ends", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.and_then(|status| status.code())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn evenkeel(args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    // No socket of a test belongs among the user's own.
    let own = concat!(env!("CARGO_TARGET_TMPDIR"), "/cli");
    command.args(args).env("XDG_RUNTIME_DIR", own).env("XDG_STATE_HOME", own);
    command
}

/// A port, and 31 behind it, at which no other test of this run looks for a free one. They lie below those that the system hands
/// out, or a connection of another test could get one between the search and its use.
fn own_ports() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + u16::try_from(std::process::id() % 20_000).unwrap();
    first + 32 * TAKEN.fetch_add(1, Relaxed)
}

/// The demo, which takes the first ports from here on that are free, and in which nothing happens by itself.
fn demo_from(port: u16) -> Command {
    let mut command = lively_demo_from(port);
    command.arg("--quiet");
    command
}

/// The same, with a load and illnesses.
fn lively_demo_from(port: u16) -> Command {
    let port = &port.to_string();
    evenkeel(&[
        "demo",
        "--http-port",
        port,
        "--https-port",
        port,
        "--tcp-port",
        port,
        "--udp-port",
        port,
        "--admin-port",
        port,
    ])
}

/// Exit code, standard output, standard error.
fn outcome(args: &[&str]) -> (Option<i32>, String, String) {
    let output = evenkeel(args).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn backend(id: &str) -> Running {
    Fake::http(id).start_in_thread().unwrap()
}

/// The address in a line such as `… listening 127.0.0.1:4242 (this machine only; …), listener web`.
fn address_in(line: &str) -> SocketAddr {
    let address = line.rsplit("listening ").next().unwrap();
    address.split([' ', ',']).next().unwrap().parse().unwrap()
}

fn get(address: SocketAddr) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    let _ = socket.read_to_string(&mut text);
    text
}

fn body(answer: &str) -> &str {
    answer.split("\r\n\r\n").nth(1).unwrap_or_default()
}

#[test]
fn flags_alone_serve_and_sigterm_ends_with_0() {
    let (one, two) = (backend("one"), backend("two"));
    let backends = format!("{},{}", one.url(), two.url());
    let mut lb = Started::new(evenkeel(&["--backends", &backends, "--port", "0", "--health-path", "/ping"]));
    let address = address_in(&lb.wait_for("listening"));
    let up = [format!("127.0.0.1:{} is up", one.port()), format!("127.0.0.1:{} is up", two.port())];
    lb.wait_for_all(&[&up[0], &up[1]]);
    let mut bodies: Vec<String> = (0..4).map(|_| body(&get(address)).to_owned()).collect();
    bodies.sort();
    assert_eq!(bodies, ["Hello from one", "Hello from one", "Hello from two", "Hello from two"]);
    lb.signal(Signal::TERM);
    lb.wait_for("stopped; everything was finished");
    assert_eq!(lb.exit_code(), Some(0));
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_second_signal_cuts_and_the_exit_code_says_so() {
    let slow = backend("slow");
    slow.behave(Behaviour::hang());
    let mut lb = Started::new(evenkeel(&["--backends", &slow.url(), "--port", "0"]));
    let address = address_in(&lb.wait_for("listening"));
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    slow.wait_for_blocking(|stats| stats.requests == 1, PATIENCE).unwrap();
    lb.signal(Signal::INT);
    lb.wait_for("draining");
    lb.signal(Signal::INT);
    let last = lb.wait_for("connections were cut");
    assert!(last.ends_with("connections were cut: 1"), "{last}");
    assert_eq!(lb.exit_code(), Some(3));
}

#[test]
fn a_hangup_is_answered_with_a_line_and_ends_nothing() {
    let one = backend("one");
    let mut lb = Started::new(evenkeel(&["--backends", &one.url(), "--port", "0"]));
    let address = address_in(&lb.wait_for("listening"));
    lb.signal(Signal::HUP);
    lb.wait_for("reload refused, nothing has changed: there is no config file");
    assert!(get(address).starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn check_prints_values_with_their_origin() {
    let (code, out, _) =
        outcome(&["check", "--config", "fixtures/gruglb/example-config.yaml", "--workers", "7", "--all"]);
    assert_eq!(code, Some(0));
    let row = |start: &str| out.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    assert!(row("workers").contains('7') && row("workers").ends_with("--workers"), "{out}");
    assert!(row("targets.webServersA.listener").contains("127.0.0.1:8080"), "{out}");
    assert!(row("targets.webServersA.listener").ends_with("example-config.yaml:33"), "{out}");
    assert!(row("shutdown_timeout").ends_with("default"), "{out}");
}

#[test]
fn check_warns_of_certificates_that_end_soon_and_of_backends_that_are_not_verified() {
    let folder = tempfile::tempdir().unwrap();
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_after = (SystemTime::now() + Duration::from_secs(3 * 24 * 3600 + 3600)).into();
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    std::fs::write(folder.path().join("both.pem"), certificate + &key.serialize_pem()).unwrap();
    let config = folder.path().join("evenkeel.yaml");
    let text = "targets: {web: {protocol: https, listener: 1, tls: {cert_file: both.pem},
        upstream_tls: {insecure: true}, backends: [{host: a, port: 1}]}}";
    std::fs::write(&config, text).unwrap();
    let (code, out, err) = outcome(&["check", "--config", config.to_str().unwrap()]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let end = "both.pem of web expires in 3 days
warning: the backends of web are not verified (`upstream_tls.insecure`)
";
    assert!(out.contains("\nwarning: the certificate ") && out.contains(end), "{out}");
    assert!(out.ends_with("`--all` prints them\nthe config is valid\n"), "{out}");
}

#[test]
fn check_of_a_wrong_file_shows_every_problem_and_fails() {
    let (code, _, err) = outcome(&["check", "--config", "fixtures/config/invalid/twelve_faults.yaml"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("12 problems") && err.contains("twelve_faults.yaml:2:1"), "{err}");
    let (code, _, err) = outcome(&["--config", "no-such-file.yaml"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("no-such-file.yaml") && err.contains("does not exist"), "{err}");
}

/// Everything that prints and ends.
const PRINTING: &[&[&str]] = &[
    &["check", "--config", "example-config.yaml"],
    &["completions", "bash"],
    &["man"],
    &["schema"],
    &["--help"],
    &["check", "--help"],
    &["--version"],
];

#[test]
fn output_that_could_not_be_written_is_a_failure() {
    for args in PRINTING {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = evenkeel(args).stdin(Stdio::null()).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("can't write to standard output: No space left"), "{args:?}: {said}");
    }
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    for args in PRINTING {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = evenkeel(args).stdin(Stdio::null()).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{args:?}");
    }
}

#[test]
fn an_unknown_algorithm_is_an_error_that_lists_the_known_ones() {
    let (code, _, err) = outcome(&["--backends", "http://127.0.0.1:1", "--algorithm", "fastest"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("fastest") && err.contains("round_robin"), "{err}");
}

#[test]
fn flags_of_a_cache_override_the_file_and_take_a_truth_or_nothing() {
    let ttl = |flags: &[&str]| {
        let args = [&["check", "--backends", "http://127.0.0.1:1"], flags].concat();
        let (code, out, err) = outcome(&args);
        assert_eq!(code, Some(0), "{err}");
        let row = out.lines().find(|line| line.starts_with("targets.default.cache.ttl "));
        row.map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "))
    };
    let from_flag = |text: &str| Some(text.to_owned());
    assert_eq!(ttl(&["--cache-enabled"]), from_flag("10s --cache-enabled"));
    assert_eq!(ttl(&["--cache-enabled", "--workers", "1"]), from_flag("10s --cache-enabled"));
    let both = from_flag("5s --cache-timeout-in-seconds");
    assert_eq!(ttl(&["--cache-enabled=true", "--cache-timeout-in-seconds=5"]), both);
    assert_eq!(ttl(&["--cache-enabled", "true", "--cache-timeout-in-seconds", "5"]), both);
    assert_eq!(ttl(&["--cache-enabled", "false", "--cache-timeout-in-seconds", "5"]), None);
    let (code, _, err) = outcome(&["check", "--backends", "http://127.0.0.1:1", "--cache-enabled=maybe"]);
    assert!(code == Some(2) && err.contains("--cache-enabled"), "{err}");
    let (code, _, err) =
        outcome(&["check", "--backends", "http://127.0.0.1:1", "--cache-timeout-in-seconds=0"]);
    assert!(code != Some(0) && err.contains("is 0, which is too small"), "{err}");
}

#[test]
fn few_descriptors_mean_clean_refusals_and_recovery() {
    let one = backend("one");
    let mut command = Command::new("sh");
    let line = format!("ulimit -n 240 && exec {PROGRAM} --backends {} --port 0", one.url());
    command.args(["-c", &line]);
    let mut lb = Started::new(command);
    let budget = lb.wait_for("room for 20 connections only");
    assert!(budget.contains("WARN") && budget.contains("descriptors 240"), "{budget}");
    let address = address_in(&lb.wait_for("listening"));
    let mut sockets: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
    let (mut served, mut refused) = (0, 0);
    for socket in &mut sockets {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = socket.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        let mut start = [0u8; 12];
        match socket.read_exact(&mut start) {
            Ok(()) if &start[9..] == b"200" => served += 1,
            Ok(()) if &start[9..] == b"503" => refused += 1,
            other => panic!("neither served nor told: {other:?} {start:?}"),
        }
    }
    assert_eq!((served, refused), (20, 280));
    drop(sockets);
    eventually("there is room again", || get(address).contains("200 OK"));
}

#[test]
fn gruglbs_tls_example_serves_https() {
    let (one, two) = (backend("one"), backend("two"));
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("gruglb");
    let issued = authority.issue(["localhost", "127.0.0.1"]);
    for (name, text) in [("server.crt", &issued.cert_pem), ("server.key", &issued.key_pem)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    // Nothing but the ports differs from the published file.
    let text = std::fs::read_to_string("fixtures/gruglb/tls-config.yaml").unwrap();
    let text = text.replace("8443", "0").replace("8092", &one.port().to_string());
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, text.replace("8093", &two.port().to_string())).unwrap();
    let mut keel = Started::new(evenkeel(&["--config", config.to_str().unwrap()]));
    let https = address_in(&keel.wait_for("listening"));
    keel.wait_for_all(&[&format!(":{} is up", one.port()), &format!(":{} is up", two.port())]);
    let over =
        |version| body(&https::get(https, https::trusting(authority.ca_pem(), version), "/")).to_owned();
    let mut bodies: Vec<String> = ALL_VERSIONS.iter().map(|&version| over(version)).collect();
    bodies.sort();
    assert_eq!(bodies, ["Hello from one", "Hello from two"]);
    assert!(get(https).starts_with("HTTP/1.1 400") && get(https).contains("This port speaks HTTPS"));
    keel.signal(Signal::TERM);
    assert_eq!(keel.exit_code(), Some(0));
}
