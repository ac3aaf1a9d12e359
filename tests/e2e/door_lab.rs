//! A process with an admin API over TCP, and a client that says exactly what it is told to.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use fake_backend::Running;
use serde_json::Value;

use super::support::PATIENCE;
use super::support::process::Process;

/// Tokens of each scope, and what the file of them reads.
pub const READ: &str = "0123456789abcdef0123456789abcdef";
pub const OPERATE: &str = "123456789abcdef0123456789abcdef0";
pub const CONFIGURE: &str = "23456789abcdef0123456789abcdef01";

pub fn tokens() -> String {
    format!("# name scope token\neyes read {READ}\nhands operate {OPERATE}\nhead configure {CONFIGURE}\n")
}

/// A config with one backend and whatever `admin` is to say.
pub fn of(backend: &Running, admin: &str) -> String {
    format!(
        "workers: 1\nadmin: {{{admin}}}\ntargets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n    \
         backends: [{{host: 127.0.0.1, port: {}}}]\n",
        backend.port()
    )
}

/// A process that is to be asked with a token.
pub fn guarded(backend: &Running) -> Process {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokens"), tokens()).unwrap();
    let config = of(backend, "listener: 127.0.0.1:0, token_file: tokens, hosts: [lb.internal]");
    let config = super::support::process::whole(&config);
    std::fs::write(folder.path().join("evenkeel.yaml"), config).unwrap();
    Process::start_in(folder, 1)
}

/// Where its admin API is over TCP.
pub fn door(process: &Process) -> SocketAddr {
    let said = process.said();
    let line = said.iter().find_map(|line| line.split("admin listener ").nth(1));
    let line = line.unwrap_or_else(|| panic!("no admin listener: {said:#?}"));
    line.split([' ', ',']).next().unwrap().parse().unwrap()
}

/// What came back.
#[derive(Debug)]
pub struct Heard {
    pub status: u16,
    pub head: String,
    pub body: Value,
}

/// Sends bytes, and reads until the other side closes. Whoever refuses a body need not read it.
pub fn raw(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    // It may be reset behind the answer.
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// Asks over TCP; `headers` are whole lines with `|` between them.
pub fn ask(address: SocketAddr, line: &str, headers: &str, body: &[u8]) -> Heard {
    let lines: String =
        headers.split('|').filter(|line| !line.is_empty()).map(|line| format!("{line}\r\n")).collect();
    let host = if headers.contains("Host: ") { "" } else { "Host: localhost\r\n" };
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let head = format!("{line} HTTP/1.1\r\n{host}{lines}{length}Connection: close\r\n\r\n");
    let answer = raw(address, &[head.as_bytes(), body].concat());
    let text = String::from_utf8(answer).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{line} {headers}: no answer"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Heard { status, head: head.to_owned(), body: serde_json::from_str(body).unwrap_or(Value::Null) }
}

/// The line that shows a token.
pub fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// Method, path and scope of all that can be asked, with something in the place of what is in braces.
pub fn routes(process: &Process) -> Vec<(String, String, String)> {
    let (status, about) = process.ask("GET /api/v1", b"");
    assert_eq!(status, 200, "{about}");
    let text = |route: &Value, name: &str| route[name].as_str().unwrap().to_owned();
    let routes = about["routes"].as_array().unwrap().iter();
    routes
        .map(|route| {
            let path = text(route, "path").replace("{target}", "web").replace(['{', '}'], "");
            (text(route, "method"), path, text(route, "scope"))
        })
        .collect()
}
