//! The command: what it prints, what its flags do, and how it ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::client::Client;

/// The command while it runs; killed when the test ends.
struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fake_backend"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn kill(&mut self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address at the end of a line.
fn address(line: &str) -> std::net::SocketAddr {
    line.rsplit(' ')
        .next()
        .unwrap()
        .trim_start_matches("http://")
        .trim_start_matches("https://")
        .trim_start_matches("tcp://")
        .parse()
        .unwrap()
}

/// What a run that ends by itself wrote to stderr, and its exit code.
fn refusal(arguments: &[&str]) -> (String, Option<i32>) {
    let mut process = Process::start(arguments);
    let mut text = String::new();
    process.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (text, process.child.wait().unwrap().code())
}

#[tokio::test]
async fn it_serves_as_gruglbs_does_and_stops_at_a_signal() {
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let mut process = Process::start(&["--id", "fake-1", "--protocol", "http", "--port", "0"]);
        let line = process.line();
        assert!(line.starts_with("fake-1 listens on http://127.0.0.1:"), "{line}");
        assert_eq!(Client::connect(address(&line)).await.get("/").await.text(), "Hello from fake-1");
        process.kill(signal);
        assert_eq!(process.child.wait().unwrap().code(), Some(0));
    }
    let mut process = Process::start(&["--id", "fake-2", "--protocol", "tcp", "--port", "0"]);
    let line = process.line();
    assert_eq!(Client::connect(address(&line)).await.rest().await.unwrap(), b"Hello from fake-2");
}

#[tokio::test]
async fn many_workers_share_one_line() {
    let mut process = Process::start(&["--id", "w", "--count", "3", "--port", "0"]);
    let line = process.line();
    assert!(line.starts_with("w-1 to w-3 listen on "), "{line}");
    let mut process = Process::start(&["--id", "w", "--count", "3", "--port", "0", "--list", "--slots", "1"]);
    for number in 1..=3 {
        let line = process.line();
        assert!(line.starts_with(&format!("w-{number} listens on ")), "{line}");
        assert_eq!(
            Client::connect(address(&line)).await.get("/").await.text(),
            format!("Hello from w-{number}")
        );
    }
}

#[tokio::test]
async fn loopback_addresses_share_one_port() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let arguments = [
        "--id",
        "w",
        "--count",
        "3",
        "--spread-addresses",
        "--address",
        "127.0.7.254",
        "--port",
        &free,
        "--list",
    ];
    let mut process = Process::start(&arguments);
    for expected in ["127.0.7.254", "127.0.7.255", "127.0.8.0"] {
        let line = process.line();
        assert!(line.ends_with(&format!("{expected}:{free}")), "{line}");
        Client::connect(address(&line)).await.get("/").await;
    }
}

#[tokio::test]
async fn flags_behave_and_requests_control() {
    let mut process =
        Process::start(&["--id", "a", "--port", "0", "--status", "500", "--times", "1", "--size", "3"]);
    let mut client = Client::connect(address(&process.line())).await;
    assert_eq!(client.get("/").await.status(), 500);
    assert_eq!(client.get("/").await.text(), "Hello from a");
    client.send("POST /_fake?status=503 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(client.answer().await.status(), 200);
    assert_eq!(client.get("/").await.status(), 503);

    let mut process = Process::start(&["--id", "a", "--port", "0", "--no-control", "--unhealthy"]);
    let mut client = Client::connect(address(&process.line())).await;
    client.send("POST /_fake?status=503 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(client.answer().await.text(), "Hello from a");
    assert_eq!(client.get("/health").await.status(), 503);
}

#[test]
fn wrong_flags_are_refused_by_name() {
    let (text, code) = refusal(&["--id", "a", "--port", "0", "--fault", "nonsense"]);
    assert!(code != Some(0) && text.contains("fault=nonsense: none or one of: close-on-accept, "), "{text}");
    let (text, code) = refusal(&["--id", "a", "--count", "3", "--port", "65534"]);
    assert!(code != Some(0) && text.contains("ports"), "{text}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (text, code) = refusal(&["--id", "a", "--port", &port]);
    assert!(code != Some(0) && text.contains(&format!("127.0.0.1:{port}")), "{text}");
}

#[test]
fn help_explains_every_key() {
    let output = Command::new(env!("CARGO_BIN_EXE_fake_backend")).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for (key, _) in fake_backend::SETTINGS {
        assert!(help.contains(&format!("--{key} ")), "{key} is not in:\n{help}");
    }
    assert!(help.contains("/_fake") && help.contains("--no-control"), "{help}");
}

#[tokio::test]
async fn tls_flags_make_or_take_a_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (ca, cert, key) = (file("ca.pem"), file("cert.pem"), file("key.pem"));
    let mut process =
        Process::start(&["--id", "s", "--port", "0", "--count", "2", "--list", "--tls", "--tls-ca-out", &ca]);
    let first = process.line();
    assert!(first.starts_with("s-1 listens on https://127.0.0.1:"), "{first}");
    let authority = std::fs::read_to_string(&ca).unwrap();
    for line in [first, process.line()] {
        let mut client = crate::tls::trusting(&authority, address(&line)).await.unwrap();
        assert!(client.get("/").await.text().starts_with("Hello from s-"));
    }

    let authority = fake_backend::Authority::new("mine");
    let issued = authority.issue(["localhost"]);
    std::fs::write(&cert, issued.cert_pem).unwrap();
    std::fs::write(&key, issued.key_pem).unwrap();
    let mut process = Process::start(&[
        "--port",
        "0",
        "--tls",
        "--tls-cert",
        &cert,
        "--tls-key",
        &key,
        "--tls-version",
        "1.2",
    ]);
    let mut client = crate::tls::trusting(authority.ca_pem(), address(&process.line())).await.unwrap();
    assert_eq!(client.get("/").await.text(), "Hello from fake");
    assert_eq!(client.stream.get_ref().1.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_2));

    let mut process = Process::start(&["--port", "0", "--tls", "--tls-fault", "close"]);
    assert_eq!(
        crate::tls::trusting("", address(&process.line())).await.err().unwrap().kind(),
        std::io::ErrorKind::UnexpectedEof
    );

    let (text, _) = refusal(&["--port", "0", "--tls", "--tls-cert", &key, "--tls-key", &key]);
    assert!(text.contains("the certificate: there is no CERTIFICATE in it"), "{text}");
    let (text, _) = refusal(&["--port", "0", "--tls", "--tls-client-ca", &file("none")]);
    assert!(text.contains("--tls-client-ca: cannot read "), "{text}");
    let (text, _) = refusal(&["--port", "0", "--tls-ca-out", &ca]);
    assert!(text.contains("--tls"), "{text}");
}
