//! Processes that another binary takes the place of, and clients that go on meanwhile.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fake_backend::Running;
use serde_json::Value;

use super::support::process::{Process, ask};
use super::support::{Client, PATIENCE, eventually};

/// Processes that have come into the place of one of ours: nobody else ends them.
#[derive(Default)]
pub struct Heirs(pub Vec<u32>);

impl Drop for Heirs {
    fn drop(&mut self) {
        for heir in self.0.drain(..).filter_map(|heir| rustix::process::Pid::from_raw(heir as i32)) {
            let _ = rustix::process::kill_process(heir, rustix::process::Signal::KILL);
        }
    }
}

impl Heirs {
    /// Ends the last one, and waits for that.
    pub fn terminate(&mut self) {
        let last = self.0.pop().unwrap();
        signal(last, rustix::process::Signal::TERM);
        eventually("it has ended", || has_ended(last));
    }

    /// Upgrades whoever listens at `socket`; gives the answer.
    pub fn upgrade(&mut self, socket: &Path, ask_for: &Value) -> Value {
        let (status, answer) = ask(socket, "POST /api/v1/upgrade", ask_for.to_string().as_bytes());
        assert_eq!(status, 200, "{answer}");
        let process = answer["process"].as_u64().unwrap() as u32;
        self.0.push(process);
        eventually("the new one answers", || identity(socket) == Some(process));
        answer
    }
}

/// Whether a process that is no child of this one has ended, with all that it had open: its memory goes first, and its threads one by one.
fn has_ended(process: u32) -> bool {
    let Ok(state) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return true };
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count);
    state.contains(") Z ") && threads <= 1
}

/// How many processes have ended so far that had nothing to cut: what they say goes on in one place.
pub fn ended(process: &Process) -> usize {
    process.said().iter().filter(|line| line.contains("stopped; everything was finished")).count()
}

/// Which process answers there.
pub fn identity(socket: &Path) -> Option<u32> {
    let (mut asked, mut text) = (UnixStream::connect(socket).ok()?, String::new());
    asked.set_read_timeout(Some(PATIENCE)).unwrap();
    // It may be killed meanwhile.
    asked.write_all(b"GET /api/v1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").ok()?;
    asked.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let answer: Value = serde_json::from_str(body).ok()?;
    head.starts_with("HTTP/1.1 200").then(|| answer["pid"].as_u64().unwrap() as u32)
}

/// Why there was no upgrade.
pub fn refused(process: &Process, ask_for: &Value) -> String {
    let (status, answer) = process.ask("POST /api/v1/upgrade", ask_for.to_string().as_bytes());
    assert!([400, 409].contains(&status), "{status} {answer}");
    answer["detail"].as_str().unwrap().to_owned()
}

pub fn config(backends: &[Running], more: &str) -> String {
    let backends: Vec<String> =
        backends.iter().map(|one| format!("{{url: 'http://{}'}}", one.addr())).collect();
    format!(
        "workers: 2\nshutdown_timeout: 20s\ntargets: {{web: {{protocol: http, listener: '127.0.0.1:0', \
         health_check: {{path: /health, interval: 50ms}}, backends: [{}]}}}}\n{more}",
        backends.join(", ")
    )
}

/// Clients that ask again and again, some on connections that stay, some on a new one each time.
pub struct Crowd {
    over: Arc<AtomicBool>,
    pub asked: Arc<AtomicU64>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Crowd {
    pub fn start(address: SocketAddr) -> Crowd {
        let (over, asked) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let threads = (0..6).map(|number| {
            let (over, asked) = (Arc::clone(&over), Arc::clone(&asked));
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                while !over.load(Ordering::Relaxed) {
                    let answer = client.get("/bytes/3000");
                    assert!(answer.status == 200 && !answer.cut, "client {number}: {answer:?}");
                    asked.fetch_add(1, Ordering::Relaxed);
                    if number % 2 == 0 || answer.header("connection") == Some("close") {
                        client = Client::connect(address);
                    }
                }
            })
        });
        let threads = threads.collect();
        Crowd { over, asked, threads }
    }

    /// Until so many more were asked.
    pub fn go_on(&self, more: u64) {
        let wanted = self.asked.load(Ordering::Relaxed) + more;
        eventually("they go on", || {
            let is_over = self.threads.iter().any(std::thread::JoinHandle::is_finished);
            is_over || self.asked.load(Ordering::Relaxed) >= wanted
        });
    }

    pub fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().expect("none has failed"));
    }
}

/// Where the process says its metrics are.
pub fn metrics_address(process: &Process) -> SocketAddr {
    let said = process.said();
    let line = said.iter().find_map(|line| line.split("metrics listener ").nth(1)).unwrap();
    line.split([' ', ',', ';']).next().unwrap().parse().unwrap()
}

pub fn signal(process: u32, signal: rustix::process::Signal) {
    let process = rustix::process::Pid::from_raw(process as i32).unwrap();
    rustix::process::kill_process(process, signal).unwrap();
}
