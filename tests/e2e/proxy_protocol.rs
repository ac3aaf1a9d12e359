//! The PROXY protocol with balancers in front: whom they tell of is the client everywhere.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use evenkeel::config::model::{AccessList, Config, LogFormat, Protocol, ProxySenders};
use evenkeel::message::Cause;
use fake_backend::{Behaviour, Running, TcpMode};

use super::life_lab::{LogFile, end, tcp_fakes};
use super::support::tls::{Secure, TlsSocket};
use super::support::{Client, Keel, config, eventually, load, recording};

const V1: &str = "PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\n";
/// Version 2: the balancer for itself.
const LOCAL: &str = "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn senders(from: &str, required: bool) -> Option<Arc<ProxySenders>> {
    let from = vec![from.parse().unwrap()];
    Some(Arc::new(ProxySenders { from, from_unix: false, required }))
}

fn list(allow: &[&str], deny: &[&str]) -> Arc<AccessList> {
    let networks = |all: &[&str]| all.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
    let (allow, deny) = (networks(allow), networks(deny));
    AccessList { name: None, is_closed: !allow.is_empty(), allow, deny, status: Some(403) }.into()
}

/// A listener on which 127.0.0.1 tells whose connections it passes on.
fn keel(backend: &Running, change: impl FnOnce(&mut Config)) -> Keel {
    Keel::with(&[backend], |config| {
        config.listeners[0].proxy_protocol = senders("127.0.0.1/32", true);
        change(config);
    })
}

fn ended(keel: &Keel, cause: Cause, count: u64) {
    eventually("it is written down", || keel.server.readings().ended_with(cause) == count);
}

/// Whom the backend took for the client of a request that was passed on.
fn told(backend: &Running) -> String {
    backend.take_requests().pop().expect("a request").header("x-forwarded-for").join(",")
}

/// The bytes that an escaped text stands for.
fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match (byte, byte == b'\\') {
            (_, false) => byte,
            _ => match rest.next().unwrap() {
                b'r' => b'\r',
                b'n' => b'\n',
                b'x' => {
                    let digits = [rest.next().unwrap(), rest.next().unwrap()].map(char::from);
                    u8::from_str_radix(&String::from_iter(digits), 16).unwrap()
                }
                other => other,
            },
        });
    }
    bytes
}

#[test]
fn the_client_is_whom_a_balancer_tells_of() {
    let backend = recording();
    let keel = keel(&backend, |_| ());
    let mut client = keel.client();
    // In one piece with the request, and once for all requests of the connection.
    assert_eq!(client.ask(&format!("{V1}{GET}")).status, 200);
    assert_eq!(told(&backend), "192.0.2.1");
    assert_eq!(client.get("/again").status, 200);
    assert_eq!(told(&backend), "192.0.2.1");
    let mut other = keel.client();
    other.send("PROXY TCP6 2001:db8::1 2001:db8::2 1 2\r\n");
    assert_eq!(other.get("/").status, 200);
    assert_eq!(told(&backend), "2001:db8::1");
    for nobody in ["PROXY UNKNOWN\r\n", LOCAL] {
        assert_eq!(keel.client().send(nobody).get("/").status, 200);
        assert_eq!(told(&backend), "127.0.0.1", "the sender itself");
    }
}

#[test]
fn trusted_proxies_are_asked_with_the_address_that_was_told_and_never_with_the_senders() {
    let backend = recording();
    let asked = |trusted: &str| {
        let keel = keel(&backend, |config| config.trusted_proxies = vec![trusted.parse().unwrap()]);
        let request = format!("{V1}GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n");
        assert_eq!(keel.client().ask(&request).status, 200);
        told(&backend)
    };
    assert_eq!(asked("127.0.0.0/8"), "192.0.2.1");
    assert_eq!(asked("192.0.2.0/24"), "203.0.113.9, 192.0.2.1");
}

#[test]
fn headers_are_taken_or_refused_however_they_drip() {
    let backend = recording();
    let keel = keel(&backend, |_| ());
    let text = std::fs::read_to_string("fixtures/proxy_headers.txt").unwrap();
    let (mut taken, mut refused) = (0, 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [kind, says, name, bytes] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let bytes = unescaped(bytes);
        let mut client = keel.client();
        // It may be refused before its last byte.
        for byte in &bytes {
            client.send([*byte]);
        }
        if kind == "header" {
            assert_eq!(client.get("/").status, 200, "{name}");
            let source = says.split(' ').next().unwrap();
            let ip = source.parse().map_or("127.0.0.1".to_owned(), |address: std::net::SocketAddr| {
                address.ip().to_canonical().to_string()
            });
            assert_eq!(told(&backend), ip, "{name}");
            taken += 1;
        } else {
            assert!(client.is_closed(), "{name}");
            refused += 1;
        }
    }
    assert!(taken >= 38 && refused >= 80, "{taken} {refused}");
    // Those that are a beginning only have ended with their client.
    ended(&keel, Cause::BadProxyHeader, refused);
    assert!(backend.take_requests().is_empty());
    // A client that ends in the middle.
    let mut client = keel.client();
    client.send("PROXY TCP4 192.").finish_sending();
    assert!(client.is_closed());
    ended(&keel, Cause::BadProxyHeader, refused + 1);
}

#[test]
fn who_may_not_tell_is_closed_with_a_cause_of_its_own() {
    let backend = recording();
    let keel = keel(&backend, |_| ());
    let mut stranger = Client::connect_from(OTHER, keel.address());
    assert!(stranger.send(format!("{V1}{GET}")).is_closed());
    ended(&keel, Cause::ProxySender, 1);
    assert!(backend.take_requests().is_empty());
}

#[test]
fn where_it_is_not_required_who_sends_none_is_a_client_and_what_strangers_send_is_payload() {
    let backend = recording();
    let keel = keel(&backend, |config| config.listeners[0].proxy_protocol = senders("127.0.0.1/32", false));
    assert_eq!(keel.client().get("/").status, 200);
    assert_eq!(told(&backend), "127.0.0.1");
    assert_eq!(keel.client().ask(&format!("{V1}{GET}")).status, 200);
    assert_eq!(told(&backend), "192.0.2.1");
    let mut stranger = Client::connect_from(OTHER, keel.address());
    assert_eq!(stranger.get("/").status, 200);
    assert_eq!(told(&backend), "127.0.0.2");
    assert_eq!(Client::connect_from(OTHER, keel.address()).ask(V1).status, 400);
    ended(&keel, Cause::ProxyProtocol, 1);
    // What begins like one and is none is refused of those who may tell.
    assert!(keel.client().send("PROXY TCP4 a b c d\r\n").is_closed());
    ended(&keel, Cause::BadProxyHeader, 1);
}

#[test]
fn a_header_that_stops_is_cut_and_silence_leaves_nothing() {
    let backend = recording();
    let keel = keel(&backend, |config| {
        config.listeners[0].client_timeouts.head = Duration::from_secs(2);
    });
    assert!(keel.client().send("PROXY TCP4 192.0.2.1").is_closed());
    assert!(keel.client().is_closed());
    ended(&keel, Cause::ProxyTimeout, 1);
    let all: u64 = Cause::ALL.iter().map(|cause| keel.server.readings().ended_with(*cause)).sum();
    assert_eq!(all, 1, "nothing else was recorded");
    eventually("nobody is there", || keel.server.connections() == 0);
}

#[test]
fn lists_and_limits_are_asked_of_the_client_and_not_of_the_sender() {
    let backend = recording();
    let keel = keel(&backend, |config| {
        config.listeners[0].access = vec![list(&["192.0.2.0/24"], &["192.0.2.66/32"])];
        config.listeners[0].limits.connections_per_client = Some(2);
    });
    let from = |ip: &str| {
        let mut client = keel.client();
        client.send(format!("PROXY TCP4 {ip} 198.51.100.7 1 443\r\n"));
        client
    };
    let mut clients: Vec<Client> = ["192.0.2.1", "192.0.2.1", "192.0.2.2"].map(from).into();
    clients.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
    assert_eq!(from("192.0.2.66").get("/").status, 403);
    assert_eq!(from("203.0.113.1").get("/").status, 403);
    ended(&keel, Cause::AccessDenied, 2);
    assert_eq!(from("192.0.2.1").get("/").status, 429);
    ended(&keel, Cause::TooManyFromClient, 1);
    clients.remove(0);
    eventually("there is room again", || from("192.0.2.1").get("/").status == 200);
    // A probe of the balancer's comes for nobody and is let in; what it asks for is asked by the balancer.
    let mut probe = keel.client();
    assert_eq!(probe.send(LOCAL).get("/").status, 403);
    drop((clients, probe));
    eventually("all places are free again", || keel.server.connections() == 0);
}

#[test]
fn what_a_reload_says_of_senders_holds_for_headers_that_come_behind_it() {
    let backend = recording();
    let before = {
        let mut config = config(Protocol::Http, &[backend.addr()]);
        config.listeners[0].proxy_protocol = senders("127.0.0.1/32", true);
        config
    };
    let keel = Keel::start(&before);
    let mut client = keel.client();
    client.send(&V1[..20]);
    eventually("it is there", || keel.server.connections() == 1);
    let mut after = before;
    after.listeners[0].proxy_protocol = senders("127.0.0.2/32", true);
    keel.reload(&after).unwrap();
    assert!(client.send(&V1[20..]).is_closed());
    ended(&keel, Cause::ProxySender, 1);
}

#[test]
fn behind_it_tls_begins_in_the_same_piece_or_another() {
    let backend = recording();
    let secure = Secure::with(Protocol::Http, &[&backend], "", |config| {
        config.listeners[0].proxy_protocol = senders("127.0.0.1/32", true);
    });
    let mut tcp = secure.keel.client();
    tcp.send(V1);
    let mut client = Client::over(TlsSocket::over(tcp.socket, &secure.client, "localhost").unwrap());
    assert_eq!(client.get("/").status, 200);
    assert_eq!(told(&backend), "192.0.2.1");
    // Held back until the handshake has begun: both arrive at once.
    let tcp = secure.keel.client().socket;
    let mut one = TlsSocket::behind(V1.as_bytes(), tcp, &secure.client, "localhost").unwrap();
    let answer = one.exchange(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", |_| false);
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", answer.escape_ascii());
    assert_eq!(told(&backend), "192.0.2.1");
    let plain = secure.keel.client().send(GET).rest();
    assert!(plain.is_empty(), "{}", plain.escape_ascii());
    ended(&secure.keel, Cause::BadProxyHeader, 1);
}

#[test]
fn what_a_balancer_tells_beside_addresses_is_logged_and_can_be_passed_on_and_is_no_certificate() {
    let backend = recording();
    let mut config = load(&format!(
        "listeners:
  front:
    bind: 127.0.0.1:0
    proxy_protocol: {{from: 127.0.0.1}}
    routes:
    - target: web
      headers: {{request: {{set: {{
        X-Told: '{{proxy_alpn}}|{{proxy_authority}}|{{proxy_unique_id}}|{{proxy_tls}}|{{proxy_client_cn}}|{{proxy_tlv.0xea}}',
        X-Own: '{{tls}}|{{tls.client_subject}}'}}}}}}
targets: {{web: {{health_check: off, backends: [{{host: 127.0.0.1, port: {}}}]}}}}",
        backend.port()
    ));
    let log = LogFile::of(&mut config, LogFormat::Json);
    let keel = Keel::start(&config);
    let lines = b"\x01\0\x02h2\x02\0\x04shop\x05\0\x02id\xea\0\x03vpc\x20\0\x17\x07\0\0\0\0\x21\0\x07TLSv1.3\x22\0\x05robot";
    let addresses = [192, 0, 2, 1, 198, 51, 100, 7, 0, 9, 1, 187];
    let length = (addresses.len() + lines.len()) as u16;
    let start = b"\r\n\r\n\0\r\nQUIT\n\x21\x11";
    let header = [&start[..], &length.to_be_bytes(), &addresses, lines].concat();
    assert_eq!(keel.client().send(header).get("/").status, 200);
    let seen = backend.take_requests().pop().unwrap();
    assert_eq!(seen.header("x-told"), ["h2|shop|id|TLSv1.3|robot|vpc"]);
    assert_eq!(seen.header("x-own"), ["|"]);
    assert!(seen.header("client-cert").is_empty() && seen.header("x-forwarded-client-cert").is_empty());
    assert_eq!(keel.client().send(V1).get("/").status, 200);
    end(keel);
    let records = log.records();
    // Each worker hands in its own.
    let from = |client: &str| records.iter().find(|record| record["client"] == client).expect("its record");
    let told = from("192.0.2.1:9");
    let of = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        ["proxy_alpn", "proxy_authority", "proxy_unique_id", "proxy_tls", "proxy_client_cn"].map(of),
        ["h2", "shop", "id", "TLSv1.3", "robot"]
    );
    let plain = from("192.0.2.1:56324");
    assert!(plain.get("proxy_alpn").is_none(), "where nothing is told nothing is said: {plain}");
}

#[test]
fn over_tcp_what_follows_it_is_the_clients() {
    let backends = tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(TcpMode::Echo)));
    let keel = Keel::with(&[&backends[0]], |config| {
        config.listeners[0].protocol = Protocol::Tcp;
        config.targets[0].protocol = Protocol::Tcp;
        config.listeners[0].proxy_protocol = senders("127.0.0.1/32", true);
        config.listeners[0].access = vec![list(&["192.0.2.0/24"], &["192.0.2.66/32"])];
    });
    let mut client = keel.client();
    client.send(format!("{V1}first"));
    assert_eq!(client.take(5), b"first");
    client.send("second");
    assert_eq!(client.take(6), b"second");
    let mut probe = keel.client();
    probe.send(LOCAL.to_owned() + "probe");
    assert_eq!(probe.take(5), b"probe", "a balancer's probe is let in, whoever it is");
    let mut denied = keel.client();
    denied.send(V1.replace("192.0.2.1", "192.0.2.66"));
    assert!(denied.is_closed());
    ended(&keel, Cause::AccessDenied, 1);
}
