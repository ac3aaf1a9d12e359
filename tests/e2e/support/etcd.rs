//! Members of etcd, in processes that end with the test. Where there is no etcd on the machine, whoever needs one is left out; `scripts/test`
//! installs it.

use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel::config::model::EtcdConfig;
use evenkeel::config::{Flags, load_text};
use evenkeel::net::holder::{self, Transport};
use fake_backend::Authority;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::port::Reserved;
use super::{Client, eventually};

/// Ends its child with itself: the test may be killed.
const LEASH: &str = r#"etcd "$@" & child=$!; cat >/dev/null; kill -9 $child; wait $child"#;

/// Some members that act as one.
pub struct Etcd {
    folder: TempDir,
    members: Vec<Member>,
    tls: bool,
}

struct Member {
    name: String,
    client: Reserved,
    peer: Reserved,
    process: Option<Leashed>,
}

/// A process that ends with this.
struct Leashed {
    shell: Child,
    pid: u32,
}

/// Why a test has failed may be said there.
#[expect(clippy::print_stderr, reason = "nobody else shows it")]
impl Drop for Etcd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (0..self.members.len())
                .for_each(|number| eprintln!("what etcd m{number} has logged:\n{}", self.log(number)));
        }
    }
}

impl Leashed {
    /// Whether it has not ended.
    fn runs(&self) -> bool {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", self.pid));
        state.is_ok_and(|state| !state.contains(") Z "))
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", &self.pid.to_string()]).stderr(Stdio::null()).status();
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// Whether there is one. Says so if there is none.
#[expect(clippy::print_stderr, reason = "who runs it is to know what was left out")]
pub fn is_there() -> bool {
    let found = Command::new("etcd").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = found.is_ok();
    if !is_there {
        eprintln!("left out: there is no etcd on this machine (Debian: etcd-server)");
    }
    is_there
}

impl Etcd {
    /// So many members, all of which know a leader.
    pub fn start(count: usize) -> Etcd {
        Etcd::launch(count, false)
    }

    /// The same with TLS, for clients that have a certificate.
    pub fn start_with_tls(count: usize) -> Etcd {
        Etcd::launch(count, true)
    }

    fn launch(count: usize, tls: bool) -> Etcd {
        let members = (0..count).map(|number| Member {
            name: format!("m{number}"),
            client: Reserved::new(),
            peer: Reserved::new(),
            process: None,
        });
        let mut etcd = Etcd { folder: TempDir::new().unwrap(), members: members.collect(), tls };
        if tls {
            etcd.write_certificates();
        }
        for number in 0..count {
            etcd.begin(number);
        }
        etcd.comes_up();
        etcd
    }

    fn write_certificates(&self) {
        let authority = Authority::new("etcd's");
        let write = |name: &str, text: &str| std::fs::write(self.path(name), text).unwrap();
        write("ca.pem", authority.ca_pem());
        for (name, issued) in
            [("server", authority.issue(["127.0.0.1"])), ("client", authority.issue_client("evenkeel"))]
        {
            write(&format!("{name}.pem"), &issued.cert_pem);
            write(&format!("{name}.key"), &issued.key_pem);
        }
    }

    /// A file of the certificates: `ca.pem`, `client.pem`, `client.key`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// Starts a member that is not there, with what it had, until it listens: somebody may have its port for a moment.
    pub fn begin(&mut self, number: usize) {
        let address = SocketAddr::from(([127, 0, 0, 1], self.members[number].client.number()));
        eventually("etcd listens", || {
            if !self.members[number].process.as_ref().is_some_and(Leashed::runs) {
                self.members[number].process = None;
                self.members[number].process = Some(self.spawn(number));
            }
            // It, and nobody else.
            let holder = holder::of(Transport::Tcp, address).map(|holder| holder.process);
            holder.is_some() && holder == self.members[number].process.as_ref().map(|process| process.pid)
        });
    }

    fn spawn(&self, number: usize) -> Leashed {
        let all =
            self.members.iter().map(|one| format!("{}=http://127.0.0.1:{}", one.name, one.peer.number()));
        let all = all.collect::<Vec<_>>().join(",");
        let Member { name, client, peer, .. } = &self.members[number];
        let at = format!("{}://127.0.0.1:{}", self.scheme(), client.number());
        let to_peers = format!("http://127.0.0.1:{}", peer.number());
        let log = File::options().create(true).append(true).open(self.path(&format!("{name}.log"))).unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", LEASH, "sh", "--name", name, "--data-dir"])
            .arg(self.path(&format!("{name}.data")));
        command.args(["--listen-client-urls", &at, "--advertise-client-urls", &at]);
        command.args(["--listen-peer-urls", &to_peers, "--initial-advertise-peer-urls", &to_peers]);
        command.args(["--initial-cluster", &all, "--initial-cluster-state", "new"]);
        command.args(["--heartbeat-interval", "100", "--election-timeout", "1000", "--log-level", "warn"]);
        if self.tls {
            let file = |name: &str| self.path(name).display().to_string();
            command.args(["--cert-file", &file("server.pem"), "--key-file", &file("server.key")]);
            command.args(["--client-cert-auth", "--trusted-ca-file", &file("ca.pem")]);
        }
        command.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log);
        let shell = command.spawn().unwrap();
        let mut pid = None;
        eventually("etcd runs", || {
            let found = Command::new("pgrep").args(["-P", &shell.id().to_string(), "-x", "etcd"]).output();
            pid = String::from_utf8_lossy(&found.unwrap().stdout).trim().parse().ok();
            pid.is_some()
        });
        Leashed { shell, pid: pid.unwrap() }
    }

    /// Waits until all members answer.
    fn comes_up(&self) {
        eventually("etcd answers", || {
            let is_answering = |member: &Member| {
                assert!(member.process.as_ref().is_some_and(Leashed::runs), "etcd has ended");
                TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], member.client.number()))).is_ok()
            };
            self.members.iter().all(is_answering)
        });
    }

    /// What a member has logged.
    fn log(&self, number: usize) -> String {
        std::fs::read_to_string(self.path(&format!("m{number}.log"))).unwrap_or_default()
    }

    /// Ends a member at once; what it has stays.
    pub fn kill(&mut self, number: usize) {
        self.members[number].process = None;
    }

    /// Ends a member, and begins it with nothing.
    pub fn wipe(&mut self, number: usize) {
        self.kill(number);
        std::fs::remove_dir_all(self.path(&format!("m{number}.data"))).unwrap();
        self.begin(number);
    }

    /// Stops a member where it is, or lets it go on.
    pub fn pause(&self, number: usize, is_paused: bool) {
        let pid = self.members[number].process.as_ref().unwrap().pid;
        let signal = if is_paused { "-STOP" } else { "-CONT" };
        assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
    }

    /// Changes a row behind the backs of all, with the JSON that the first member takes.
    pub fn put_row(&self, name: &str, value: &str) {
        self.json("put", &json!({ "key": STANDARD.encode(name), "value": STANDARD.encode(value) }));
    }

    /// The same of one that is to be gone.
    pub fn drop_row(&self, name: &str) {
        self.json("deleterange", &json!({ "key": STANDARD.encode(name) }));
    }

    /// What a row says; nothing if it is not there.
    pub fn get_row(&self, name: &str) -> String {
        let answer = self.json("range", &json!({ "key": STANDARD.encode(name) }));
        let value = answer["kvs"][0]["value"].as_str().unwrap_or_default();
        String::from_utf8(STANDARD.decode(value).unwrap()).unwrap()
    }

    /// How many rows there are whose names begin with this.
    pub fn count(&self, prefix: &str) -> u64 {
        let mut behind = prefix.as_bytes().to_vec();
        *behind.last_mut().unwrap() += 1;
        let (key, range_end) = (STANDARD.encode(prefix), STANDARD.encode(behind));
        let answer = self.json("range", &json!({ "key": key, "range_end": range_end, "count_only": true }));
        answer["count"].as_str().map_or(0, |count| count.parse().unwrap())
    }

    /// Whoever does not say who it is has no rights from now on.
    pub fn guard(&self) {
        let root = json!({ "name": "root", "password": "r" });
        self.ask("auth/user/add", &root);
        self.ask("auth/role/add", &root);
        self.ask("auth/user/grant", &json!({ "user": "root", "role": "root" }));
        self.ask("auth/enable", &json!({}));
    }

    fn json(&self, what: &str, question: &Value) -> Value {
        self.ask(&format!("kv/{what}"), question)
    }

    fn ask(&self, what: &str, question: &Value) -> Value {
        let mut client = Client::connect(SocketAddr::from(([127, 0, 0, 1], self.members[0].client.number())));
        let body = question.to_string();
        let head = format!("POST /v3/{what} HTTP/1.1\r\nHost: e\r\nContent-Length: {}\r\n\r\n", body.len());
        client.send((head + &body).as_bytes());
        serde_json::from_slice(&client.answer().body).unwrap()
    }

    /// URLs of all members.
    pub fn urls(&self) -> Vec<String> {
        let url = |member: &Member| format!("{}://127.0.0.1:{}", self.scheme(), member.client.number());
        self.members.iter().map(url).collect()
    }

    /// The mapping behind `etcd:` in a config; `keys`: what else it says.
    pub fn yaml(&self, keys: &str) -> String {
        let tls = match self.tls {
            true => format!(
                ", ca_file: {}, client_cert: {}, client_key: {}",
                self.path("ca.pem").display(),
                self.path("client.pem").display(),
                self.path("client.key").display()
            ),
            false => String::new(),
        };
        format!("{{endpoints: [{}]{tls}{keys}}}", self.urls().join(", "))
    }

    /// The same as the accepted form.
    pub fn config(&self, prefix: &str) -> EtcdConfig {
        let etcd = self.yaml(&format!(", prefix: {prefix}"));
        let text = format!("cluster: {{name: t, etcd: {etcd}}}\nservers: [http://127.0.0.1:1]\n");
        let loaded = load_text(&text, "t.yaml", self.folder.path(), &Flags::default(), &|_| None);
        let cluster = loaded.unwrap().config.cluster.unwrap();
        cluster.etcd.clone().unwrap()
    }
}
