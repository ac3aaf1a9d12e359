//! Who may do what over TCP, and whom nothing is told.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use fake_backend::Authority;

use super::door_lab::{CONFIGURE, OPERATE, READ, ask, bearer, door, guarded, of, routes, tokens};
use super::support::process::{Process, whole};
use super::support::tls::{TLS13, TlsSocket, client_config};
use super::support::{Client, accept, eventually, fakes};

#[test]
fn each_route_asks_for_its_scope_and_nothing_is_changed_without() {
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    let (door, digest) = (door(&process), process.digest());
    let scopes = [("read", READ), ("operate", OPERATE), ("configure", CONFIGURE)];
    let rank = |scope: &str| scopes.iter().position(|(name, _)| *name == scope);
    let (mut changes, mut looks) = (0, 0);
    for (method, path, scope) in routes(&process) {
        let line = format!("{method} {path}");
        let nobody = ask(door, &line, "", b"");
        if scope == "open" {
            let expected: &[u16] = match &*line {
                "POST /api/v1/session" => &[422],
                "DELETE /api/v1/session" => &[200],
                _ => &[200, 503],
            };
            assert!(expected.contains(&nobody.status), "{line}: {nobody:?}");
            continue;
        }
        assert_eq!(nobody.status, 401, "{line}: {nobody:?}");
        assert!(nobody.head.contains("www-authenticate: Bearer"), "{nobody:?}");
        assert_eq!(
            ask(door, &line, &bearer("0123456789abcdef"), b"").status,
            401,
            "{line}: an unknown token"
        );
        for (name, token) in scopes {
            if rank(name) < rank(&scope) {
                let lesser = ask(door, &line, &bearer(token), b"");
                assert_eq!(lesser.status, 403, "{line} with {name}: {lesser:?}");
                changes += 1;
            } else if method == "GET" {
                let heard = ask(door, &line, &bearer(token), b"");
                assert!(matches!(heard.status, 200 | 404), "{line} with {name}: {heard:?}");
                looks += 1;
            }
        }
    }
    assert!(changes >= 6 && looks >= 9, "{changes} refusals and {looks} looks");
    assert_eq!(process.digest(), digest);
    let reload = ask(door, "POST /api/v1/config/reload", &bearer(CONFIGURE), b"");
    assert_eq!((reload.status, reload.body["verdict"].as_str()), (200, Some("unchanged")), "{reload:?}");
    // Whoever may see nothing is not told what there is.
    assert_eq!(ask(door, "GET /nothing", "", b"").status, 401);
    assert_eq!(ask(door, "PUT /api/v1", "", b"").status, 401);
    assert_eq!(ask(door, "PUT /api/v1", &bearer(READ), b"").status, 405);
    assert_eq!(ask(door, "HEAD /readyz", "", b"").status, 200);
    // No token is ever repeated.
    let said = process.said().join("\n");
    for token in [READ, OPERATE, CONFIGURE] {
        assert!(!said.contains(token), "{said}");
    }
}

#[test]
fn a_page_of_another_origin_and_a_name_that_is_not_ours_get_nothing() {
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    let (door, digest) = (door(&process), process.digest());
    let reload = |headers: &str| {
        ask(door, "POST /api/v1/config/reload", &format!("{}|{headers}", bearer(CONFIGURE)), b"").status
    };
    for origin in [
        "Origin: http://evil.example",
        "Origin: null",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
    ] {
        assert_eq!(reload(origin), 403, "{origin}");
    }
    for host in ["Host: evil.example", "Host: evil.example:9900", "Host: localhost.evil.example"] {
        assert_eq!(reload(host), 421, "{host}");
        assert_eq!(ask(door, "GET /healthz", host, b"").status, 421, "{host}");
    }
    assert_eq!(process.digest(), digest);
    assert_eq!(reload("Host: lb.internal:1|Origin: http://lb.internal:1|Sec-Fetch-Site: same-origin"), 200);
    let answer = ask(door, "GET /api/v1", &format!("{}|Origin: http://evil.example", bearer(READ)), b"");
    assert_eq!(answer.status, 200);
    assert!(!answer.head.to_lowercase().contains("access-control"), "{answer:?}");
    let preflight = "Origin: http://evil.example|Access-Control-Request-Method: POST";
    let answer = ask(door, "OPTIONS /api/v1/config/reload", preflight, b"");
    assert_eq!(answer.status, 403);
    assert!(!answer.head.to_lowercase().contains("access-control"), "{answer:?}");
}

#[test]
fn without_tokens_it_can_be_looked_at_and_no_more() {
    let backends = fakes(1);
    let process = Process::start(&of(&backends[0], "listener: 127.0.0.1:0"), 1);
    let (door, digest) = (door(&process), process.digest());
    for (method, path, scope) in routes(&process) {
        let status = ask(door, &format!("{method} {path}"), &bearer(CONFIGURE), b"").status;
        match scope.as_str() {
            // 422: it would have been read if there had been anything to read.
            "open" | "read" => assert!(matches!(status, 200 | 404 | 422), "{method} {path}: {status}"),
            _ => assert_eq!(status, 403, "{method} {path}"),
        }
    }
    assert_eq!(process.digest(), digest);
}

#[test]
fn tokens_change_with_their_file_and_a_wrong_line_changes_nothing() {
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    let (door, file) = (door(&process), process.folder().join("tokens"));
    let other = "fedcba9876543210fedcba9876543210";
    let status = |token: &str| ask(door, "GET /api/v1", &bearer(token), b"").status;
    // One that was answered keeps its connection, and no rights.
    let mut kept = Client::connect(door);
    let looks = format!("GET /api/v1 HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n", bearer(READ));
    assert_eq!(kept.ask(&looks).status, 200);
    std::fs::write(&file, format!("{}new read {other} {other}\n", tokens())).unwrap();
    let (code, answer) = process.ask("POST /api/v1/config/reload", b"");
    assert_eq!(code, 422, "{answer}");
    let text = answer["problems"][0]["text"].as_str().unwrap();
    assert!(text.contains("tokens:5:1: this line has 4 words"), "{text}");
    assert!(!answer.to_string().contains(other), "{answer}");
    assert_eq!((status(READ), status(other)), (200, 401));
    std::fs::write(&file, format!("new read {other}\n")).unwrap();
    let (code, answer) = process.ask("POST /api/v1/config/reload", b"");
    assert_eq!(code, 200, "{answer}");
    assert!(answer["objects"].to_string().contains("token_file"), "{answer}");
    assert_eq!((status(READ), status(other)), (401, 200));
    assert_eq!(kept.ask(&looks).status, 401);
    let said = process.said().join("\n");
    assert!(!said.contains(other) && !said.contains(READ), "{said}");
}

#[test]
fn where_it_listens_is_changed_by_a_restart_and_told_at_its_line() {
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    let line = process.reload(&of(&backends[0], "listener: 127.0.0.1:1, token_file: tokens"));
    assert!(line.contains("evenkeel.yaml:3: `admin.listener` differs from what is in force"), "{line}");
    let line = process.reload(&of(&backends[0], "socket: off"));
    assert!(line.contains("`admin.listener` differs") || line.contains("`admin.socket` differs"), "{line}");
    assert_eq!(ask(door(&process), "GET /api/v1", &bearer(READ), b"").status, 200);
    // Two processes never share it.
    let second = process.folder().join("second.yaml");
    let taken = format!("listener: {}, token_file: tokens", door(&process));
    std::fs::write(&second, whole(&of(&backends[0], &taken))).unwrap();
    let output = process.command(&["second.yaml"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("second.yaml:3: listener admin: can't bind"), "{said}");
}

#[test]
fn over_tls_the_same_is_answered() {
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("door");
    let issued = authority.issue(["localhost"]);
    std::fs::write(folder.path().join("a.pem"), issued.cert_pem).unwrap();
    std::fs::write(folder.path().join("a.key"), issued.key_pem).unwrap();
    std::fs::write(folder.path().join("tokens"), tokens()).unwrap();
    let admin = "listener: 127.0.0.1:0, token_file: tokens, tls: {cert_file: a.pem, cert_key: a.key}";
    std::fs::write(folder.path().join("evenkeel.yaml"), whole(&of(&backends[0], admin))).unwrap();
    let process = Process::start_in(folder, 1);
    let config = Arc::new(client_config(&[authority.ca_pem()], TLS13, None));
    let mut client = Client::over(TlsSocket::open(door(&process), &config, "localhost").unwrap());
    let line = format!("GET /api/v1 HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n", bearer(READ));
    assert_eq!(client.ask(&line).status, 200);
    assert_eq!(client.ask(&line).status, 200, "on the same connection");
    assert_eq!(client.ask("GET /api/v1 HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 401);
    // Another certificate is shown from the next handshake on.
    let leaf = || TlsSocket::open(door(&process), &config, "localhost").unwrap().leaf();
    let first = leaf();
    let issued = authority.issue(["localhost"]);
    std::fs::write(process.folder().join("a.pem"), issued.cert_pem).unwrap();
    std::fs::write(process.folder().join("a.key"), issued.key_pem).unwrap();
    let (status, answer) = process.ask("POST /api/v1/config/reload", b"");
    assert!(status == 200 && answer["objects"].to_string().contains("admin.tls.cert_file"), "{answer}");
    assert_ne!(leaf(), first);
    assert_eq!(client.ask(&line).status, 200, "who is there stays");
}

/// The socket's mode keeps others out already; here it does not, and what the kernel says of the peer has to.
#[test]
fn another_user_over_the_socket_is_told_nothing_even_if_the_file_lets_it_in() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    open(folder.path());
    let admin = "socket: own.sock";
    std::fs::write(folder.path().join("evenkeel.yaml"), whole(&of(&backends[0], admin))).unwrap();
    let process = Process::start_in(folder, 1);
    let (socket, digest) = (process.folder().join("own.sock"), process.digest());
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = process.folder().join("evenkeel");
    // By another process: whoever is forked by another test while this one writes has the file open, and it can't be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_evenkeel")).arg(&program).status().unwrap();
    assert!(copied.success());
    let run = |user: u32| {
        let mut command = Command::new(&program);
        command.args(["reload", "--socket"]).arg(&socket).current_dir("/").stdin(Stdio::null());
        command.uid(user).gid(user).output().unwrap()
    };
    let refused = run(65_534);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!((refused.status.code(), refused.stdout.is_empty()), (Some(2), true), "{said}");
    assert!(said.contains("own.sock: no answer"), "{said}");
    assert_eq!(process.digest(), digest);
    assert_eq!(run(0).status.code(), Some(0));
}

#[test]
fn readiness_waits_for_the_first_verdicts_and_ends_with_the_first_signal() {
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let answer = || {
        let mut client = Client::over(accept(&backend));
        client.take_until("\r\n\r\n");
        client.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
    };
    let config = format!(
        "workers: 1\nshutdown_delay: 60s\nadmin: {{listener: 127.0.0.1:0}}\ntargets:\n  web:\n    protocol: http\n    \
         listener: 127.0.0.1:0\n    health_check: {{path: /, interval: 60s, timeout: 60s, rise: 1}}\n    \
         backends: [{{host: 127.0.0.1, port: {}}}]\n",
        backend.local_addr().unwrap().port()
    );
    let process = Process::start(&config, 1);
    let door = door(&process);
    let waits = ask(door, "GET /readyz", "", b"");
    assert_eq!(waits.status, 503, "{waits:?}");
    assert_eq!(waits.body["reasons"][0], "target web: 1 of 1 backends have no verdict yet", "{waits:?}");
    assert_eq!(ask(door, "GET /healthz", "", b"").body["alive"], true);
    // The probe.
    answer();
    eventually("it is ready", || ask(door, "GET /readyz", "", b"").status == 200);
    process.terminate();
    eventually("it is not any more", || ask(door, "GET /readyz", "", b"").status == 503);
    let leaves = ask(door, "GET /readyz", "", b"");
    assert_eq!(leaves.body["reasons"][0], "the process has been told to end", "{leaves:?}");
    assert_eq!(ask(door, "GET /healthz", "", b"").status, 200);
    let mut client = Client::connect(process.address("web"));
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    answer();
    assert_eq!(client.answer().text(), "hi", "and it serves");
}

#[test]
fn a_change_for_another_revision_is_refused() {
    let backends = fakes(2);
    let process = guarded(&backends[0]);
    let door = door(&process);
    let revision = || {
        let heard = ask(door, "GET /api/v1", &bearer(READ), b"");
        let line = heard.head.lines().find_map(|line| line.strip_prefix("etag: ")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("no ETag: {heard:?}"))
    };
    let reload = |expected: &str| {
        let headers = format!("{}|If-Match: {expected}", bearer(CONFIGURE));
        ask(door, "POST /api/v1/config/reload", &headers, b"").status
    };
    let first = revision();
    let other = of(&backends[1], "listener: 127.0.0.1:0, token_file: tokens, hosts: [lb.internal]");
    std::fs::write(process.folder().join("evenkeel.yaml"), whole(&other)).unwrap();
    assert_eq!((reload("\"other\""), reload(&first)), (412, 200));
    assert_ne!(revision(), first);
    assert_eq!((reload(&first), reload("*"), reload(&revision())), (412, 200, 200));
}

#[test]
fn public_ports_know_no_admin_path() {
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    let mut client = Client::connect(process.address("web"));
    for path in ["/api/v1", "/api/v1/status", "/metrics", "/goloadbalance", "/healthz", "/readyz"] {
        let answer = client.get(path);
        assert_eq!((answer.status, answer.text()), (200, "Hello from fake-1".to_owned()), "{path}");
    }
}

#[test]
fn the_text_of_a_config_is_taken_over_the_socket_only() {
    let backends = fakes(1);
    let process = guarded(&backends[0]);
    let door = door(&process);
    let text =
        b"targets: {web: {listener: 1, tls: {cert_file: /etc/shadow}, backends: [{host: a, port: 1}]}}\n";
    let headers = format!("{}|Content-Type: application/yaml", bearer(CONFIGURE));
    let heard = ask(door, "POST /api/v1/config/plan", &headers, text);
    assert_eq!(heard.status, 403, "{heard:?}");
    assert!(!format!("{heard:?}").contains("shadow"), "{heard:?}");
    assert_eq!(ask(door, "POST /api/v1/config/plan", &bearer(CONFIGURE), b"").status, 200);
}
