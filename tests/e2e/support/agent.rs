//! Agents of backends: one socket on all addresses of this machine, and a line for each.

use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::eventually;

#[derive(Default)]
struct Said {
    lines: HashMap<IpAddr, String>,
    /// How often each was asked since its line was set.
    asked: HashMap<IpAddr, usize>,
    ends: bool,
}

/// Agents that listen on one port.
pub struct Agents {
    port: u16,
    said: Arc<Mutex<Said>>,
    thread: Option<JoinHandle<()>>,
}

impl Agents {
    /// Silent ones: they close without a word.
    pub fn start() -> Agents {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let said = Arc::<Mutex<Said>>::default();
        let shared = Arc::clone(&said);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let at = stream.local_addr().unwrap().ip();
                let line = {
                    let mut said = shared.lock().unwrap();
                    if said.ends {
                        return;
                    }
                    *said.asked.entry(at).or_default() += 1;
                    said.lines.get(&at).cloned().unwrap_or_default()
                };
                // Who asks may have left.
                let _ = stream.write_all(line.as_bytes());
            }
        });
        Agents { port, said, thread: Some(thread) }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on the agent at this address says so.
    pub fn say(&self, at: IpAddr, line: &str) {
        let mut said = self.said.lock().unwrap();
        said.lines.insert(at, line.to_owned());
        said.asked.insert(at, 0);
    }

    /// Waits until the agent at this address has been heard: what it said before the last time it was asked has arrived.
    pub fn until_heard(&self, at: IpAddr) {
        eventually("the agent is asked", || {
            self.said.lock().unwrap().asked.get(&at).is_some_and(|times| *times > 2)
        });
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        // Whatever went wrong before: the thread must not be waited for in vain.
        if let Ok(mut said) = self.said.lock() {
            said.ends = true;
        }
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
