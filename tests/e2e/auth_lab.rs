//! A listener whose routes ask clients who they are: by a file of users, or by a service that answers as it is told.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use evenkeel::config::model::Config;
use fake_backend::{Fake, Running};

use super::support::{self, Answer, Client, Keel};

/// A file of users with passwords that are hashed at the lowest cost.
pub struct Users {
    folder: tempfile::TempDir,
}

impl Users {
    pub fn new(users: &[(&str, &str)]) -> Users {
        let these = Users { folder: tempfile::tempdir().unwrap() };
        these.write(users, 4);
        these
    }

    pub fn write(&self, users: &[(&str, &str)], cost: u32) {
        let line =
            |(name, password): &(&str, &str)| format!("{name}:{}\n", bcrypt::hash(password, cost).unwrap());
        std::fs::write(self.folder.path().join("users"), users.iter().map(line).collect::<String>()).unwrap();
    }

    /// `auth` with the rule `staff`.
    pub fn rule(&self) -> String {
        let file = self.folder.path().join("users");
        format!("auth: {{staff: {{basic: {{users_file: {}, realm: Staff}}}}}}\n", file.display())
    }
}

/// The line that shows a name and a password.
pub fn show(name: &str, password: &str) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"));
    format!("Authorization: Basic {text}\r\n")
}

/// A service on a thread of its own that keeps what it was asked.
pub struct Service {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Service {
    /// `answer` makes an answer of the head of a request; empty: none, and the connection is closed.
    pub fn new(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (list, answer) = (Arc::clone(&asked), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (list, answer) = (Arc::clone(&list), Arc::clone(&answer));
                thread::spawn(move || serve(stream, &list, &*answer));
            }
        });
        Service { address, asked }
    }

    /// One that answers everybody with this.
    pub fn saying(answer: &str) -> Service {
        let answer = answer.as_bytes().to_vec();
        Service::new(move |_| answer.clone())
    }

    /// The heads of what it was asked.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// `auth` with the rule `sso`, and the target that it asks.
    pub fn rule(&self, more: &str) -> String {
        format!(
            "auth: {{sso: {{forward: {{target: sso, path: '/verify?a=b', copy_headers: [X-User, X-Groups]{more}}}}}}}\n"
        )
    }
}

fn serve(mut stream: TcpStream, asked: &Mutex<Vec<String>>, answer: &dyn Fn(&str) -> Vec<u8>) {
    let mut held = Vec::new();
    let mut piece = [0; 4096];
    loop {
        while let Some(end) = held.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&held[..end + 4]).into_owned();
            held.drain(..end + 4);
            asked.lock().unwrap().push(head.clone());
            let answer = answer(&head);
            if answer.is_empty() || stream.write_all(&answer).is_err() {
                return;
            }
        }
        match stream.read(&mut piece) {
            Ok(count) if count > 0 => held.extend_from_slice(&piece[..count]),
            Ok(_) | Err(_) => return,
        }
    }
}

/// A listener with these routes and keys, in front of the targets `web` and `shadow`, and `sso` where a service is asked.
pub struct Door {
    pub keel: Keel,
    pub web: Running,
    pub shadow: Running,
    rule: String,
    keys: String,
    sso: Option<SocketAddr>,
}

impl Door {
    /// `keys`: of the listener, from `routes` on.
    pub fn new(rule: &str, keys: &str, sso: Option<SocketAddr>) -> Door {
        let [web, shadow] =
            ["web", "shadow"].map(|name| Fake::http(name).record().start_in_thread().unwrap());
        let config = config(rule, keys, [web.addr(), shadow.addr()], sso);
        Door { keel: Keel::start(&config), web, shadow, rule: rule.into(), keys: keys.into(), sso }
    }

    /// Loads the same config again, with what is in its files now.
    pub fn reload(&self) {
        let at = [self.web.addr(), self.shadow.addr()];
        self.keel.reload(&config(&self.rule, &self.keys, at, self.sso)).unwrap();
    }

    pub fn client(&self) -> Client {
        self.keel.client()
    }

    /// `GET path` with these further lines, on a connection of its own.
    pub fn get(&self, path: &str, lines: &str) -> Answer {
        self.client().ask(&request("GET", path, lines))
    }
}

fn config(rule: &str, keys: &str, [web, shadow]: [SocketAddr; 2], sso: Option<SocketAddr>) -> Config {
    let sso = sso.map(|at| format!("  sso: {{health_check: off, backends: [{{url: 'http://{at}'}}]}}\n"));
    support::load(&format!(
        "workers: 1\n{rule}listeners:\n  front:\n    bind: 127.0.0.1:0\n{keys}targets:\n  \
         web: {{health_check: off, backends: [{{name: b, url: 'http://{web}'}}]}}\n  \
         shadow: {{health_check: off, backends: [{{name: b, url: 'http://{shadow}'}}]}}\n{}",
        sso.unwrap_or_default()
    ))
}

/// A request without a body.
pub fn request(method: &str, path: &str, lines: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: h.example\r\n{lines}\r\n")
}

/// The cause that an answer of ours names.
pub fn cause(answer: &Answer) -> &str {
    let status = answer.header("Proxy-Status").unwrap_or_default();
    status.split_once("details=").map_or("", |(_, cause)| cause)
}
