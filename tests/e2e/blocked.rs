//! Clients that are kept out at run time: over the API, on every worker, at once, and for as long as was said.

use std::net::{Ipv4Addr, SocketAddr};

use fake_backend::{Behaviour, Running, TcpMode};
use serde_json::{Value, json};

use super::door_lab;
use super::life_lab::{pause, tcp_fakes};
use super::support::process::{Process, whole};
use super::support::{Client, PATIENCE, eventually, eventually_within, fakes};

const ENTRIES: &str = "/api/v1/access/blocked/entries";
/// Enough connections that each of the workers has some.
const MANY: usize = 24;
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const ASK: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const UPGRADE: &str = "GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

fn echoes() -> Vec<Running> {
    tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(TcpMode::Echo)))
}

/// HTTP and TCP in front of these, on four workers.
fn config(http: &Running, tcp: &Running, more: &str) -> String {
    let target = |name: &str, backend: &Running| {
        format!(
            "  {name}:\n    protocol: {name}\n    listener: 127.0.0.1:0\n    health_check: off\n    \
             backends: [{{host: 127.0.0.1, port: {}}}]\n",
            backend.port()
        )
    };
    format!("workers: 4\n{more}targets:\n{}{}", target("http", http), target("tcp", tcp))
}

fn block(process: &Process, body: &Value) -> (u16, Value) {
    process.ask(&format!("POST {ENTRIES}"), body.to_string().as_bytes())
}

fn blocked(process: &Process, body: &Value) -> Value {
    let (status, answer) = block(process, body);
    assert_eq!(status, 201, "{answer}");
    answer
}

fn unblock(process: &Process, network: &str) -> (u16, Value) {
    process.ask(&format!("DELETE {ENTRIES}/{}", network.replace('/', "%2F")), b"")
}

fn networks(process: &Process) -> Vec<String> {
    let (status, answer) = process.ask(&format!("GET {ENTRIES}"), b"");
    assert_eq!(status, 200, "{answer}");
    let entries = answer["entries"].as_array().unwrap().iter();
    entries.map(|entry| entry["network"].as_str().unwrap().to_owned()).collect()
}

/// What a new connection from there gets.
fn status(address: SocketAddr, from: Ipv4Addr) -> u16 {
    Client::connect_from(from, address).get("/").status
}

fn records(process: &Process, cause: &str) -> usize {
    process.records().iter().filter(|record| record["cause"] == cause).count()
}

#[test]
fn a_name_with_a_wrong_escape_is_told() {
    let process = Process::start(&super::by_hand::of(&fakes(1), ""), 1);
    for name in ["%", "192.0.2.0%2", "%ff"] {
        let (status, answer) = process.ask(&format!("DELETE {ENTRIES}/{name}"), b"");
        assert_eq!(status, 400, "{name}: {answer}");
        assert!(answer["detail"].as_str().unwrap().starts_with("this path is not encoded"), "{answer}");
    }
}

#[test]
fn explain_says_who_is_blocked_and_until_when_and_that_a_file_does_not_know() {
    let backends = fakes(1);
    let text = format!("trusted_proxies: [10.0.0.0/8]\n{}", super::by_hand::of(&backends, ""));
    let process = Process::start(&text, 1);
    let explain = |more: &[&str]| {
        let said = process.command(&[&["explain", "GET", "http://h/"], more].concat());
        String::from_utf8(said.stdout).unwrap()
    };
    process.ask("POST /api/v1/access/blocked/entries", br#"{"network": "192.0.2.0/24", "for": 3600}"#);
    process.ask("POST /api/v1/access/blocked/entries", br#"{"network": "192.0.2.7"}"#);
    let said = explain(&["--from", "192.0.2.8"]);
    assert!(said.contains("\n  blocked  the peer 192.0.2.8 is in 192.0.2.0/24 (by hand, "), "{said}");
    let (_, over) = said.split_once("), over in ").unwrap();
    assert!(over.contains("\n  so       it is answered with 403 (blocked)\n"), "{said}");
    // The one that lasts.
    let said = explain(&["--from", "10.0.0.1", "-H", "X-Forwarded-For: 192.0.2.7"]);
    assert!(said.contains("\n  blocked  the client 192.0.2.7 is in 192.0.2.7/32 (by hand, "), "{said}");
    assert!(!said.contains("over in") && said.contains("403 (blocked)"), "{said}");
    for more in [&["--from", "192.0.3.1"][..], &["--from", "10.0.0.1"]] {
        let said = explain(more);
        assert!(!said.contains("blocked") && said.contains("it goes to `web`"), "{said}");
    }
    let file = process.folder().join("evenkeel.yaml");
    let said = explain(&["--from", "192.0.2.8", "-c", file.to_str().unwrap()]);
    assert!(said.contains("it goes to `web`"), "{said}");
    assert!(
        said.ends_with("\n  blocked  not known here: whom `evenkeel block` keeps out, a process knows\n"),
        "{said}"
    );
}

#[test]
fn of_a_connection_that_was_passed_on_the_client_is_cut_and_so_is_the_balancer_that_passed_it_on() {
    let (http, tcp) = (fakes(1), echoes());
    let senders = "health_check: off\n    proxy_protocol: {from: [127.0.0.1, 127.0.0.2]}\n";
    let text = config(&http[0], &tcp[0], "").replace("health_check: off\n", senders);
    let process = Process::start(&text, 2);
    let passed_on = |sender: Ipv4Addr, client: &str| {
        let mut connection = Client::connect_from(sender, process.address("tcp"));
        connection.send(format!("PROXY TCP4 {client} 198.51.100.7 1 443\r\nhere"));
        assert_eq!(connection.take(4), b"here");
        connection
    };
    let mut one = passed_on(Ipv4Addr::LOCALHOST, "192.0.2.1");
    let mut two = passed_on(Ipv4Addr::LOCALHOST, "192.0.2.2");
    let mut other = passed_on(OTHER, "192.0.2.3");
    assert_eq!(block(&process, &json!({"network": "192.0.2.1"})).0, 201);
    assert!(one.is_closed());
    assert_eq!(two.send("more").take(4), b"more");
    assert_eq!(block(&process, &json!({"network": "127.0.0.1"})).0, 201);
    assert!(two.is_closed());
    assert_eq!(other.send("more").take(4), b"more");
    let mut late = Client::connect_from(OTHER, process.address("tcp"));
    assert!(late.send("PROXY TCP4 192.0.2.1 198.51.100.7 1 443\r\nhere").is_closed());
}

#[test]
fn who_is_blocked_is_out_on_all_workers_with_all_that_was_under_way() {
    let (http, tcp) = (fakes(1), echoes());
    let process = Process::start(&config(&http[0], &tcp[0], ""), 2);
    let (web, raw) = (process.address("http"), process.address("tcp"));
    let mut tunnels: Vec<Client> = (0..MANY)
        .map(|_| {
            let mut client = Client::connect_from(OTHER, web);
            assert_eq!(client.send(UPGRADE).answer().status, 101);
            client
        })
        .collect();
    let mut sessions: Vec<Client> = (0..MANY).map(|_| Client::connect_from(OTHER, raw)).collect();
    for session in &mut sessions {
        session.send("ping");
        assert_eq!(session.take(4), b"ping");
    }
    let mut idle: Vec<Client> = (0..MANY).map(|_| Client::connect_from(OTHER, web)).collect();
    idle.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
    http[0].behave(Behaviour::default().latency(std::time::Duration::from_secs(600)).times(MANY as u32));
    let mut waiting: Vec<Client> = (0..MANY).map(|_| Client::connect_from(OTHER, web)).collect();
    let before = http[0].requests();
    for client in &mut waiting {
        client.send(ASK);
    }
    eventually("all are under way", || http[0].requests() == before + MANY as u64);
    let mut own = Client::connect(web);
    assert_eq!(own.send(UPGRADE).answer().status, 101);

    let answer = blocked(&process, &json!({"network": "127.0.0.2"}));
    assert_eq!((&answer["network"], &answer["cut"]), (&json!("127.0.0.2/32"), &json!(4 * MANY)), "{answer}");
    // It is out when it is answered: nothing that comes now is let in by any worker.
    for _ in 0..MANY {
        assert_eq!(status(web, OTHER), 403);
        assert!(Client::connect_from(OTHER, raw).is_closed());
    }
    for client in tunnels.iter_mut().chain(&mut sessions).chain(&mut idle).chain(&mut waiting) {
        assert!(client.is_closed());
    }
    own.send("ping");
    assert_eq!(own.take(4), b"ping", "nobody else notices");
    assert_eq!(status(web, Ipv4Addr::LOCALHOST), 200);
    // Cut: tunnels, sessions and requests. Refused: as many of each kind as came.
    eventually("each has left its record", || records(&process, "blocked") == 5 * MANY);
    let cut = format!(", {} connections cut", 4 * MANY);
    eventually("it is said", || {
        let said = process.said();
        said.iter().any(|line| line.contains("blocked 127.0.0.2/32 (by hand, uid ") && line.ends_with(&cut))
    });
    let (status_code, report) = process.ask("GET /api/v1/status", b"");
    assert_eq!((status_code, &report["process"]["blocked"]), (200, &json!(1)));
    assert!(report["causes"]["blocked"].as_u64().unwrap() >= 5 * MANY as u64, "{report}");

    assert_eq!(unblock(&process, "127.0.0.2/32").0, 200);
    assert_eq!((status(web, OTHER), networks(&process)), (200, Vec::new()));
}

#[test]
fn with_keep_the_next_request_is_refused_and_what_is_under_way_ends_by_itself() {
    let (http, tcp) = (fakes(1), echoes());
    let process = Process::start(&config(&http[0], &tcp[0], ""), 2);
    let (web, raw) = (process.address("http"), process.address("tcp"));
    let mut tunnel = Client::connect_from(OTHER, web);
    assert_eq!(tunnel.send(UPGRADE).answer().status, 101);
    let mut session = Client::connect_from(OTHER, raw);
    session.send("ping");
    assert_eq!(session.take(4), b"ping");
    let mut client = Client::connect_from(OTHER, web);
    assert_eq!(client.get("/").status, 200);
    let answer = blocked(&process, &json!({"network": "127.0.0.0/30", "keep": true, "force": true}));
    assert_eq!((&answer["keep"], &answer["cut"]), (&json!(true), &json!(0)));
    for kept in [&mut tunnel, &mut session] {
        kept.send("ping");
        assert_eq!(kept.take(4), b"ping");
    }
    assert_eq!(client.get("/").status, 403);
    assert!(client.is_closed(), "nothing more is asked on it");
    assert!(Client::connect_from(OTHER, raw).is_closed());
    // Said again without it, what was kept goes as well.
    assert_eq!(blocked(&process, &json!({"network": "127.0.0.0/30"}))["cut"], json!(2));
    assert!(tunnel.is_closed() && session.is_closed());
    assert_eq!(networks(&process), ["127.0.0.0/30"]);
}

#[test]
fn a_client_behind_a_trusted_proxy_is_out_and_the_proxy_goes_on() {
    let (http, tcp) = (fakes(1), echoes());
    let process = Process::start(&config(&http[0], &tcp[0], "trusted_proxies: [127.0.0.1]\n"), 2);
    let web = process.address("http");
    let of = |client: &str, request: &str| {
        request.replace("Host: a\r\n", &format!("Host: a\r\nX-Forwarded-For: 6.6.6.6, {client}\r\n"))
    };
    let mut tunnel = Client::connect(web);
    assert_eq!(tunnel.send(of("192.0.2.7", UPGRADE)).answer().status, 101);
    let mut other = Client::connect(web);
    assert_eq!(other.send(of("192.0.3.7", UPGRADE)).answer().status, 101);
    let mut shared = Client::connect(web);
    assert_eq!(shared.send(of("192.0.2.7", ASK)).answer().status, 200);
    let answer = blocked(&process, &json!({"network": "192.0.2.0/24"}));
    assert_eq!(answer["cut"], json!(1), "no request is under way on the other connection of the proxy");
    assert!(tunnel.is_closed());
    other.send("ping");
    assert_eq!(other.take(4), b"ping");
    // Its connection has other clients.
    for (client, status) in [("192.0.2.7", 403), ("192.0.3.7", 200), ("192.0.2.8", 403)] {
        assert_eq!(shared.send(of(client, ASK)).answer().status, status, "{client}");
    }
    // The proxy itself is asked whether that is meant.
    let (status_code, answer) = block(&process, &json!({"network": "127.0.0.0/8"}));
    assert_eq!(status_code, 409, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("of the trusted proxy 127.0.0.1/32"), "{answer}");
    assert_eq!(shared.send(of("192.0.3.7", ASK)).answer().status, 200);
    blocked(&process, &json!({"network": "127.0.0.0/8", "force": true}));
    assert!(shared.is_closed() && other.is_closed());
    assert_eq!(status(web, Ipv4Addr::LOCALHOST), 403);
}

#[test]
fn it_holds_over_reloads_and_a_kill_until_its_time_is_over() {
    let (http, tcp) = (fakes(1), echoes());
    let text = config(&http[0], &tcp[0], "");
    let process = Process::start(&text, 2);
    blocked(&process, &json!({"network": "127.0.0.2/31"}));
    blocked(&process, &json!({"network": "127.0.0.4", "for": 3600}));
    blocked(&process, &json!({"network": "127.0.0.4", "for": 15}));
    let (_, overlay) = process.ask("GET /api/v1/overlay", b"");
    assert_eq!(overlay["blocked"][1]["id"], json!(3), "{overlay}");
    assert!(
        overlay["blocked"][1]["ends_in_ms"].as_u64().unwrap() <= 15_000,
        "the last word holds: {overlay}"
    );
    let log = process.reload(&format!("{text}trusted_proxies: [10.0.0.1]\n"));
    assert!(log.contains("reloaded: "), "{log}");
    assert_eq!(status(process.address("http"), OTHER), 403);
    let process = Process::start_in(process.kill(), 2);
    let web = process.address("http");
    assert_eq!(status(web, OTHER), 403, "from the first connection on");
    let four = Ipv4Addr::new(127, 0, 0, 4);
    // Nobody asks meanwhile.
    eventually_within(PATIENCE * 2, "its time is over", || {
        process.said().iter().any(|line| line.contains("its time is over"))
    });
    assert_eq!((status(web, four), status(web, OTHER)), (200, 403));
    assert_eq!(networks(&process), ["127.0.0.2/31"]);
    // Also while it is down.
    blocked(&process, &json!({"network": "127.0.0.4", "for": 1}));
    let folder = process.kill();
    pause(1_100);
    let process = Process::start_in(folder, 2);
    assert_eq!((status(process.address("http"), four), networks(&process).len()), (200, 1));
    assert_eq!(unblock(&process, "127.0.0.2/31").0, 200);
    let process = Process::start_in(process.kill(), 2);
    assert_eq!((status(process.address("http"), OTHER), networks(&process).len()), (200, 0));
}

#[test]
fn what_can_t_be_kept_is_not_blocked() {
    let (http, tcp) = (fakes(1), echoes());
    let folder = tempfile::tempdir().unwrap();
    let text = format!("state_dir: kept\n{}", config(&http[0], &tcp[0], ""));
    std::fs::write(folder.path().join("evenkeel.yaml"), whole(&text)).unwrap();
    let process = Process::start_with_bounded_files(folder, 2);
    let web = process.address("http");
    blocked(&process, &json!({"network": "127.0.0.9"}));
    let digest = process.digest();
    let journal = std::fs::read(process.folder().join("kept/overlay.journal")).unwrap();
    process.bound_files(Some(journal.len() as u64 + 10));
    for request in ["block", "unblock"] {
        let (status_code, answer) = match request {
            "block" => block(&process, &json!({"network": "127.0.0.2"})),
            _ => unblock(&process, "127.0.0.9/32"),
        };
        assert_eq!(
            (status_code, &answer["type"]),
            (507, &json!("urn:evenkeel:problem:not-kept")),
            "{request}: {answer}"
        );
    }
    assert_eq!((status(web, OTHER), status(web, Ipv4Addr::new(127, 0, 0, 9))), (200, 403));
    assert_eq!((networks(&process), process.digest()), (vec!["127.0.0.9/32".to_owned()], digest));
    process.bound_files(None);
    blocked(&process, &json!({"network": "127.0.0.2"}));
    let process = Process::start_in(process.kill(), 2);
    assert_eq!(networks(&process), ["127.0.0.9/32", "127.0.0.2/32"]);
}

#[test]
fn a_hundred_are_out_each_by_itself() {
    let (http, tcp) = (fakes(1), echoes());
    let process = Process::start(&config(&http[0], &tcp[0], ""), 2);
    let one = |number: u8| Ipv4Addr::new(127, 0, 1, number);
    for number in 1..=100 {
        let answer = blocked(&process, &json!({"network": one(number).to_string()}));
        assert_eq!(answer["id"], json!(number));
    }
    assert_eq!(networks(&process).len(), 100);
    let process = Process::start_in(process.kill(), 2);
    let other = process.address("http");
    for number in 1..=100 {
        assert_eq!(status(other, one(number)), 403, "{number}");
    }
    assert_eq!(status(other, one(101)), 200);
    assert_eq!(unblock(&process, "127.0.1.50/32").0, 200);
    assert_eq!((status(other, one(50)), status(other, one(51))), (200, 403));
    let save = process.command(&["save"]);
    assert_eq!(String::from_utf8_lossy(&save.stdout), "nothing to save\n", "no file says anything of it");
}

#[test]
fn who_asks_is_told_what_is_wrong_and_what_he_may_not_do() {
    let backends = fakes(1);
    let process = door_lab::guarded(&backends[0]);
    let door = door_lab::door(&process);
    let ask = |line: &str, token: &str, body: &Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let heard = door_lab::ask(door, line, &door_lab::bearer(token), body.as_bytes());
        (heard.status, heard.body["detail"].as_str().unwrap_or_default().to_owned())
    };
    let post = format!("POST {ENTRIES}");
    let of = |network: &str| json!({"network": network});
    assert_eq!(
        ask(&post, door_lab::READ, &of("192.0.2.7")),
        (403, "this needs the scope `operate`, and token eyes has `read`".to_owned())
    );
    assert_eq!(ask(&format!("GET {ENTRIES}"), door_lab::READ, &Value::Null).0, 200);
    assert_eq!(ask(&format!("DELETE {ENTRIES}/192.0.2.7"), door_lab::READ, &Value::Null).0, 403);
    assert_eq!(ask(&post, "", &of("192.0.2.7")).0, 401);
    assert_eq!(ask(&post, door_lab::OPERATE, &of("192.0.2.7")).0, 201);
    assert_eq!(
        ask(&post, door_lab::OPERATE, &of("127.0.0.0/8")),
        (
            409,
            "127.0.0.1, from where this is asked, is in 127.0.0.0/8; `force` (`--force`) blocks it all the same"
                .to_owned()
        )
    );
    let force = json!({"network": "127.0.0.0/8", "force": true});
    assert_eq!(ask(&post, door_lab::OPERATE, &force).0, 201, "the admin API is no listener");
    assert_eq!(
        ask(&format!("DELETE {ENTRIES}/127.0.0.1"), door_lab::OPERATE, &Value::Null),
        (404, "127.0.0.1/32 is not blocked; it is inside of 127.0.0.0/8, which is".to_owned())
    );
    assert_eq!(ask(&format!("DELETE {ENTRIES}/127.0.0.0%2F8"), door_lab::OPERATE, &Value::Null).0, 200);
    for (body, detail) in [
        (json!({}), "/network: an address such as `192.0.2.7`, or a network such as `192.0.2.0/24`"),
        (of("192.0.2.7/24"), "/network: `192.0.2.0/24` for the network or `192.0.2.7` for the one address"),
        (json!({"network": 7}), "/network: a text"),
        (json!({"network": "192.0.2.8", "keep": 1}), "/keep: true or false"),
        (json!({"network": "192.0.2.8", "for": 0}), "/for: a whole number from 1 to 31622400"),
        (
            json!({"network": "192.0.2.8", "forced": true}),
            "/forced: there is no such field; did you mean /force?",
        ),
    ] {
        assert_eq!(ask(&post, door_lab::OPERATE, &body), (422, detail.to_owned()), "{body}");
    }
    let (status, answer) = process.ask(&format!("GET {ENTRIES}"), b"");
    assert_eq!((status, &answer["entries"][0]["author"]), (200, &json!("token hands")), "{answer}");
    assert_eq!(networks(&process), ["192.0.2.7/32"]);
}

#[test]
fn the_commands_say_what_they_have_done() {
    let backends = fakes(1);
    let process = Process::start(&super::by_hand::of(&backends, ""), 1);
    let run = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let output = process.command(&words);
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let (code, text) = run("block 192.0.2.0/24 --for 1h");
    assert!(code == Some(0) && text.starts_with("! blocked 192.0.2.0/24 (by hand, uid "), "{text}");
    assert!(text.ends_with("), over in 60m\n"), "{text}");
    let (code, text) = run("block ::ffff:192.0.2.7 --keep --json");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &answer["network"], &answer["keep"]), (Some(0), &json!("192.0.2.7/32"), &json!(true)));
    let mut client = Client::connect_from(OTHER, process.address("web"));
    assert_eq!(client.get("/").status, 200);
    let (code, text) = run("block 127.0.0.2");
    assert!(code == Some(0) && text.ends_with("; 1 connection cut\n"), "{text}");
    assert!(client.is_closed());
    let (code, text) = run("diff");
    assert_eq!((code, text.lines().count()), (Some(1), 3), "{text}");
    let (_, text) = run("status");
    assert!(text.contains("\n  3 networks are blocked: `evenkeel diff` shows them\n"), "{text}");
    let (code, text) = run("unblock 127.0.0.2");
    assert!(code == Some(0) && text.starts_with("unblocked 127.0.0.2/32 (by hand, uid "), "{text}");
    assert_eq!(
        run("unblock 192.0.2.9"),
        (Some(1), "192.0.2.9/32 is not blocked; it is inside of 192.0.2.0/24, which is\n".into())
    );
    let (code, text) = run("block 192.0.2.7/24");
    assert!(code == Some(2) && text.contains("`192.0.2.0/24` for the network"), "{text}");
    assert_eq!(run("unblock somebody").0, Some(2));
    let process =
        Process::start(&format!("trusted_proxies: [10.0.0.0/8]\n{}", super::by_hand::of(&backends, "")), 1);
    let output = process.command(&["block", "10.0.0.7"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("(`--force`)"), "{text}");
    assert!(process.command(&["block", "10.0.0.7", "--force"]).status.success());
}
