//! What goes on over upgrades: what is known of backends and clients, what is counted, flows of UDP.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fake_backend::{Authority, Behaviour, Fake, Running};
use serde_json::json;

use super::support::process::{Process, ask};
use super::support::tls::{TLS13, TlsSocket, client_config};
use super::support::{Client, PATIENCE, eventually, fakes};
use super::upgrade_lab::{Crowd, Heirs, config, ended, metrics_address, signal};

#[test]
fn what_is_known_goes_on() {
    let fakes = [Fake::http("broken"), Fake::http("well"), Fake::http("good"), Fake::http("bad").unhealthy()];
    let [broken, well, good, bad] = fakes.map(|fake| fake.start_in_thread().unwrap());
    let authority = Authority::new("here");
    let issued = authority.issue(["localhost"]);
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("cert.pem", &issued.cert_pem);
    write("key.pem", &issued.key_pem);
    std::fs::set_permissions(folder.path().join("key.pem"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let text = format!(
        "workers: 2\nshutdown_timeout: 20s\nrate_limits: {{few: {{rate: 1/h, burst: 4}}}}\n\
         targets:\n  \
         limited: {{protocol: https, listener: '127.0.0.1:0', tls: {{cert_file: cert.pem, cert_key: key.pem}}, \
         rate_limit: few, health_check: off, backends: [{{url: 'http://localhost:{well}'}}]}}\n  \
         broken: {{protocol: http, listener: '127.0.0.1:0', health_check: off, retries: off, outlier: off, \
         breaker: {{failures: 1, open: 1h}}, backends: [{{url: 'http://{broken}'}}]}}\n  \
         judged: {{protocol: http, listener: '127.0.0.1:0', health_check: {{path: /health, interval: 50ms, timeout: 1m}}, \
         backends: [{{url: 'http://{one}'}}, {{url: 'http://{other}'}}]}}\n",
        well = well.port(),
        broken = broken.addr(),
        one = good.addr(),
        other = bad.addr(),
    );
    write("evenkeel.yaml", &super::support::process::whole(&text));
    let process = Process::start_in(folder, 3);
    let (socket, mut heirs) = (process.socket(), Heirs::default());
    let client = Arc::new(client_config(&[authority.ca_pem()], TLS13, None));
    let limited = || {
        let socket = TlsSocket::open(process.address("limited"), &client, "localhost").unwrap();
        let is_resumed = socket.is_resumed();
        (
            Client::over(socket).ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").status,
            is_resumed,
        )
    };
    assert_eq!([limited(), limited(), limited()].map(|(status, _)| status), [200; 3]);
    let at_broken = || Client::connect(process.address("broken")).get("/").status;
    broken.behave(Behaviour::fault(fake_backend::Fault::ResetUnanswered));
    assert_eq!(at_broken(), 502);
    broken.behave(Behaviour::default());
    assert_eq!(at_broken(), 503, "its breaker is open");
    let states = || {
        let (_, target) = ask(&socket, "GET /api/v1/targets/judged", b"");
        let all = target["backends"].as_array().unwrap().clone();
        all.iter().map(|one| one["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    eventually("they are judged", || states().iter().all(|state| state != "unknown"));
    assert_eq!(states(), ["up", "down"]);
    // The next process learns nothing from probes any more, nor from itself.
    [&good, &bad].iter().for_each(|fake| fake.behave(Behaviour::hang()));
    heirs.upgrade(&socket, &json!({}));
    eventually("the old one accepts no more", || ended(&process) == 1);
    assert_eq!(limited(), (200, true), "one request is left, and the session goes on");
    assert_eq!(limited().0, 429);
    assert_eq!(at_broken(), 503);
    assert_eq!(states(), ["up", "down"]);
}

/// Counters and histograms of a scrape, by what they are called with their labels.
fn growing(metrics: SocketAddr) -> Option<std::collections::BTreeMap<String, f64>> {
    let mut scrape = TcpStream::connect(metrics).unwrap();
    scrape.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    scrape.read_to_string(&mut text).ok()?;
    // Whoever has been followed by another process does not count aloud any more.
    if text.starts_with("HTTP/1.1 503") || text.is_empty() {
        return None;
    }
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let mut is_growing = false;
    let mut all = std::collections::BTreeMap::new();
    for line in text.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(kind) => is_growing = !kind.ends_with(" gauge"),
            None if is_growing && line.starts_with(char::is_alphabetic) => {
                let (series, value) = line.rsplit_once(' ').unwrap();
                all.insert(series.to_owned(), value.parse().unwrap());
            }
            None => {}
        }
    }
    Some(all)
}

#[test]
fn what_is_counted_goes_on_and_never_falls() {
    let backends = fakes(2);
    let mut process = Process::start(&config(&backends, "metrics: {listener: '127.0.0.1:0'}"), 1);
    let (address, socket, mut heirs) = (process.address("web"), process.socket(), Heirs::default());
    let (metrics, over) = (metrics_address(&process), Arc::new(AtomicBool::default()));
    let (ends, scrapes) = (Arc::clone(&over), Arc::new(AtomicU64::default()));
    let count = Arc::clone(&scrapes);
    let scraper = std::thread::spawn(move || {
        let mut before = std::collections::BTreeMap::<String, f64>::new();
        while !ends.load(Ordering::Relaxed) {
            let Some(now) = growing(metrics) else { continue };
            for (series, value) in &before {
                let later = now.get(series);
                assert!(later.is_some_and(|later| later >= value), "{series}: {value}, then {later:?}");
            }
            before = now;
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    // A kind of end that comes once, in the first process.
    assert_eq!(Client::connect(address).get("/status/503").status, 503);
    let crowd = Crowd::start(address);
    crowd.go_on(200);
    let known = backends.iter().map(Running::requests).sum::<u64>();
    let long = std::thread::spawn(move || Client::connect(address).get("/delay/700").status);
    eventually("it is under way", || backends.iter().map(Running::requests).sum::<u64>() > known);
    for _ in 0..3 {
        heirs.upgrade(&socket, &json!({}));
        crowd.go_on(200);
        let before = scrapes.load(Ordering::Relaxed);
        eventually("it is looked at", || {
            scraper.is_finished() || scrapes.load(Ordering::Relaxed) > before + 5
        });
    }
    assert_eq!(long.join().unwrap(), 200);
    let asked = Arc::clone(&crowd.asked);
    crowd.end();
    eventually("the others have ended", || process.has_ended() && ended(&process) == 3);
    let requests = |class: &str| -> f64 {
        let all = growing(metrics).unwrap();
        let of_class = all.iter().filter(|(series, _)| {
            series.starts_with("evenkeel_requests_total{listener=\"web\",") && series.contains(class)
        });
        of_class.map(|(_, value)| value).sum()
    };
    // Those of requests that were under way when their process was followed are told at its end.
    let all = asked.load(Ordering::Relaxed) as f64 + 2.0;
    eventually("each request is counted", || requests("class=") >= all);
    assert_eq!((requests("class="), requests("class=\"5xx\"")), (all, 1.0), "and once");
    over.store(true, Ordering::Relaxed);
    scraper.join().expect("nothing has fallen");
}

/// A backend of UDP that says who it is, and from which port it was asked.
fn udp_backend(name: &'static str) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut space = [0; 100];
        // It ends with the tests.
        while let Ok((length, from)) = socket.recv_from(&mut space) {
            let asked = std::str::from_utf8(&space[..length]).unwrap();
            let _ = socket.send_to(format!("{asked} {name} {}", from.port()).as_bytes(), from);
        }
    });
    address
}

#[test]
fn flows_of_udp_stay_with_their_backends_on_the_same_sockets_and_lose_nothing() {
    let backends = ["a", "b", "c"].map(udp_backend);
    let backends: Vec<String> = backends.iter().map(|one| format!("{{url: 'udp://{one}'}}")).collect();
    let text = format!(
        "workers: 2\nshutdown_timeout: 20s\ntargets: {{dns: {{protocol: udp, listener: '127.0.0.1:0', \
         health_check: off, backends: [{}]}}}}\n",
        backends.join(", ")
    );
    let process = Process::start(&text, 1);
    let (dns, socket, mut heirs) = (process.address("dns"), process.socket(), Heirs::default());
    let (over, asked) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let clients = (0..12).map(|_| {
        let (over, asked) = (Arc::clone(&over), Arc::clone(&asked));
        std::thread::spawn(move || {
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.connect(dns).unwrap();
            client.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut places = std::collections::BTreeSet::new();
            for number in 0.. {
                let (question, mut space) = (number.to_string(), [0; 100]);
                client.send(question.as_bytes()).unwrap();
                let length = client.recv(&mut space).expect("each has its answer");
                let answer = std::str::from_utf8(&space[..length]).unwrap();
                places.insert(answer.strip_prefix(&question).expect("its own, once").to_owned());
                asked.fetch_add(1, Ordering::Relaxed);
                if over.load(Ordering::Relaxed) {
                    break;
                }
            }
            places
        })
    });
    let clients: Vec<_> = clients.collect();
    let go_on = |more: u64| {
        let wanted = asked.load(Ordering::Relaxed) + more;
        eventually("they go on", || {
            asked.load(Ordering::Relaxed) >= wanted || clients.iter().any(|one| one.is_finished())
        });
    };
    go_on(400);
    for workers in [2, 1, 3] {
        let text =
            super::support::process::whole(&text.replace("workers: 2", &format!("workers: {workers}")));
        std::fs::write(process.folder().join("evenkeel.yaml"), text).unwrap();
        heirs.upgrade(&socket, &json!({}));
        go_on(400);
    }
    over.store(true, Ordering::Relaxed);
    let mut all = std::collections::BTreeSet::new();
    for client in clients {
        let places = client.join().expect("none has lost anything");
        assert_eq!(places.len(), 1, "one backend, asked from one port: {places:?}");
        all.extend(places);
    }
    assert_eq!(all.len(), 12);
}

#[test]
fn what_is_stored_goes_on_and_what_is_purged_before_during_and_after_does_not() {
    let backends = fakes(1);
    let origin = &backends[0];
    let process = Process::start(
        &config(&backends, "").replace("health_check", "cache: {ttl: 1h}, drain_timeout: 20s, health_check"),
        1,
    );
    let (address, socket, mut heirs) = (process.address("web"), process.socket(), Heirs::default());
    let get = |path: &str| {
        let answer = Client::connect(address).get(path);
        assert_eq!((answer.status, answer.cut), (200, false), "{path}");
        (answer.body.clone(), answer.header("cache-status").unwrap_or_default().contains("; hit"))
    };
    let purge = |socket: &std::path::Path, path: &str| {
        let body = json!({"url": format!("http://test{path}")}).to_string();
        let (status, answer) = ask(socket, "POST /api/v1/cache/purge", body.as_bytes());
        assert_eq!(status, 200, "{answer}");
    };
    // More than one chunk, nothing at all, and some beside it.
    let paths = ["/bytes/150000", "/bytes/0", "/a", "/b?c=d", "/e", "/f"];
    let before: Vec<_> = paths.iter().map(|path| get(path).0).collect();
    assert!(paths.iter().all(|path| get(path).1), "all of them are stored");
    purge(&socket, "/e");
    let asked = origin.requests();
    // A request that changes something, which is under way over the upgrade.
    origin.behave(Behaviour::default().latency(std::time::Duration::from_secs(2)).sparing_health());
    let mut change = TcpStream::connect(address).unwrap();
    write!(change, "POST /f HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\nx").unwrap();
    eventually("it is under way", || origin.requests() == asked + 1);
    origin.behave(Behaviour::default());
    heirs.upgrade(&socket, &json!({}));
    eventually("the old one accepts no more", || ended(&process) == 1 || get("/a").1);
    for (path, body) in paths.iter().zip(&before).filter(|(path, _)| !["/e", "/f"].contains(path)) {
        assert_eq!(get(path), (body.clone(), true), "{path}");
    }
    assert!(!get("/e").1, "it was purged before");
    purge(&socket, "/a");
    assert!(!get("/a").1, "it was purged afterwards");
    let mut answer = [0; 12];
    change.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    eventually("what was changed by the one before is asked for anew", || !get("/f").1);
    // And once more, with what came by the first upgrade.
    heirs.upgrade(&socket, &json!({}));
    assert_eq!(get("/bytes/150000"), (before[0].clone(), true));
    // One that dies while it drains may have purged what nobody was told of.
    let asked = origin.requests();
    origin.behave(Behaviour::default().latency(std::time::Duration::from_secs(60)).sparing_health());
    let mut held = TcpStream::connect(address).unwrap();
    held.write_all(b"GET /held HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    eventually("it is under way", || origin.requests() == asked + 1);
    origin.behave(Behaviour::default());
    let drains = heirs.0.last().copied().unwrap();
    heirs.upgrade(&socket, &json!({}));
    assert!(get("/bytes/150000").1);
    signal(drains, rustix::process::Signal::KILL);
    eventually("all that came from it is asked for anew", || !get("/bytes/150000").1);
}
