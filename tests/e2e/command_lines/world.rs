//! Surroundings in which command lines are executed: folders that stand for those of the machine, ports that stand for those in the texts, and
//! programs that stand in for those that no test may have.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

use fake_backend::Authority;
use regex::Regex;
use tempfile::TempDir;

use super::Row;
use crate::support::eventually;
use crate::support::terminal::Terminal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel");

/// The ports in the texts, and the addresses that stand for machines elsewhere.
const PORTS: &[&str] = &[
    "2379", "2380", "3030", "8000", "8001", "8002", "8080", "8090", "8091", "8092", "8093", "9000", "9090",
    "9900", "9901",
];

/// Programs that stand in for others, with what they do instead.
const STAND_INS: &[(&str, &str)] = &[
    // Everything here is the tester's own.
    ("sudo", r#"exec "$@""#),
    // What it would build is built.
    (
        "cargo",
        r#"case "$*" in
"run --release -- "*) shift 3; exec evenkeel "$@" ;;
"run --release -p fake_backend -- "*) shift 5; exec fake_backend "$@" ;;
"install --path .") cp -L "$BIN/evenkeel" "$HOME/.cargo/bin/" ;;
"build --release --workspace") ;;
*) echo "cargo $*?" >&2; exit 1 ;;
esac"#,
    ),
    // The unit says what becomes of a reload.
    (
        "systemctl",
        r#"[ "$*" = "reload evenkeel" ] || exit 1
exec $(sed -n "s,^ExecReload=/usr/local/bin/,,p" "$SOURCE/packaging/systemd/evenkeel.service" | sed "s,/etc/evenkeel,$ROOT/etc/evenkeel,")"#,
    ),
    ("ssh", r#"[ "$1 $2" = "-t edge-1" ] && shift 2 && exec "$@""#),
    // A pager at a terminal.
    ("man", r#"[ "$*" = "-l -" ] && exec cat"#),
    ("generate", r#"exec cat new.yaml"#),
    ("nsupdate", r#"echo "$*"; exec cat"#),
];

/// Held while a demo begins, in whichever world.
static BEGINNING: Mutex<()> = Mutex::new(());

/// One of them. Processes that are left end with it.
pub struct World {
    name: String,
    folder: TempDir,
    first_port: u16,
    left: Vec<Child>,
}

impl World {
    pub fn new(name: &str) -> World {
        let world = World {
            name: name.to_owned(),
            folder: TempDir::new().unwrap(),
            first_port: ports(),
            left: Vec::new(),
        };
        for folder in [
            "here",
            "bin",
            "etc/evenkeel",
            "run/evenkeel",
            "state",
            "tmp",
            "home/.cargo/bin",
            "home/.zfunc",
            "home/.config/fish/completions",
            "home/.config/elvish",
            "home/.local/share/bash-completion/completions",
        ] {
            fs::create_dir_all(world.path(folder)).unwrap();
        }
        symlink(PROGRAM, world.path("bin/evenkeel")).unwrap();
        let backend = Path::new(PROGRAM).with_file_name("fake_backend");
        assert!(backend.exists(), "it is built with the workspace: `cargo build --workspace`");
        symlink(backend, world.path("bin/fake_backend")).unwrap();
        // Where names of the examples are.
        let elsewhere = world.mapped("connect-to = \"shop.example:80:127.0.0.1:8080\"\n");
        fs::write(world.path("home/.curlrc"), elsewhere).unwrap();
        for (name, text) in STAND_INS {
            let path = world.path("bin").join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        // Its files, with the same paths and ports as the commands.
        for (place, folder) in [
            ("fixtures/commands/here", "here"),
            ("fixtures/commands/etc", "etc/evenkeel"),
            ("fixtures/gruglb", "here/fixtures/gruglb"),
        ] {
            fs::create_dir_all(world.path(folder)).unwrap();
            for entry in
                fs::read_dir(place).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file())
            {
                let text = world.mapped(&fs::read_to_string(entry.path()).unwrap());
                fs::write(world.path(folder).join(entry.file_name()), text).unwrap();
            }
        }
        let authority = Authority::new("of the commands");
        let issued = authority.issue(["shop.example"]);
        for folder in ["here", "etc/evenkeel"] {
            fs::write(world.path(folder).join("ca.pem"), authority.ca_pem()).unwrap();
            fs::write(world.path(folder).join("shop.pem"), &issued.cert_pem).unwrap();
            fs::write(world.path(folder).join("shop.key"), &issued.key_pem).unwrap();
        }
        world
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    /// A text of a document, for here.
    fn mapped(&self, text: &str) -> String {
        let root = self.folder.path().display();
        let mut text = text.to_owned();
        // The first one is where all of them are here.
        for (folder, here) in [
            ("/tmp/", "tmp/"),
            ("/etc/evenkeel", "etc/evenkeel"),
            ("/run/evenkeel", "run/evenkeel"),
            ("/usr/local/bin", "bin"),
        ] {
            text = text.replace(folder, &format!("{root}/{here}"));
        }
        // A request that there is, in the place of the examples' own.
        for example in ["5f0c1d2e3a4b5c6d7e8f9a0b1c2d3e4f", "7c1e1d0e7bb44d4fb2a1c1f3a3a0a5f6"] {
            text = text.replace(example, "$(cat id)");
        }
        // Machines elsewhere are this one.
        text = text.replace("10.0.0.", "127.0.0.");
        for (number, port) in (0..).zip(PORTS) {
            let word = Regex::new(&format!(r"\b{port}\b")).unwrap();
            text = word.replace_all(&text, (self.first_port + number).to_string()).into_owned();
        }
        text
    }

    /// Executes it, and looks whether what comes of it is what the row says.
    pub fn run(&mut self, text: &str, row: &Row) {
        let text = self.mapped(text);
        let wanted: Vec<String> = row.wanted.iter().map(|text| self.mapped(text)).collect();
        if text.starts_with("#!") {
            let path = self.path("here/script");
            fs::write(&path, &text).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
            return;
        }
        let (code, said) = match &row.typed {
            Some(typed) => self.at_a_terminal(&text, &wanted, typed),
            None if row.stays => (Some(0), self.beside(&text, &wanted)),
            None if row.again => {
                let mut last = (None, String::new());
                eventually(&text, || {
                    last = self.to_its_end(&text);
                    wanted.iter().all(|wanted| last.1.contains(wanted.as_str()))
                });
                last
            }
            None => self.to_its_end(&text),
        };
        let at = format!("{}, line {}: $ {text}\n{said}", self.name, row.line);
        assert_eq!(code, Some(row.code), "{at}");
        for unwanted in &row.unwanted {
            assert!(!said.contains(unwanted.as_str()), "it says {unwanted:?}\n{at}");
        }
        for wanted in &wanted {
            assert!(said.contains(wanted.as_str()), "it does not say {wanted:?}\n{at}");
        }
    }

    fn dress<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let address =
            |port: usize| format!("http://127.0.0.1:{}", self.first_port + u16::try_from(port).unwrap());
        let (client, peer) = (address(0), address(1));
        command
            .current_dir(self.path("here"))
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.path("bin").display()))
            .env("BIN", self.path("bin"))
            .env("ROOT", self.folder.path())
            .env("SOURCE", env!("CARGO_MANIFEST_DIR"))
            .env("HOME", self.path("home"))
            .env("PROFILE", self.path("home/profile.ps1"))
            .env("TMPDIR", self.path("tmp"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("LC_ALL", "C.UTF-8")
            // What its command line leaves to it.
            .env("ETCD_LISTEN_CLIENT_URLS", &client)
            .env("ETCD_ADVERTISE_CLIENT_URLS", &client)
            .env("ETCD_LISTEN_PEER_URLS", &peer)
            .env("ETCD_INITIAL_ADVERTISE_PEER_URLS", &peer)
            .env("ETCD_INITIAL_CLUSTER", format!("default={peer}"))
            .env_remove("RUNTIME_DIRECTORY")
            .env_remove("STATE_DIRECTORY")
            .env_remove("EVENKEEL_SOCKET")
            .env_remove("NO_COLOR")
    }

    fn to_its_end(&self, text: &str) -> (Option<i32>, String) {
        // What does not end is ended.
        let mut limited = Command::new("timeout");
        self.dress(limited.args(["--kill-after=1", "60", "bash", "-o", "pipefail", "-c", text]));
        let output = limited.stdin(Stdio::null()).output().unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), said)
    }

    /// Until it has said all that is wanted; it goes on then.
    fn beside(&mut self, text: &str, wanted: &[String]) -> String {
        // A demo takes other ports where its usual ones are taken; two that begin at the same moment find them free.
        let is_demo = text.contains(" demo");
        let _one = is_demo.then(|| BEGINNING.lock().unwrap_or_else(PoisonError::into_inner));
        let log = self.path(&format!("tmp/{}.log", self.left.len()));
        let file = fs::File::create(&log).unwrap();
        // When this process ends, however it does, its end of the pipe closes, and all that it has begun is over.
        let leash = format!("{{ {text}\n}} </dev/null & cat >/dev/null; kill -KILL 0");
        let mut shell = Command::new("bash");
        self.dress(shell.args(["-c", &leash]));
        shell.stdin(Stdio::piped()).stdout(file.try_clone().unwrap()).stderr(file).process_group(0);
        self.left.push(shell.spawn().unwrap());
        let said = || fs::read_to_string(&log).unwrap_or_default();
        let mut seen = String::new();
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually("it says all that it is to say", || {
                seen = said();
                wanted.iter().all(|wanted| seen.contains(wanted.as_str()))
            });
        }));
        assert!(waited.is_ok(), "{}: $ {text} does not say all of {wanted:?}\n{seen}", self.name);
        seen
    }

    fn at_a_terminal(&self, text: &str, wanted: &[String], typed: &str) -> (Option<i32>, String) {
        let mut command = Command::new("setsid");
        self.dress(command.args(["--ctty", "bash", "-c", text]).env("TERM", "xterm-256color"));
        let mut terminal = Terminal::run(command, (100, 30));
        let mut seen = String::new();
        eventually(&format!("{}: $ {text} shows {wanted:?}", self.name), || {
            seen = terminal.text();
            wanted.iter().all(|wanted| seen.contains(wanted.as_str()))
        });
        terminal.press(typed);
        (terminal.end().code(), seen)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for mut child in self.left.drain(..).rev() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

/// A port with 31 behind it that are free: below those that the system hands out, and at which no other test of this run looks.
fn ports() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id() % 600).unwrap() * 32;
    loop {
        let first = 10_000 + (own + 32 * TAKEN.fetch_add(1, Ordering::Relaxed)) % 19_200;
        if (first..first + 32).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return first;
        }
    }
}
