//! The demo as a stranger runs it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use super::{PATIENCE, Started, body, demo_from, eventually, https, lively_demo_from, outcome, own_ports};

/// Where HTTP, HTTPS and TCP are, by the line that says it.
fn ways(line: &str) -> (SocketAddr, SocketAddr, SocketAddr) {
    let after = |start: &str| -> SocketAddr {
        line.split(start).nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap()
    };
    (after("http://"), after("https://"), after("TCP "))
}

/// All that the demo has said so far and that is no event.
fn welcome(demo: &Started) -> Vec<String> {
    demo.seen.iter().filter(|line| !line.contains(" INFO ")).cloned().collect()
}

/// The answer to a request, its head included.
fn ask(address: SocketAddr, path: &str, more: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{more}Connection: close\r\n\r\n");
    socket.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    text
}

/// The page, and what it takes to look behind it.
struct Page {
    address: SocketAddr,
    token: String,
}

impl Page {
    /// Its address stands first, and the token below.
    fn of(welcome: &[String]) -> Page {
        let address = welcome[0].strip_prefix("See it: http://").unwrap().strip_suffix('/').unwrap();
        let token = welcome[1].strip_prefix("Token:  ").unwrap().split(' ').next().unwrap();
        Page { address: address.parse().unwrap(), token: token.to_owned() }
    }

    fn ask(&self, path: &str) -> String {
        ask(self.address, path, &format!("Authorization: Bearer {}\r\n", self.token))
    }

    fn status(&self) -> Value {
        serde_json::from_str(body(&self.ask("/api/v1/status"))).unwrap()
    }

    /// How many requests its listeners have had.
    fn requests(&self) -> u64 {
        let status = self.status();
        let listeners = status["listeners"].as_array().unwrap();
        listeners.iter().map(|listener| listener["traffic"]["requests"].as_u64().unwrap()).sum()
    }
}

#[test]
fn the_demo_served_on_when_its_output_was_closed() {
    let mut command = demo_from(own_ports());
    let mut demo = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // As `head -1` does: it reads a line, and is gone.
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("See it: http://127.0.0.1:"));
    drop(lines);
    let mut ended = None;
    eventually("it ends", || {
        ended = demo.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.unwrap().code(), Some(0), "a closed pipe is no failure");
}

#[test]
fn the_demo_rotates_over_http_https_and_tcp() {
    // All ports are taken, so that the demo has to find others.
    let from = own_ports();
    let taken = (from..from + 16).find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok()).unwrap();
    let mut demo = Started::new(demo_from(taken.local_addr().unwrap().port()));
    let (http, https, tcp) = ways(&demo.wait_for("  HTTPS https://"));
    demo.wait_for_all(&["web/fake-1 is up", "web/fake-2 is up", "web/fake-3 is up"]);
    demo.wait_for_all(&["api/api-1 is up", "api/api-2 is up", "api/api-3 is up", "api/api-4 is up"]);
    demo.wait_for_all(&["tcp/tcp-fake-1 is up", "tcp/tcp-fake-2 is up"]);
    demo.wait_for_all(&["Ctrl-C ends it"]);
    // Events come on a way of their own, and may be read later than they were written.
    let greeting = welcome(&demo);
    assert!(demo.seen.len() < 32, "{:#?}", demo.seen);
    assert!(greeting.iter().all(|line| line.chars().count() <= 80), "{greeting:#?}");
    assert!(greeting.iter().any(|line| line.contains("make fake-1 ill")), "{greeting:#?}");
    assert!(greeting.iter().all(|line| !line.contains("nc ")), "{greeting:#?}");
    let heard = Page::of(&greeting).ask("/api/v1");
    assert!(heard.starts_with("HTTP/1.1 200 ") && heard.contains("/api/v1/config/plan"), "{heard}");
    let distinct = |path: &str, count: usize| {
        let mut bodies: Vec<String> = (0..count).map(|_| body(&ask(http, path, "")).to_owned()).collect();
        bodies.sort();
        bodies.dedup();
        bodies
    };
    assert_eq!(distinct("/", 6), ["Hello from fake-1", "Hello from fake-2", "Hello from fake-3"]);
    let of_api = ["Hello from api-1", "Hello from api-2", "Hello from api-3", "Hello from api-4"];
    assert_eq!(distinct("/api/users/1", 8), of_api);
    assert_eq!(distinct("/assets/app.css", 4).len(), 1, "from the cache");
    let head = https::get(https, https::credulous(), "/head");
    assert!(head.contains("X-Forwarded-Proto: https\r\n"), "{head}");
    let greet = || {
        let mut text = String::new();
        TcpStream::connect(tcp).unwrap().read_to_string(&mut text).unwrap();
        text
    };
    let mut greetings = [greet(), greet()];
    greetings.sort();
    assert_eq!(greetings, ["Hello from tcp-fake-1", "Hello from tcp-fake-2"]);
    let udp = greeting.iter().find_map(|line| line.strip_prefix("UDP ")).unwrap().to_owned();
    let echo = || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.send_to(b"hi", &udp).unwrap();
        let mut space = [0; 64];
        let length = socket.recv(&mut space).unwrap();
        String::from_utf8_lossy(&space[..length]).into_owned()
    };
    let mut echoes = [echo(), echo()];
    echoes.sort();
    assert_eq!(echoes, ["Hello from udp-fake-1: hi", "Hello from udp-fake-2: hi"]);
    demo.signal(Signal::TERM);
    assert_eq!(demo.exit_code(), Some(0));
}

#[test]
fn the_first_line_is_where_the_page_is_and_the_page_asks_for_the_token_below() {
    let mut demo = Started::new(demo_from(own_ports()));
    demo.wait_for("Ctrl-C ends it");
    let page = Page::of(&welcome(&demo));
    let document = ask(page.address, "/", "");
    assert!(document.starts_with("HTTP/1.1 200 ") && document.contains("<title>"), "{document}");
    assert!(ask(page.address, "/api/v1/status", "").starts_with("HTTP/1.1 401 "));
    assert_eq!(page.status()["targets"].as_array().unwrap().len(), 4);
}

#[test]
fn a_load_comes_by_itself_over_all_ways_and_ctrl_c_ends_it_at_once() {
    let mut command = lively_demo_from(own_ports());
    command.args(["--load", "200/s"]);
    let mut demo = Started::new(command);
    demo.wait_for("It sends itself 200 requests a second");
    demo.wait_for("Ctrl-C ends it");
    let page = Page::of(&welcome(&demo));
    let count = |status: &Value, kind: &str, name: &str| -> u64 {
        let all = status[kind].as_array().unwrap();
        let one = all.iter().find(|one| one["name"] == name).unwrap();
        one["traffic"]["requests"].as_u64().unwrap()
    };
    eventually("requests have come by all ways, to all targets", || {
        let status = page.status();
        let ways = ["web", "web-https", "tcp"].iter().all(|name| count(&status, "listeners", name) > 1);
        ways && ["web", "api", "tcp"].iter().all(|name| count(&status, "targets", name) > 1)
    });
    demo.signal(Signal::INT);
    demo.wait_for("stopped; everything was finished");
    assert_eq!(demo.exit_code(), Some(0));
}

#[test]
fn an_illness_is_told_seen_in_the_status_and_passes() {
    let mut command = lively_demo_from(own_ports());
    command.args(["--load", "100/s", "--illness-every", "12s"]);
    let mut demo = Started::new(command);
    demo.wait_for("Ctrl-C ends it");
    let page = Page::of(&welcome(&demo));
    let state = || {
        let status = page.status();
        let web =
            status["targets"].as_array().unwrap().iter().find(|target| target["name"] == "web").unwrap();
        let fake = web["backends"].as_array().unwrap().iter().find(|one| one["name"] == "fake-3").unwrap();
        fake["state"].clone()
    };
    let told = demo.line("Z  web/fake-3 refuses connections: see it ");
    assert!(told.contains("`evenkeel status`"), "{told}");
    // Probes find it out, or what becomes of requests: whichever is first.
    demo.wait_for_all(&["backend web/fake-3 is down", "Z  web/fake-3 listens again"]);
    eventually("it is up again", || state() == "up");
    // The next one is another's, in another way.
    demo.wait_for_all(&["Z  api/api-4 answers 500, but to health checks: ", "backend api/api-4 is down"]);
    // Somebody who is ill does not hold up the end.
    demo.signal(Signal::INT);
    demo.wait_for("stopped; everything was finished");
    assert_eq!(demo.exit_code(), Some(0));
}

#[test]
fn a_quiet_demo_sends_nothing() {
    let mut demo = Started::new(demo_from(own_ports()));
    let (http, ..) = ways(&demo.wait_for("  HTTPS https://"));
    demo.wait_for("Ctrl-C ends it");
    let page = Page::of(&welcome(&demo));
    assert!(!demo.has_said("It sends itself"));
    // What a load would have sent by then is sent by hand, so that there was time for one.
    for _ in 0..100 {
        ask(http, "/", "");
    }
    eventually("those are counted", || page.requests() >= 100);
    assert_eq!(page.requests(), 100);
}

#[test]
fn a_wrong_load_is_told_with_what_is_expected() {
    for wrong in ["5/m", "10001/s", "-1", "fast"] {
        let (code, out, said) = outcome(&["demo", &format!("--load={wrong}")]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{wrong}");
        assert!(said.contains(&format!("invalid value '{wrong}' for '--load <RATE>'")), "{said}");
        assert!(said.contains("up to 10000, such as 50/s"), "{said}");
    }
    let (code, _, said) = outcome(&["demo", "--quiet", "--load", "5/s"]);
    assert!(code == Some(2) && said.contains("--quiet") && said.contains("cannot be used with"), "{said}");
}
