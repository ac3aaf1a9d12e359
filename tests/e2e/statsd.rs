//! What statsd is sent adds up to what was counted, and nobody notices whether it is there.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex};

use fake_backend::Running;

use super::metrics::scrape;
use super::support::port::unused_udp;
use super::support::process::Process;
use super::support::{Client, PATIENCE, eventually, fakes};

/// A receiver of datagrams that keeps what it gets.
struct Receiver {
    socket: Arc<UdpSocket>,
    datagrams: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    fn start() -> Receiver {
        Receiver::of(UdpSocket::bind("127.0.0.1:0").unwrap())
    }

    fn of(socket: UdpSocket) -> Receiver {
        let socket = Arc::new(socket);
        let (from, datagrams) = (Arc::clone(&socket), Arc::<Mutex<Vec<String>>>::default());
        let to = Arc::clone(&datagrams);
        std::thread::spawn(move || {
            let mut room = [0; 65_536];
            while let Ok(length) = from.recv(&mut room) {
                to.lock().unwrap().push(String::from_utf8(room[..length].to_vec()).unwrap());
            }
        });
        Receiver { socket, datagrams }
    }

    fn to(&self) -> String {
        format!("udp://{}", self.socket.local_addr().unwrap())
    }

    fn lines(&self) -> Vec<String> {
        let datagrams = self.datagrams.lock().unwrap();
        datagrams.iter().flat_map(|datagram| datagram.lines()).map(str::to_owned).collect()
    }

    /// The sum of all counts of this name, whatever its tags.
    fn sum(&self, name: &str) -> u64 {
        counts(&self.lines())
            .iter()
            .filter(|(line, _)| line.starts_with(&format!("{name} ")))
            .map(|(_, count)| count)
            .sum()
    }
}

/// Counters by name and tags, added up.
fn counts(lines: &[String]) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for line in lines {
        let (name, rest) = line.split_once(':').unwrap();
        let (value, rest) = rest.split_once('|').unwrap();
        let (kind, tags) = rest.split_once("|#").unwrap_or((rest, ""));
        if kind == "c" {
            *all.entry(format!("{name} {tags}")).or_default() += value.parse::<u64>().unwrap();
        }
    }
    all
}

fn config(statsd: &str, backends: &[&Running]) -> String {
    let each: String = backends
        .iter()
        .enumerate()
        .map(|(number, backend)| {
            format!("      - {{name: b{number}, host: 127.0.0.1, port: {}}}\n", backend.port())
        })
        .collect();
    format!(
        "workers: 2\n{statsd}\ntargets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n    backends:\n{each}"
    )
}

fn sending(receiver: &Receiver, more: &str) -> String {
    format!("metrics: {{statsd: {{to: '{}', format: datadog, interval: 100ms{more}}}}}", receiver.to())
}

#[test]
fn a_request_is_one_that_statsd_hears_of() {
    let (receiver, backends) = (Receiver::start(), fakes(1));
    let process = Process::start(&config(&sending(&receiver, ""), &[&backends[0]]), 1);
    assert_eq!(Client::connect(process.address("web")).get("/").status, 200);
    eventually("it is told", || receiver.sum("evenkeel.requests") > 0);
    // The route of a target with a listener of its own has no name.
    let line = "evenkeel.requests:1|c|#listener:web,route:_,class:2xx";
    let lines = receiver.lines();
    assert!(lines.iter().any(|told| told == line), "{lines:#?}");
}

/// All lines that are times, with their names and tags.
fn timings(receiver: &Receiver) -> Vec<String> {
    receiver.lines().into_iter().filter(|line| line.contains("|ms")).collect()
}

#[test]
fn counts_add_up_to_what_was_sent_over_reloads_that_take_backends_out_and_bring_them_back() {
    let (receiver, backends) = (Receiver::start(), fakes(2));
    let (both, one) = ([&backends[0], &backends[1]], [&backends[0]]);
    let process = Process::start(&config(&sending(&receiver, ""), &both), 1);
    let mut client = Client::connect(process.address("web"));
    let mut asked = 0;
    let mut ask = |count: u64| {
        (0..count).for_each(|_| assert_eq!(client.get("/").status, 200));
        asked += count;
        asked
    };
    let all_told = |asked: u64| {
        for name in ["evenkeel.requests", "evenkeel.upstream_requests"] {
            eventually("all are told", || receiver.sum(name) == asked);
        }
    };
    all_told(ask(7));
    for round in 0..6_u64 {
        let backends: &[&Running] = if round % 2 == 0 { &one } else { &both };
        process.reload(&config(&sending(&receiver, ""), backends));
        // With and without a look between.
        let asked = ask(3 + round);
        if round % 3 == 0 {
            all_told(asked);
        }
    }
    all_told(ask(5));
    // What was told for nobody while it was off is not told afterwards.
    process.reload(&config("", &both));
    let before = receiver.sum("evenkeel.requests");
    (0..9).for_each(|_| assert_eq!(Client::connect(process.address("web")).get("/").status, 200));
    process.reload(&config(&sending(&receiver, ""), &both));
    let mut since = 0;
    eventually("the next one is told", || {
        assert_eq!(Client::connect(process.address("web")).get("/").status, 200);
        since += 1;
        receiver.sum("evenkeel.requests") > before
    });
    assert!(receiver.sum("evenkeel.requests") - before <= since);
}

#[test]
fn a_sink_that_is_gone_costs_requests_nothing_is_told_once_and_hears_the_rest_when_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dsd.sock");
    let backends = fakes(1);
    let to = format!("metrics: {{statsd: {{to: 'unix:{}', interval: 100ms}}}}", path.display());
    let process = Process::start(&config(&to, &[&backends[0]]), 1);
    let ask = || assert_eq!(Client::connect(process.address("web")).get("/").status, 200);
    (0..5).for_each(|_| ask());
    let said = || process.said().join("\n");
    eventually("it is told", || said().contains("there is no such socket"));
    eventually("it is counted", || scrape(&process)["evenkeel_statsd_dropped_total"] > 1.0);
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut told = 0;
    let mut room = [0; 65_536];
    while told < 5 {
        let length = socket.recv(&mut room).unwrap();
        assert!(length <= 8192, "{length}");
        // What labels say is a part of the name.
        let text = std::str::from_utf8(&room[..length]).unwrap();
        let counted = text.lines().filter_map(|line| line.strip_prefix("evenkeel.requests.web._.2xx:"));
        told += counted.map(|rest| rest.strip_suffix("|c").unwrap().parse::<u64>().unwrap()).sum::<u64>();
    }
    assert_eq!(told, 5, "what did not arrive is told the next time");
    let mut last = String::new();
    eventually("that is over", || {
        let _ = socket.recv(&mut room);
        last = said();
        last.contains("takes datagrams again")
    });
    assert_eq!(last.matches("statsd unix:").count(), 2, "{last}");
}

#[test]
fn who_is_not_there_by_udp_is_noticed_and_hears_of_everything_when_he_is() {
    let (_guard, address) = unused_udp();
    let backends = fakes(1);
    let to = format!("metrics: {{statsd: {{to: 'udp://{address}', format: datadog, interval: 100ms}}}}");
    let process = Process::start(&config(&to, &[&backends[0]]), 1);
    let ask = |count: u64| {
        (0..count).for_each(|_| assert_eq!(Client::connect(process.address("web")).get("/").status, 200));
    };
    ask(5);
    let said = || process.said().join("\n");
    eventually("it is told", || said().contains("does not take datagrams"));
    let dropped = || scrape(&process)["evenkeel_statsd_dropped_total"];
    // The numbers of these requests are in datagrams that were dropped, again and again.
    let before = dropped();
    ask(3);
    eventually("they are dropped", || dropped() > before + 5.0);
    let receiver = Receiver::of(UdpSocket::bind(address).unwrap());
    eventually("all of it is told", || receiver.sum("evenkeel.requests") == 8);
    eventually("it is over", || said().contains("takes datagrams again"));
    ask(2);
    eventually("it goes on", || receiver.sum("evenkeel.requests") == 10);
    assert_eq!(said().matches("statsd udp:").count(), 2, "{}", said());
    assert!(scrape(&process)["evenkeel_statsd_sent_total"] > 0.0);
}

#[test]
fn the_end_of_the_process_sends_the_last_numbers() {
    let (receiver, backends) = (Receiver::start(), fakes(1));
    let to = sending(&receiver, "").replace("100ms", "1h");
    let process = Process::start(&config(&to, &[&backends[0]]), 1);
    (0..4).for_each(|_| assert_eq!(Client::connect(process.address("web")).get("/").status, 200));
    process.terminate();
    eventually("they are there", || receiver.sum("evenkeel.requests") == 4);
}

#[test]
fn times_of_single_requests_are_sent_with_their_share_and_no_secret_is_in_any_line() {
    let (receiver, backends) = (Receiver::start(), fakes(1));
    let process = Process::start(&config(&sending(&receiver, ", timings: 100%"), &[&backends[0]]), 1);
    let lines =
        "Authorization: Bearer c4n4ry\r\nCookie: a=c4n4ry\r\nX-Api-Key: c4n4ry\r\nUser-Agent: c4n4ry\r\n";
    let request = format!("GET /c4n4ry?k=c4n4ry HTTP/1.1\r\nHost: c4n4ry.example\r\n{lines}\r\n");
    for _ in 0..3 {
        assert_eq!(Client::connect(process.address("web")).ask(&request).status, 200);
    }
    // What is refused has times as well.
    let userinfo = "GET http://u:c4n4ry@c4n4ry.example/c4n4ry HTTP/1.1\r\nHost: c4n4ry\r\n\r\n";
    assert_eq!(Client::connect(process.address("web")).ask(userinfo).status, 400);
    eventually("they are told", || {
        timings(&receiver).iter().filter(|line| line.contains("2xx")).count() == 6
    });
    for line in timings(&receiver).iter().filter(|line| line.contains("2xx")) {
        let (name, rest) = line.split_once(':').unwrap();
        let (time, tags) = rest.split_once("|ms|#").unwrap();
        assert!(["evenkeel.request_time", "evenkeel.backend_time"].contains(&name), "{line}");
        assert!(time.parse::<f64>().unwrap() > 0.0 && tags == "target:web,class:2xx", "{line}");
    }
    process.reload(&config(&sending(&receiver, ", timings: 50%"), &[&backends[0]]));
    eventually("about one in two is told", || {
        assert_eq!(Client::connect(process.address("web")).ask(&request).status, 200);
        timings(&receiver).iter().any(|line| line.contains("|ms|@0.5|#"))
    });
    assert!(receiver.lines().iter().all(|line| !line.contains("c4n4ry")));
}
