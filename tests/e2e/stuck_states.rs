//! The states of `stuck`: for each what is done until everything waits, which deadline is meant for it, and what is written
//! down when that has come.

use fake_backend::TcpMode;

use super::stuck_lab::{Lab, fill, fill_with};
use super::stuck_tls::seal;
use super::support::Client;

/// One state.
pub struct State {
    pub name: &'static str,
    /// The key of the deadline that ends it; "" for one that is built in.
    pub deadline: &'static str,
    /// What the access log says; "" when no request had begun, so that there is nothing to say.
    pub cause: &'static str,
    /// It takes a while until every buffer is full.
    pub fills: bool,
    pub open: fn(&mut Lab) -> Client,
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

/// The client has sent this much of a ClientHello and no more.
macro_rules! hello {
    ($name:literal, $count:expr) => {
        state($name, "tls", "tls_timeout", |lab| lab.hello("https", $count))
    };
}

/// In a TLS session the client has sent this much of a record that holds this, and no more.
macro_rules! sealed {
    ($name:literal, $deadline:literal, $cause:literal, $bytes:expr, $count:expr) => {
        state($name, $deadline, $cause, |lab| {
            let (mut client, mut session) = lab.secured("https");
            let record = seal(&mut session, $bytes);
            client.send(&record[..record.len().min($count)]);
            client
        })
    };
}

/// All of them.
pub const STATES: &[State] = &[
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
    filling("asks again and again and takes nothing", "idle", "client_stalled", |lab| {
        fill_with(lab.client("web"), "GET /bytes/100000 HTTP/1.1\r\nHost: a\r\n\r\n")
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
    state("a TCP connection, silent", "tunnel", "tunnel_idle", |lab| lab.tcp_in(TcpMode::Echo)),
    state("a TCP connection, silent behind a greeting", "tunnel", "tunnel_idle", |lab| {
        lab.tcp_in(TcpMode::GreetAndEcho)
    }),
    state("a TCP client that has finished", "tunnel", "tunnel_idle", |lab| {
        let client = lab.says("tcp_mute", "hello");
        client.finish_sending();
        client
    }),
    state("a TCP backend that has finished", "tunnel", "tunnel_idle", Lab::half_closed_backend),
    filling("a TCP client that takes nothing", "tunnel", "tunnel_idle", |lab| lab.client("tcp_source")),
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
        let refusing = fake_backend::Behaviour::status(403).answering_early();
        let mut client = lab.told(refusing, LENGTH);
        assert_eq!(client.answer().status, 403);
        client
    }),
    state("a TLS port, not a byte", "tls", "", |lab| lab.client("https")),
    hello!("half the header of a TLS record", 3),
    hello!("the header of a TLS record", 5),
    hello!("half a ClientHello", 60),
    hello!("a ClientHello without its last byte", usize::MAX - 1),
    hello!("a ClientHello and nothing", usize::MAX),
    state("half a ClientHello to a TCP target", "tls", "tls_timeout", |lab| lab.hello("tls_mute", 60)),
    state("a TLS session and nothing", "head", "", |lab| lab.secured("https").0),
    sealed!("half the header of a record", "head", "", GET, 3),
    sealed!("half a record that would be a head", "head", "", GET, 20),
    sealed!("half a head over TLS", "head", "head_timeout", "GET / HTTP/1.1\r\nHo", usize::MAX),
    state("half a record of a body", "idle", "body_timeout", |lab| {
        let (mut client, mut session) = lab.secured("https");
        client.send(seal(&mut session, LENGTH)).send(&seal(&mut session, "abcde")[..10]);
        client
    }),
    state("half a record in a tunnel", "tunnel", "tunnel_idle", |lab| {
        let (mut client, mut session) = lab.secured("tls_mute");
        client.send(&seal(&mut session, "abcde")[..10]);
        client
    }),
    filling("takes nothing of an answer over TLS", "idle", "client_stalled", |lab| {
        let (mut client, mut session) = lab.secured("https");
        client.send(seal(&mut session, "GET /bytes/1000000000000 HTTP/1.1\r\nHost: a\r\n\r\n"));
        client
    }),
    filling("takes nothing of TCP over TLS", "tunnel", "tunnel_idle", |lab| lab.secured("tls_source").0),
    state("a backend that says nothing to a ClientHello", "tls", "upstream_tls_timeout", |lab| {
        lab.says("to_tls", GET)
    }),
    state("the same on a TCP target", "tls", "upstream_tls_timeout", |lab| lab.client("tcp_to_tls")),
    state("half the header of a backend's record", "tls", "upstream_tls_timeout", |lab| {
        lab.server_hello(GET, b"\x16\x03\x03")
    }),
    state("half a ServerHello", "tls", "upstream_tls_timeout", |lab| {
        lab.server_hello(GET, b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03half of what is random")
    }),
    state("a session with a backend that says nothing", "first_byte", "first_byte_timeout", |lab| {
        lab.says("tls_hang", GET)
    }),
];
