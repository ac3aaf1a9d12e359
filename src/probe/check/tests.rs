//! Single probes against small raw listeners.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};

use super::*;

/// Far above any probe on loopback; only a hang reaches it.
const PATIENT: Duration = Duration::from_secs(20);

fn check(path: Option<&str>, timeout: Duration) -> ProbeCheck {
    let question = |path: &str| ProbeQuestion {
        path: path.into(),
        host: "app.internal:81".into(),
        wire: ProbeWire::Http1,
        is_secure: false,
        expect: vec![200..=399, 418..=418],
        body: None,
    };
    let ask = path.map_or(ProbeAsk::Nothing, |path| ProbeAsk::ProbeQuestion(Box::new(question(path))));
    ProbeCheck { timeout, port: None, greeting: Vec::new(), dialing: Arc::default(), session: None, ask }
}

/// Serves one connection: reads a request head, writes `answer`, keeps the connection open when `hold`.
async fn serve(answer: Vec<u8>, hold: bool) -> (Endpoint, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let endpoint = Endpoint::Tcp(listener.local_addr().expect("bound"));
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("accept");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if stream.read(&mut byte).await.unwrap_or(0) == 0 {
                break;
            }
            head.push(byte[0]);
        }
        // The probe may close as soon as it has seen enough.
        let _ = stream.write_all(&answer).await;
        if hold {
            let _ = stream.read(&mut [0]).await;
        }
        String::from_utf8(head).expect("a head is ASCII")
    });
    (endpoint, server)
}

/// A port that nobody else can get and that refuses: bound, not listening.
fn closed() -> (TcpSocket, Endpoint) {
    let socket = TcpSocket::new_v4().expect("socket");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("bind");
    let endpoint = Endpoint::Tcp(socket.local_addr().expect("bound"));
    (socket, endpoint)
}

async fn judged(answer: impl Into<Vec<u8>>) -> Finding {
    let (endpoint, _server) = serve(answer.into(), false).await;
    check(Some("/ping"), PATIENT).run(&[endpoint]).await
}

fn good() -> Finding {
    Finding::Verdict(Verdict::Good)
}

#[tokio::test]
async fn the_request_is_what_was_configured_and_the_body_is_not_awaited() {
    let answer = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n".to_vec();
    let (endpoint, server) = serve(answer, true).await;
    assert_eq!(check(Some("/ping?deep=1"), PATIENT).run(&[endpoint]).await, good());
    let head = server.await.expect("served");
    let (line, headers) = head.split_once("\r\n").expect("a request line");
    assert_eq!(line, "GET /ping?deep=1 HTTP/1.1");
    let mut headers: Vec<String> = headers.trim_end().lines().map(str::to_ascii_lowercase).collect();
    headers.sort_unstable();
    assert_eq!(headers, ["connection: close", "host: app.internal:81", "user-agent: evenkeel-probe"]);

    let endless = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegun".to_vec();
    let (endpoint, _server) = serve(endless, true).await;
    assert_eq!(check(Some("/"), PATIENT).run(&[endpoint]).await, good());
}

#[tokio::test]
async fn the_status_decides() {
    for (answer, expected) in [
        ("HTTP/1.1 200 OK\r\n\r\n", good()),
        ("HTTP/1.0 399 Odd\r\n\r\n", good()),
        ("HTTP/1.1 418 Teapot\r\n\r\n", good()),
        ("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", good()),
        ("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", Finding::bad("status 500, expected 200-399, 418")),
        ("HTTP/1.1 404 No\r\n\r\n", Finding::bad("status 404, expected 200-399, 418")),
    ] {
        assert_eq!(judged(answer).await, expected, "{answer}");
    }
}

#[tokio::test]
async fn what_is_not_an_answer_is_named() {
    assert_eq!(judged("SSH-2.0-OpenSSH_9.9\r\n").await, Finding::bad("not HTTP"));
    assert_eq!(judged(vec![0u8, 1, 2, 255]).await, Finding::bad("not HTTP"));
    assert_eq!(judged("").await, Finding::bad("closed without an answer"));
    assert_eq!(judged("HTTP/1.1 200").await, Finding::bad("closed without an answer"));
    let huge = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    assert_eq!(judged(huge).await, Finding::bad("the answer's head is too large"));
}

#[tokio::test]
async fn a_banner_before_the_question_is_not_http() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let endpoint = Endpoint::Tcp(listener.local_addr().expect("bound"));
    let _server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("accept");
        let _ = stream.write_all(b"220 mail.internal ESMTP\r\n").await;
        let mut request = Vec::new();
        let _ = stream.read_to_end(&mut request).await;
    });
    assert_eq!(check(Some("/"), PATIENT).run(&[endpoint]).await, Finding::bad("not HTTP"));
}

#[tokio::test]
async fn a_hung_backend_and_a_dripping_one_run_into_the_timeout() {
    for begun in ["", "HTTP/1.1 200 OK\r\nX:"] {
        let (endpoint, _server) = serve(begun.into(), true).await;
        let finding = check(Some("/"), Duration::from_millis(80)).run(&[endpoint]).await;
        assert_eq!(finding, Finding::bad("timeout after 80ms"));
    }
}

#[tokio::test]
async fn a_connect_probe_passes_an_open_port_and_fails_a_closed_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let open = Endpoint::Tcp(listener.local_addr().expect("bound"));
    assert_eq!(check(None, PATIENT).run(&[open]).await, good());
    let (_socket, closed) = closed();
    for path in [None, Some("/")] {
        let finding = check(path, PATIENT).run(std::slice::from_ref(&closed)).await;
        assert_eq!(finding, Finding::bad("connection refused"));
    }
    assert_eq!(check(None, PATIENT).run(&[]).await, Finding::bad("no address"));
}

#[tokio::test]
async fn the_first_address_that_accepts_is_judged() {
    let (_socket, refused) = closed();
    let (endpoint, _server) = serve(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), false).await;
    assert_eq!(check(Some("/"), PATIENT).run(&[refused, endpoint]).await, good());
}

#[tokio::test]
async fn unix_sockets_are_asked_like_any_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.sock");
    let endpoint = [Endpoint::Unix(path.as_path().into())];
    assert_eq!(check(Some("/"), PATIENT).run(&endpoint).await, Finding::bad("no such socket"));
    let listener = tokio::net::UnixListener::bind(&path).expect("bind");
    let _server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("accept");
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(b"HTTP/1.1 503 No\r\n\r\n").await;
    });
    let finding = check(Some("/"), PATIENT).run(&endpoint).await;
    assert_eq!(finding, Finding::bad("status 503, expected 200-399, 418"));
}

#[tokio::test]
async fn a_path_or_host_that_no_request_can_carry_is_a_bad_verdict() {
    let (endpoint, _server) = serve(Vec::new(), true).await;
    let mut check = check(Some("/"), PATIENT);
    let ProbeAsk::ProbeQuestion(question) = &mut check.ask else { panic!("it asks") };
    question.host = "two\r\nlines".into();
    let Finding::Verdict(Verdict::Bad(reason)) = check.run(&[endpoint]).await else { panic!("not bad") };
    assert!(reason.starts_with("the probe's path or host is invalid"), "{reason}");
}

#[test]
fn the_host_header_names_the_backend() {
    let host = |host: &str, port| BackendAddress::Host { host: host.into(), port }.authority(false);
    assert_eq!(host("app.internal", 8080), "app.internal:8080");
    assert_eq!(host("app.internal", 80), "app.internal");
    assert_eq!(host("::1", 8080), "[::1]:8080");
    assert_eq!(host("::1", 80), "[::1]");
    assert_eq!(BackendAddress::Unix("/run/app.sock".into()).authority(false), "localhost");
    let secured = |host: &str, port| BackendAddress::Host { host: host.into(), port }.authority(true);
    assert_eq!(secured("app.internal", 443), "app.internal");
    assert_eq!(secured("::1", 443), "[::1]");
    assert_eq!(secured("app.internal", 80), "app.internal:80");
    assert_eq!(host("app.internal", 443), "app.internal:443");
}

#[tokio::test]
async fn another_port_is_probed_at_the_same_address() {
    let (endpoint, _server) = serve(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), false).await;
    let Endpoint::Tcp(address) = endpoint else { panic!("a TCP endpoint") };
    let (_refusing, of_requests) = closed();
    let check = ProbeCheck { port: Some(address.port()), ..check(Some("/"), PATIENT) };
    assert_eq!(check.run(&[of_requests]).await, good());
    let unix = Endpoint::Unix(std::path::Path::new("/run/app.sock").into());
    assert_eq!(check.run(&[unix]).await, Finding::bad("no address"), "a path has no ports");
}

#[tokio::test]
async fn bytes_are_sent_and_waited_for() {
    let talk = |receive: &[u8]| {
        ProbeAsk::Talk(Box::new(Talk::new(Some(b"PING\r\n\r\n".to_vec()), receive.to_vec())))
    };
    let judged = async |answer: &[u8], receive: &[u8], hold: bool, timeout| {
        let (endpoint, _server) = serve(answer.to_vec(), hold).await;
        ProbeCheck { ask: talk(receive), ..check(None, timeout) }.run(&[endpoint]).await
    };
    assert_eq!(judged(b"+PONG\r\n", b"+PONG", true, PATIENT).await, good());
    let wrong = judged(b"-ERR\r\n", b"+PONG", false, PATIENT).await;
    assert_eq!(wrong, Finding::bad("it said \"-ERR\\r\\n\", not \"+PONG\", it closed"));
    let silent = judged(b"", b"+PONG", true, Duration::from_millis(80)).await;
    assert_eq!(silent, Finding::bad("timeout after 80ms"));
}

#[test]
fn a_probe_has_the_host_that_requests_have() {
    let address = BackendAddress::Host { host: "app.internal".into(), port: 8080 };
    let target = super::super::tests::target(None, vec![address], None);
    let backend = &target.backends[0];
    let name = HostHeader::Name("shop.example".into());
    assert_eq!(host_of(backend, Some(81), &name), "shop.example");
    for host in [HostHeader::Pass, HostHeader::Backend] {
        assert_eq!(host_of(backend, None, &host), "app.internal:8080");
        assert_eq!(host_of(backend, Some(81), &host), "app.internal:81");
    }
}

#[test]
fn a_task_that_waits_for_its_next_probe_carries_no_session() {
    let check = check(Some("/ping"), PATIENT);
    let size = size_of_val(&check.run(&[]));
    assert!(size <= 2048, "{size} bytes");
}
