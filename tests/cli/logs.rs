//! Logs of a running process: rotation, a destination that takes nothing, the forms of events.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use fake_backend::Running;
use rustix::process::Signal;

use super::{PATIENCE, Started, address_in, backend, evenkeel, eventually, outcome};

/// A process with a config of its own in front of one backend.
pub(super) struct Lab {
    folder: tempfile::TempDir,
    pub(super) lb: Started,
    address: SocketAddr,
    target: String,
    _backend: Running,
}

impl Lab {
    /// `top`: lines at the top of the config.
    pub(super) fn start(top: &str) -> Lab {
        Lab::start_in(tempfile::tempdir().unwrap(), top)
    }

    /// In a folder that has something in it.
    fn start_in(folder: tempfile::TempDir, top: &str) -> Lab {
        let mut lab = Lab::spawn(folder, top, &[]);
        lab.address = address_in(&lab.lb.wait_for("listening"));
        lab
    }

    /// Where it listens has still to be read from its events.
    pub(super) fn spawn(folder: tempfile::TempDir, top: &str, flags: &[&str]) -> Lab {
        let backend = backend("one");
        let target = format!(
            "workers: 2\ntargets: {{web: {{protocol: http, listener: 0, health_check: off, backends: [{{url: \"{}\"}}]}}}}\n",
            backend.url()
        );
        let config = folder.path().join("evenkeel.yaml");
        std::fs::write(&config, format!("{top}\n{target}")).unwrap();
        let lb = Started::new(evenkeel(&[&["--config", config.to_str().unwrap()], flags].concat()));
        Lab { folder, lb, address: "127.0.0.1:0".parse().unwrap(), target, _backend: backend }
    }

    /// Writes other lines at the top of the config and tells it to read that.
    pub(super) fn rewrite(&self, top: &str) {
        std::fs::write(self.file("evenkeel.yaml"), format!("{top}\n{}", self.target)).unwrap();
        self.lb.signal(Signal::HUP);
    }

    /// The same, until it says what came of that.
    pub(super) fn reload(&mut self, top: &str) -> String {
        self.rewrite(top);
        self.lb.wait_for("reload")
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn client(&self) -> TcpStream {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    pub(super) fn end(mut self) {
        self.lb.signal(Signal::TERM);
        assert_eq!(self.lb.exit_code(), Some(0));
    }
}

/// One request on an open connection; the answer has a body of 14 bytes.
pub(super) fn ask(socket: &mut TcpStream, path: &str, more: &str) {
    socket.write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\n{more}\r\n").as_bytes()).unwrap();
    let mut head = Vec::new();
    let mut byte = [0u8; 1];
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    socket.read_exact(&mut [0u8; b"Hello from one".len()]).unwrap();
}

pub(super) fn lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // A line that is just being written does not count.
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| line.trim_end().to_owned())
        .collect()
}

pub(super) fn has(file: &Path, path: &str) -> bool {
    lines(file).iter().any(|line| line == path)
}

const PATHS: &str = "access_log: {path: access.log, format: '{path}'}";

#[test]
fn a_moved_log_is_reopened_and_no_line_is_lost_between_the_files() {
    let mut lab = Lab::start(PATHS);
    let log = lab.file("access.log");
    let old: Vec<PathBuf> = (0..3).map(|round| lab.file(&format!("access.log.{round}"))).collect();
    let stop = AtomicBool::new(false);
    let asked = std::thread::scope(|scope| {
        let mut busy = lab.client();
        let stop = &stop;
        // Traffic all the while.
        let traffic = scope.spawn(move || {
            let numbers = (0..).take_while(|_| !stop.load(Ordering::Relaxed));
            numbers.map(|number: u32| ask(&mut busy, &format!("/n/{number}"), "")).count()
        });
        let mut client = lab.client();
        for (round, old) in old.iter().enumerate() {
            ask(&mut client, &format!("/before/{round}"), "");
            eventually("the line is in the file", || has(&log, &format!("/before/{round}")));
            std::fs::rename(&log, old).unwrap();
            lab.lb.signal(Signal::USR1);
            lab.lb.wait_for("reopened");
            ask(&mut client, &format!("/after/{round}"), "");
        }
        stop.store(true, Ordering::Relaxed);
        traffic.join().unwrap()
    });
    lab.lb.signal(Signal::TERM);
    assert_eq!(lab.lb.exit_code(), Some(0));
    for (round, old) in old.iter().enumerate() {
        assert!(has(old, &format!("/before/{round}")) && !has(old, &format!("/after/{round}")), "{round}");
    }
    let mut all: Vec<String> = old.iter().chain([&log]).flat_map(|file| lines(file)).collect();
    assert_eq!(all.len(), asked + 6);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), asked + 6, "each line once");
}

#[test]
fn a_log_that_can_not_be_reopened_stays_the_old_one_and_the_reason_is_told() {
    let mut lab = Lab::start(PATHS);
    let (log, old) = (lab.file("access.log"), lab.file("old.log"));
    std::fs::rename(&log, &old).unwrap();
    std::fs::create_dir(&log).unwrap();
    lab.lb.signal(Signal::USR1);
    let told = lab.lb.wait_for("can't be reopened");
    assert!(told.contains("ERROR") && told.contains("access.log") && told.contains("directory"), "{told}");
    let mut client = lab.client();
    ask(&mut client, "/kept", "");
    eventually("the line is in the old file", || has(&old, "/kept"));
    std::fs::remove_dir(&log).unwrap();
    lab.lb.signal(Signal::USR1);
    lab.lb.wait_for("reopened");
    ask(&mut client, "/new", "");
    eventually("the line is in the new file", || has(&log, "/new"));
    assert!(!has(&old, "/new"));
    lab.end();
}

#[test]
fn the_signal_does_no_harm_where_there_is_no_file() {
    for (top, logged) in
        [("access_log: {path: stdout, format: '<{path}>'}", true), ("access_log: off", false)]
    {
        let mut lab = Lab::start(top);
        lab.lb.signal(Signal::USR1);
        lab.lb.wait_for("no access log file");
        ask(&mut lab.client(), "/still", "");
        if logged {
            lab.lb.wait_for("</still>");
        }
        lab.end();
    }
}

#[test]
fn a_destination_that_takes_nothing_costs_lines_and_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // It starts although nobody reads.
    let mut lab = Lab::start_in(folder, "access_log: {path: pipe, format: json}");
    let mut client = lab.client();
    let more = format!("User-Agent: {0}\r\nReferer: {0}\r\n", "x".repeat(4000));
    let path = format!("/{}", "y".repeat(4000));
    let mut asked = 0;
    // About 4 MiB fit into the queue.
    while !lab.lb.has_said("records were dropped") {
        ask(&mut client, &path, &more);
        asked += 1;
        assert!(asked < 20_000, "nothing is ever dropped");
    }
    // A reader comes at last: what was kept arrives, and so does what follows.
    let (send, read) = mpsc::channel();
    let source = std::fs::File::open(&pipe).unwrap();
    std::thread::spawn(move || {
        BufReader::new(source).lines().map_while(Result::ok).all(|line| send.send(line).is_ok())
    });
    let mut arrived = 0;
    eventually("lines come again", || {
        ask(&mut client, "/again", "");
        asked += 1;
        read.try_iter().any(|line: String| {
            arrived += 1;
            let record: serde_json::Value = serde_json::from_str(&line).expect("whole lines only");
            record["path"] == "/again"
        })
    });
    assert!(arrived < asked, "{arrived} of {asked} arrived");
    lab.end();
}

#[test]
fn events_are_json_when_asked_for_by_file_or_flag() {
    let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    for (top, flags) in [("log_format: json", &[][..]), ("log_format: text", &["--log-format", "json"])] {
        let mut lab = Lab::spawn(tempfile::tempdir().unwrap(), top, flags);
        let listening = parse(&lab.lb.wait_for("listening"));
        let said = listening["message"].as_str().unwrap();
        assert!(listening["level"] == "info" && said.starts_with("listening 127.0.0.1:"), "{listening}");
        assert_eq!(listening["fields"]["listener"], "web");
        lab.address = listening["fields"]["address"].as_str().unwrap().parse().unwrap();
        ask(&mut lab.client(), "/", "");
        lab.lb.signal(Signal::TERM);
        lab.lb.wait_for("everything was finished");
        assert_eq!(lab.lb.exit_code(), Some(0));
        assert!(lab.lb.seen.iter().all(|line| parse(line)["level"].is_string()), "{:?}", lab.lb.seen);
    }
}

#[test]
fn the_error_that_ends_a_start_is_an_event_too() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, _, err) =
        outcome(&["--backends", "http://127.0.0.1:1", "--port", &port, "--log-format", "json"]);
    assert_eq!(code, Some(1));
    let last: serde_json::Value = serde_json::from_str(err.lines().last().unwrap()).unwrap();
    assert_eq!(last["level"], "error");
    let message = last["message"].as_str().unwrap();
    assert!(message.contains("in use") && !message.contains('\n'), "{last}");
    let field = |name: &str| last["fields"][name].as_str().unwrap_or_else(|| panic!("{name}: {last}"));
    assert_eq!((field("place"), field("listener")), ("--port", "default"));
    assert_eq!(field("address"), format!("127.0.0.1:{port}"));
    assert!(field("error").starts_with("Address already in use"), "{last}");
    assert!(field("held_by").contains(&format!("(process {})", std::process::id())), "{last}");
    assert_eq!(field("hint"), "end that process, or write another port");
}
