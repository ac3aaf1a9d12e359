//! States in which everything waits for one side that has stopped half-way (HAProxy CVE-2024-45506 and kin spun in one).
//!
//! Each is shown to end at the deadline that is meant for it, with the cause that is meant for it: that one deadline is
//! short, every other is an hour, and what waits for another is still there. All of them at once are shown to cost nothing,
//! in wake-ups and processor time against a process on which nothing hangs; benches/bars has the same as a share of a core.

use super::stuck_lab::{DEADLINES, Lab, fill};
use super::support::{Client, eventually};

struct State {
    name: &'static str,
    /// The key of the deadline that ends it; "" for one that is built in.
    deadline: &'static str,
    /// What the access log says; "" when no request had begun, so that there is nothing to say.
    cause: &'static str,
    /// It takes a while until every buffer is full.
    fills: bool,
    open: fn(&mut Lab) -> Client,
}

const fn state(
    name: &'static str,
    deadline: &'static str,
    cause: &'static str,
    open: fn(&mut Lab) -> Client,
) -> State {
    State { name, deadline, cause, fills: false, open }
}

const fn filling(
    name: &'static str,
    deadline: &'static str,
    cause: &'static str,
    open: fn(&mut Lab) -> Client,
) -> State {
    State { name, deadline, cause, fills: true, open }
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const LENGTH: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n";
const CHUNKS: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
const UPGRADE: &str = "GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const EXPECT: &str = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";

/// The client has sent this much of chunks and no more.
macro_rules! chunks {
    ($name:literal, $bytes:literal) => {
        state($name, "idle", "body_timeout", |lab| lab.says("web", &format!("{CHUNKS}{}", $bytes)))
    };
}

/// The client has sent this much of a head and no more.
macro_rules! head {
    ($name:literal, $bytes:literal) => {
        state($name, "head", "head_timeout", |lab| lab.says("web", $bytes))
    };
}

/// The backend has sent this much of an answer and no more.
macro_rules! answer {
    ($name:literal, $deadline:literal, $cause:literal, $bytes:literal) => {
        state($name, $deadline, $cause, |lab| lab.hears(GET, $bytes))
    };
}

const STATES: &[State] = &[
    state("not a byte", "head", "", |lab| lab.client("web")),
    state("an empty line", "head", "", |lab| lab.says("web", "\r\n")),
    head!("half an empty line", "\r"),
    head!("half a method", "GE"),
    head!("half a target", "GET /a"),
    head!("half a version", "GET / HTTP/1"),
    head!("a request line without LF", "GET / HTTP/1.1\r"),
    head!("a request line", "GET / HTTP/1.1\r\n"),
    head!("half a name", "GET / HTTP/1.1\r\nHo"),
    head!("a name", "GET / HTTP/1.1\r\nHost:"),
    head!("half a value", "GET / HTTP/1.1\r\nHost: a"),
    head!("a header line without LF", "GET / HTTP/1.1\r\nHost: a\r"),
    head!("a head without its last LF", "GET / HTTP/1.1\r\nHost: a\r\n\r"),
    head!("an empty line and half a head", "\r\nGET / HTTP/1.1\r\nHo"),
    state("half a second request, pipelined", "head", "head_timeout", |lab| {
        let mut client = lab.says("web", &format!("{GET}GET /second HT"));
        assert_eq!(client.answer().status, 200);
        client
    }),
    state("nothing behind an answer", "keep_alive", "", |lab| {
        let mut client = lab.says("web", GET);
        assert_eq!(client.answer().status, 200);
        client
    }),
    state("an empty line behind an answer", "head", "", |lab| {
        let mut client = lab.says("web", GET);
        assert_eq!(client.answer().status, 200);
        client.send("\r\n");
        client
    }),
    state("no body, by length", "idle", "body_timeout", |lab| lab.says("web", LENGTH)),
    state("half a body, by length", "idle", "body_timeout", |lab| lab.says("web", &format!("{LENGTH}abcde"))),
    chunks!("no chunk", ""),
    chunks!("half a chunk size", "1"),
    chunks!("a chunk size without LF", "5\r"),
    chunks!("half a chunk extension", "5;a="),
    chunks!("a chunk size", "5\r\n"),
    chunks!("half a chunk", "5\r\nab"),
    chunks!("a chunk without its end", "5\r\nabcde"),
    chunks!("a chunk without its LF", "5\r\nabcde\r"),
    chunks!("a chunk and no other", "5\r\nabcde\r\n"),
    chunks!("half a last chunk", "5\r\nabcde\r\n0\r"),
    chunks!("a last chunk without its end", "5\r\nabcde\r\n0\r\n"),
    chunks!("half a trailer", "5\r\nabcde\r\n0\r\nA: b"),
    chunks!("a trailer without the end", "5\r\nabcde\r\n0\r\nA: b\r\n\r"),
    state("told to continue, does not", "idle", "body_timeout", |lab| {
        let mut client = lab.says("web", EXPECT);
        assert_eq!(client.answer().status, 100);
        client
    }),
    filling("takes nothing of an answer by length", "idle", "client_stalled", |lab| {
        lab.asks_for_endless("bytes", 0)
    }),
    filling("takes one byte of an answer", "idle", "client_stalled", |lab| lab.asks_for_endless("bytes", 1)),
    filling("takes nothing of chunks", "idle", "client_stalled", |lab| lab.asks_for_endless("chunked", 0)),
    filling("takes nothing until the close", "idle", "client_stalled", |lab| {
        lab.asks_for_endless("close", 0)
    }),
    filling("has finished sending and takes nothing", "idle", "client_stalled", |lab| {
        let client = lab.asks_for_endless("bytes", 1);
        client.finish_sending();
        client
    }),
    state("a backend that says nothing", "first_byte", "first_byte_timeout", |lab| lab.hears(GET, "")),
    state("a backend that does not even read", "first_byte", "first_byte_timeout", |lab| {
        lab.says("mute", GET)
    }),
    answer!("half a status line", "first_byte", "first_byte_timeout", "HTTP/1.1 2"),
    answer!("a status line without LF", "first_byte", "first_byte_timeout", "HTTP/1.1 200 OK\r"),
    answer!("half a line of an answer", "first_byte", "first_byte_timeout", "HTTP/1.1 200 OK\r\nConte"),
    answer!(
        "an answer's head without its last LF",
        "first_byte",
        "first_byte_timeout",
        "HTTP/1.1 200 OK\r\nA: b\r\n\r"
    ),
    answer!(
        "103 and nothing",
        "first_byte",
        "first_byte_timeout",
        "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"
    ),
    state("100 and nothing", "first_byte", "first_byte_timeout", |lab| {
        let mut client = lab.hears(&format!("{EXPECT}hello"), "HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(client.answer().status, 100);
        client
    }),
    state("half a 101", "first_byte", "first_byte_timeout", |lab| {
        lab.hears(UPGRADE, "HTTP/1.1 101 Switching Pro")
    }),
    answer!("no body of an answer", "idle", "answer_stalled", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
    answer!(
        "half a body of an answer",
        "idle",
        "answer_stalled",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhe"
    ),
    answer!("half a body until the close", "idle", "answer_stalled", "HTTP/1.1 200 OK\r\n\r\nhello"),
    answer!(
        "half a size in an answer",
        "idle",
        "answer_stalled",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5"
    ),
    answer!(
        "half a chunk in an answer",
        "idle",
        "answer_stalled",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe"
    ),
    answer!(
        "an answer's last chunk without its end",
        "idle",
        "answer_stalled",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"
    ),
    filling("an upload that is not read", "idle", "first_byte_timeout", |lab| {
        fill(lab.says("mute", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000000\r\n\r\n"))
    }),
    filling("one large chunk that is not read", "idle", "first_byte_timeout", |lab| {
        fill(lab.says("mute", &format!("{}{}", CHUNKS, "ffffffffff\r\n")))
    }),
    state("a tunnel, silent", "tunnel", "tunnel_idle", |lab| lab.upgraded()),
    state("a tunnel whose client has finished", "tunnel", "tunnel_idle", |lab| {
        let client = lab.upgraded_by_hand(UPGRADE);
        client.finish_sending();
        client
    }),
    filling("a tunnel whose client takes nothing", "tunnel", "tunnel_idle", |lab| fill(lab.upgraded())),
    state("a TCP connection, silent", "tunnel", "tunnel_idle", |lab| lab.tcp_in(fake_backend::TcpMode::Echo)),
    state("a TCP connection, silent behind a greeting", "tunnel", "tunnel_idle", |lab| {
        lab.tcp_in(fake_backend::TcpMode::GreetAndEcho)
    }),
    state("a TCP client that has finished", "tunnel", "tunnel_idle", |lab| {
        let client = lab.says("tcp_mute", "hello");
        client.finish_sending();
        client
    }),
    state("a TCP backend that has finished", "tunnel", "tunnel_idle", Lab::half_closed_backend),
    filling("a TCP client that takes nothing", "tunnel", "tunnel_idle", |lab| lab.tcp_in(Lab::endless())),
    filling("a TCP backend that takes nothing", "tunnel", "tunnel_idle", |lab| fill(lab.client("tcp_mute"))),
    state("a backend that does not accept", "connect", "connect_timeout", |lab| lab.says("full", GET)),
    state("a TCP backend that does not accept", "connect", "connect_timeout", |lab| lab.client("tcp_full")),
    state("has finished sending and waits", "", "client_gone", |lab| {
        let client = lab.hears(GET, "");
        client.finish_sending();
        client
    }),
    state("was refused and stays", "", "bad_head", |lab| {
        let mut client = lab.says("web", "GARBAGE\r\n\r\n");
        assert_eq!(client.answer().status, 400);
        client
    }),
    state("was answered early and sends no body", "", "-", |lab| {
        lab.http.behave(fake_backend::Behaviour::status(403).answering_early().times(1));
        let mut client = lab.says("web", LENGTH);
        assert_eq!(client.answer().status, 403);
        client
    }),
];

/// The causes in the access log of the requests on this connection.
fn causes(lab: &Lab, client: &Client) -> Vec<String> {
    let address = client.socket.local_addr().unwrap().to_string();
    let records = lab.process.records();
    let mine = records.iter().filter(|record| record["client"] == address.as_str());
    mine.map(|record| record["cause"].as_str().unwrap_or("-").to_owned()).collect()
}

/// Everything that waits for the deadline called `short` ends with its cause, and nothing else does.
fn ends(short: &str) {
    let mut lab = Lab::start(short, "1h");
    let (mine, others): (Vec<_>, Vec<_>) = STATES.iter().partition(|state| state.deadline == short);
    assert!(!mine.is_empty(), "no state waits for {short}");
    let others = others.into_iter().filter(|state| !state.fills && !state.deadline.is_empty());
    let others: Vec<_> = others.map(|state| (state, (state.open)(&mut lab))).collect();
    let mine: Vec<_> = mine.into_iter().map(|state| (state, (state.open)(&mut lab))).collect();
    for (state, mut client) in mine {
        if state.cause.is_empty() {
            assert!(client.is_closed() && !client.was_reset(), "{}", state.name);
            assert!(causes(&lab, &client).iter().all(|cause| cause == "-"), "{}", state.name);
        } else {
            eventually(state.name, || causes(&lab, &client).last().is_some_and(|cause| cause == state.cause));
        }
    }
    for (state, client) in &others {
        let waits = causes(&lab, client).iter().all(|cause| cause == "-");
        assert!(waits, "{short} has ended `{}`, which waits for {}", state.name, state.deadline);
    }
    assert_eq!(lab.good(), 200);
}

#[test]
fn what_the_head_deadline_ends() {
    ends("head");
}

#[test]
fn what_the_keep_alive_deadline_ends() {
    ends("keep_alive");
}

#[test]
fn what_the_first_byte_deadline_ends() {
    ends("first_byte");
}

#[test]
fn what_the_idle_deadline_ends() {
    ends("idle");
}

#[test]
fn what_the_tunnel_deadline_ends() {
    ends("tunnel");
}

#[test]
fn what_the_connect_deadline_ends() {
    ends("connect");
}

#[test]
fn what_ends_whatever_the_config_says() {
    ends("");
}

#[test]
fn what_the_timeout_of_health_checks_ends() {
    let lab = Lab::start("", "150ms");
    for target in ["probed_mute", "probed_full", "probed_connect"] {
        eventually(target, || {
            let said = lab.process.said();
            let mut lines = said.iter().filter(|line| line.contains(&format!("backend {target}/")));
            lines.any(|line| line.contains("is down (was unknown): timeout after 150ms"))
        });
    }
    assert_eq!(lab.good(), 200);
}

#[test]
fn all_of_them_at_once_cost_nothing() {
    let idle = Lab::start("", "1h");
    let mut lab = Lab::start("", "1h");
    let states: Vec<_> = STATES.iter().filter(|state| DEADLINES.contains(&state.deadline)).collect();
    assert!(states.len() >= 30, "saw {}", states.len());
    let held: Vec<_> = states.into_iter().map(|state| (state, (state.open)(&mut lab))).collect();
    // The other process has the same threads, housekeeping and hanging probes. Its wake-ups are the clock: what a second is
    // does not matter, only that the stuck ones add nothing to it, three stretches in a row.
    let mut quiet = 0;
    eventually("all are stuck and nothing moves", || {
        let (before, idle_before) = (lab.process.cost(), idle.process.cost());
        let mut idle_after = idle_before;
        eventually("a stretch of time", || {
            idle_after = idle.process.cost();
            idle_after.wake_ups >= idle_before.wake_ups + 4
        });
        let after = lab.process.cost();
        let wake_ups = after.wake_ups - before.wake_ups;
        let cpu = after.cpu_nanoseconds - before.cpu_nanoseconds;
        let calm = wake_ups <= 2 * (idle_after.wake_ups - idle_before.wake_ups) && cpu < 10_000_000;
        quiet = if calm { quiet + 1 } else { 0 };
        quiet == 3
    });
    for (state, client) in &held {
        assert!(causes(&lab, client).iter().all(|cause| cause == "-"), "`{}` has ended", state.name);
    }
    assert_eq!(lab.good(), 200);
}
