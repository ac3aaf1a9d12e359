//! An origin that answers as a test says, behind a route with a cache.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use evenkeel::config::model::cache::CachePolicy;
use evenkeel::config::model::{Config, RouteConfig};

use super::support::{self, Client, Keel};

/// A request as the origin got it.
#[derive(Clone, Debug)]
pub struct Got {
    pub method: String,
    pub path: String,
    pub lines: Vec<(String, String)>,
}

impl Got {
    pub fn line(&self, name: &str) -> Option<&str> {
        let mut lines = self.lines.iter();
        lines.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// What it answers: bytes to be written, one after the other; empty ones close the connection.
type Script = dyn Fn(&Got, usize, &mut TcpStream) + Send + Sync;

/// An origin.
pub struct Origin {
    pub address: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Origin {
    /// One that writes what `script` writes; that gets the request, the how manieth it is, from 1, and the connection.
    pub fn scripted(script: impl Fn(&Got, usize, &mut TcpStream) + Send + Sync + 'static) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, got) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let (script, all): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&got));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), script, all) = (stream, Arc::clone(&script), Arc::clone(&all)) else {
                    continue;
                };
                thread::spawn(move || serve(stream, &*script, &all));
            }
        });
        Origin { address, got }
    }

    /// One that answers with these lines, each `Name: value`, and `body N` for the Nth request.
    pub fn with(lines: &'static [&'static str]) -> Origin {
        Origin::scripted(move |_, number, stream| write(stream, 200, lines, &format!("body {number}")))
    }

    pub fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.got.lock().unwrap().len()
    }
}

/// Writes an answer whose length is known.
pub fn write(stream: &mut TcpStream, status: u16, lines: &[&str], body: &str) {
    let mut text = format!("HTTP/1.1 {status} Said\r\n");
    for line in lines {
        text.push_str(line);
        text.push_str("\r\n");
    }
    if status != 304 {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    let _ = stream.write_all(format!("{text}\r\n{body}").as_bytes());
}

fn serve(stream: TcpStream, script: &Script, all: &Mutex<Vec<Got>>) {
    let (mut reader, mut stream) = (BufReader::new(stream.try_clone().unwrap()), stream);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            lines.push(line.trim_end().to_owned());
        }
        let mut start = lines[0].split(' ').map(str::to_owned);
        let split = |line: &String| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_owned(), value.trim().to_owned())
        };
        let (method, path) = (start.next().unwrap(), start.next().unwrap());
        let got = Got { method, path, lines: lines[1..].iter().map(split).collect() };
        let length = got.line("content-length").map_or(0, |length| length.parse().unwrap());
        reader.read_exact(&mut vec![0; length]).unwrap();
        let number = {
            let mut all = all.lock().unwrap();
            all.push(got.clone());
            all.len()
        };
        script(&got, number, &mut stream);
    }
}

/// A listener whose routes all go to the origin: `/` with this cache.
pub fn keel(origin: &Origin, policy: CachePolicy) -> Keel {
    keel_with(origin, policy, |_| {})
}

/// The same with a change.
pub fn keel_with(origin: &Origin, policy: CachePolicy, change: impl FnOnce(&mut Config)) -> Keel {
    let mut config = support::config(evenkeel::config::model::Protocol::Http, &[origin.address]);
    for route in &mut config.listeners[0].routes {
        *route = Arc::new(RouteConfig { cache: Some(Arc::new(policy.clone())), ..(**route).clone() });
    }
    change(&mut config);
    Keel::start(&config)
}

/// What a client gets: status, body, and the line `Cache-Status`.
pub fn get(client: &mut Client, path: &str, lines: &[&str]) -> (u16, String, String) {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let answer = client.ask(&format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n{lines}\r\n"));
    let status = answer.header("cache-status").unwrap_or_default().to_owned();
    (answer.status, answer.text(), status)
}
