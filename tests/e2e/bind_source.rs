//! Where connections to backends come from, and when one is noticed whose other side has vanished.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel::config::model::{Dialing, KeepaliveTimes};

use super::support::{Keel, config, eventually, quick_health};
use evenkeel::config::model::Protocol;

/// A backend that answers each request, keeps its connections and notes where they come from.
fn noting() -> (SocketAddr, Arc<Mutex<Vec<SocketAddr>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<SocketAddr>>>::default());
    let notes = Arc::clone(&seen);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            notes.lock().unwrap().push(stream.peer_addr().unwrap());
            std::thread::spawn(move || {
                let (mut held, mut space) = (Vec::new(), [0; 4096]);
                while let Ok(count @ 1..) = stream.read(&mut space) {
                    held.extend_from_slice(&space[..count]);
                    while let Some(end) = held.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                        held.drain(..end + 4);
                        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    (address, seen)
}

fn start(backend: SocketAddr, dialing: Dialing, is_probed: bool) -> Keel {
    let mut config = config(Protocol::Http, &[backend]);
    config.targets[0].backends[0].dialing = Arc::new(dialing);
    config.targets[0].health = is_probed.then(quick_health);
    Keel::start(&config)
}

fn ips(all: &[&str]) -> Vec<IpAddr> {
    all.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn requests_and_probes_come_from_the_addresses_that_are_named_each_in_its_turn() {
    let (backend, seen) = noting();
    let sources = ips(&["127.0.0.2", "127.0.0.3", "::1"]);
    let keel = start(backend, Dialing { sources, ..Dialing::default() }, true);
    eventually("both have had their turn, for probes and for requests", || {
        assert_eq!(keel.client().ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").status, 200);
        let from: BTreeSet<IpAddr> = seen.lock().unwrap().iter().map(SocketAddr::ip).collect();
        from.len() == 2
    });
    let from: BTreeSet<IpAddr> = seen.lock().unwrap().iter().map(SocketAddr::ip).collect();
    assert_eq!(from, ips(&["127.0.0.2", "127.0.0.3"]).into_iter().collect());
}

#[test]
fn a_backend_of_another_family_is_not_reached_from_anywhere_else() {
    let (backend, seen) = noting();
    let keel = start(backend, Dialing { sources: ips(&["::1"]), ..Dialing::default() }, false);
    let answer = keel.client().get("/");
    assert!(answer.status == 503 && answer.text().contains("no_local_port"), "{}", answer.text());
    assert!(seen.lock().unwrap().is_empty());
}

/// The timer of our connection to `backend` (the kind of it, and how long it still runs), as the kernel tells.
fn timer(backend: SocketAddr) -> Option<(u8, Duration)> {
    let text = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let far = format!("0100007F:{:04X}", backend.port());
    let rows = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    // Established, towards the backend.
    let row = rows.into_iter().find(|row| row[2] == far && row[3] == "01")?;
    let (kind, left) = row[5].split_once(':').unwrap();
    let left = u64::from_str_radix(left, 16).unwrap();
    Some((u8::from_str_radix(kind, 16).unwrap(), Duration::from_millis(left * 10)))
}

#[test]
fn the_kernel_asks_after_silence_as_the_config_says() {
    const KEEPALIVE: u8 = 2;
    let short = KeepaliveTimes { idle: Duration::from_secs(700), ..KeepaliveTimes::default() };
    for (keepalive, wanted) in
        [(Some(KeepaliveTimes::default()), Some(30..=60)), (Some(short), Some(600..=700)), (None, None)]
    {
        let (backend, _seen) = noting();
        let keel = start(backend, Dialing { keepalive, ..Dialing::default() }, false);
        assert_eq!(keel.client().get("/").status, 200);
        let seen = |(kind, left): (u8, Duration)| match &wanted {
            Some(range) => kind == KEEPALIVE && range.contains(&left.as_secs()),
            None => kind == 0,
        };
        // What was sent last may wait for its acknowledgement.
        eventually("nothing but silence is timed", || timer(backend).is_some_and(seen));
    }
}
