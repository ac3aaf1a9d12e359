//! Who may come in by address, over real sockets.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;

use evenkeel::config::model::route::PathPattern;
use evenkeel::config::model::{AccessList, Bind, Config, Forwarded, LogFormat, Protocol};
use evenkeel::message::Cause;
use fake_backend::{Behaviour, TcpMode};
use ipnet::IpNet;

use super::life_lab::{LogFile, assert_own, end, tcp, tcp_fakes, until_ended};
use super::support::process::Process;
use super::support::tls::{Secure, TlsSocket};
use super::support::{self, Client, Keel, eventually, fakes};

const ONE: Ipv4Addr = Ipv4Addr::LOCALHOST;
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A list that denies `ONE`.
fn without_one(status: Option<u16>) -> AccessList {
    AccessList {
        name: Some("bad".into()),
        allow: Vec::new(),
        deny: vec![IpNet::from(IpAddr::from(ONE))],
        is_closed: false,
        status,
    }
}

fn deny_one(config: &mut Config, status: Option<u16>) {
    config.listeners[0].access = vec![without_one(status).into()];
}

#[test]
fn whom_a_plain_listener_does_not_let_in_gets_its_status_and_a_close_and_is_recorded() {
    let backends = fakes(1);
    let mut log = None;
    let keel = Keel::with(&[&backends[0]], |config| {
        deny_one(config, Some(401));
        log = Some(LogFile::of(config, LogFormat::Json));
    });
    let mut denied = Client::connect_from(ONE, keel.address());
    let answer = denied.get("/");
    assert_eq!((answer.status, answer.header("connection")), (401, Some("close")), "{answer:?}");
    assert!(answer.text().contains("cause: access_denied"), "{}", answer.text());
    assert!(denied.is_closed());
    assert_eq!(Client::connect_from(OTHER, keel.address()).get("/").status, 200);
    until_ended(&keel, Cause::AccessDenied, 1);
    assert_eq!(keel.server.readings().connections.refused, 1);
    assert_eq!(backends[0].requests(), 1);
    end(keel);
    let records = log.unwrap().records();
    let denied: Vec<_> = records.iter().filter(|record| record["cause"] == "access_denied").collect();
    assert_eq!(denied.len(), 1, "{records:?}");
    assert!(denied[0]["status"] == 401 && denied[0]["listener"] == "web", "{denied:?}");
    assert!(denied[0]["client"].as_str().unwrap().starts_with("127.0.0.1:"), "{denied:?}");
}

#[test]
fn a_crowd_that_is_not_let_in_is_told_in_passing() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| deny_one(config, Some(403)));
    let mut crowd: Vec<Client> = (0..200).map(|_| Client::connect_from(ONE, keel.address())).collect();
    for client in &mut crowd {
        assert_own(&client.get("/"), Cause::AccessDenied);
    }
    until_ended(&keel, Cause::AccessDenied, 200);
    assert_eq!(Client::connect_from(OTHER, keel.address()).get("/").status, 200);
}

#[test]
fn drop_closes_without_a_word() {
    let backends = fakes(1);
    let mut log = None;
    let keel = Keel::with(&[&backends[0]], |config| {
        deny_one(config, None);
        log = Some(LogFile::of(config, LogFormat::Json));
    });
    // With a request on its way, and without.
    assert!(Client::connect_from(ONE, keel.address()).send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").is_closed());
    assert!(Client::connect_from(ONE, keel.address()).is_closed());
    assert_eq!(Client::connect_from(OTHER, keel.address()).get("/").status, 200);
    until_ended(&keel, Cause::AccessDenied, 2);
    end(keel);
    let records = log.unwrap().records();
    assert_eq!(records.iter().filter(|record| record["cause"] == "access_denied").count(), 2, "{records:?}");
}

#[test]
fn a_secured_listener_closes_before_a_handshake() {
    let backends = fakes(1);
    let mut log = None;
    let secure = Secure::with(Protocol::Http, &[&backends[0]], "", |config| {
        deny_one(config, Some(403));
        log = Some(LogFile::of(config, LogFormat::Json));
    });
    let mut denied = Client::connect_from(ONE, secure.keel.address());
    // It need not say hello to be sent away.
    assert!(denied.is_closed());
    let socket = Client::connect_from(OTHER, secure.keel.address()).socket;
    let mut served = Client::over(TlsSocket::over(socket, &secure.client, "localhost").unwrap());
    assert_eq!(served.get("/").status, 200);
    until_ended(&secure.keel, Cause::AccessDenied, 1);
    drop(served);
    end(secure.keel);
    let records = log.unwrap().records();
    let denied: Vec<_> = records.iter().filter(|record| record["cause"] == "access_denied").collect();
    assert!(denied.len() == 1 && denied[0]["listener"] == "web", "{records:?}");
}

#[test]
fn a_tcp_listener_closes() {
    let backends = tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(TcpMode::GreetAndEcho)));
    let mut log = None;
    let keel = tcp(&[&backends[0]], |config| {
        deny_one(config, Some(403));
        // Of a connection nobody else will ever be known.
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        log = Some(LogFile::of(config, LogFormat::Json));
    });
    assert!(Client::connect_from(ONE, keel.address()).is_closed());
    assert_eq!(Client::connect_from(OTHER, keel.address()).take(17), b"Hello from fake-1");
    until_ended(&keel, Cause::AccessDenied, 1);
    end(keel);
    let records = log.unwrap().records();
    let denied: Vec<_> = records.iter().filter(|record| record["cause"] == "access_denied").collect();
    assert!(denied.len() == 1 && denied[0]["kind"] == "tcp", "{records:?}");
}

#[test]
fn a_trusted_proxy_is_asked_of_denials_alone_and_its_clients_request_by_request() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| {
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        config.listeners[0].access = vec![
            AccessList {
                name: None,
                allow: vec!["192.0.2.0/24".parse().unwrap()],
                deny: vec!["192.0.2.66/32".parse().unwrap(), "127.0.0.2/32".parse().unwrap()],
                is_closed: true,
                status: Some(404),
            }
            .into(),
        ];
    });
    let mut proxy = Client::connect_from(ONE, keel.address());
    let mut from = |client: &str| {
        let line = if client.is_empty() { String::new() } else { format!("X-Forwarded-For: {client}\r\n") };
        proxy.ask(&format!("GET / HTTP/1.1\r\nHost: a\r\n{line}\r\n")).status
    };
    // One connection, several clients; the proxy for itself is nobody who is let in.
    let clients = ["192.0.2.1", "192.0.2.66", "198.51.100.1", "192.0.2.2", "192.0.2.1, 192.0.2.66", ""];
    assert_eq!(clients.map(&mut from), [200, 404, 404, 200, 404, 404]);
    let mut denied = Client::connect_from(OTHER, keel.address());
    assert_eq!(denied.ask("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n").status, 404);
    assert!(denied.is_closed(), "whom it speaks for is no matter");
    assert_eq!(backends[0].requests(), 2);
}

/// Answers to requests of the proxy at `ONE`, which `allow` holds, with these lines.
fn behind_an_allowed_proxy(deny: &[&str], lines: &[&str], forwarded: Forwarded) -> Vec<u16> {
    let backends = fakes(1);
    let networks = |list: &[&str]| list.iter().map(|net| net.parse().unwrap()).collect::<Vec<IpNet>>();
    let keel = Keel::with(&[&backends[0]], |config| {
        config.trusted_proxies = networks(&["127.0.0.0/8", "10.0.0.0/8"]);
        config.listeners[0].forwarded = forwarded;
        let (allow, is_closed) = match deny {
            [] => (networks(&["127.0.0.0/8", "10.0.0.0/8", "192.0.2.7/32"]), true),
            _ => (Vec::new(), false),
        };
        let list = AccessList { name: None, allow, deny: networks(deny), is_closed, status: Some(404) };
        config.listeners[0].access = vec![list.into()];
    });
    let mut proxy = Client::connect_from(ONE, keel.address());
    let ask = |line: &&str| proxy.ask(&format!("GET / HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n")).status;
    lines.iter().map(ask).collect()
}

#[test]
fn whom_a_trusted_proxy_does_not_tell_has_no_address_and_no_allow_for_the_proxy_lets_it_in() {
    let hidden = [
        "X-Forwarded-For: unknown",
        "X-Forwarded-For: 192.0.2.7, _hidden",
        "X-Forwarded-For: 192.0.2.7, unknown, 10.0.0.1",
        "X-Forwarded-For: 10.0.0.1, 1.2.3",
        "X-Forwarded-For:",
        "Forwarded: for=192.0.2.7, for=unknown",
        "Forwarded: for=_hidden",
        "Forwarded: proto=https",
        "Forwarded: for=192.0.2.7;by=\"",
    ];
    let told = ["X-Forwarded-For: 192.0.2.7", "X-Forwarded-For: 192.0.2.7, 10.0.0.1", "X-A: b"];
    let ask = |deny: &[&str], lines: &[&str]| behind_an_allowed_proxy(deny, lines, Forwarded::XForwarded);
    assert_eq!(ask(&[], &hidden), [404; 9]);
    assert_eq!(ask(&[], &told), [200; 3], "what it asks for itself is its own");
    // It is in no network at all, so no `deny` finds it either.
    assert_eq!(ask(&["10.0.0.0/8", "192.0.2.0/24"], &hidden), [200; 9]);
}

#[test]
fn where_a_trusted_proxy_speaks_in_both_ways_forwarded_of_the_listener_says_which_counts() {
    let both = [
        "X-Forwarded-For: 192.0.2.7\r\nForwarded: for=6.6.6.6",
        "Forwarded: for=192.0.2.7\r\nX-Forwarded-For: 6.6.6.6",
        // What can't be read is not made good by the other.
        "X-Forwarded-For: unknown\r\nForwarded: for=192.0.2.7",
        "X-Forwarded-For: 192.0.2.7\r\nForwarded: for=_hidden",
    ];
    for (forwarded, statuses) in [
        (Forwarded::XForwarded, [200, 404, 404, 200]),
        (Forwarded::Off, [200, 404, 404, 200]),
        (Forwarded::Rfc7239, [404, 200, 200, 404]),
    ] {
        assert_eq!(behind_an_allowed_proxy(&[], &both, forwarded), statuses, "{forwarded:?}");
    }
}

#[test]
fn whoever_may_not_come_in_is_not_told_that_there_is_no_route() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| {
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        let mut list = without_one(Some(401));
        list.deny = vec!["192.0.2.66/32".parse().unwrap()];
        config.listeners[0].access = vec![list.into()];
        let mut route = (*config.listeners[0].routes[0]).clone();
        route.matches.path = PathPattern::Prefix("/there".into());
        config.listeners[0].routes = vec![route.into()];
    });
    let mut proxy = keel.client();
    let mut ask = |path: &str, client: &str| {
        let lines = format!("Host: a\r\nX-Forwarded-For: {client}");
        proxy.ask(&format!("GET {path} HTTP/1.1\r\n{lines}\r\n\r\n")).status
    };
    assert_eq!([ask("/there", "192.0.2.1"), ask("/nowhere", "192.0.2.1")], [200, 404]);
    assert_eq!([ask("/there", "192.0.2.66"), ask("/nowhere", "192.0.2.66")], [401, 401]);
}

#[test]
fn a_kept_connection_is_asked_again_with_each_request() {
    let backends = fakes(1);
    let of = |access: &[AccessList]| -> Config {
        let mut config = support::config(Protocol::Http, &[backends[0].addr()]);
        config.listeners[0].access = access.iter().cloned().map(Into::into).collect();
        config
    };
    let keel = Keel::start(&of(&[]));
    let mut client = Client::connect_from(ONE, keel.address());
    assert_eq!(client.get("/").status, 200);
    for _ in 0..2 {
        keel.reload(&of(&[without_one(Some(403))])).unwrap();
        assert_own(&client.get("/"), Cause::AccessDenied);
        assert_own(&client.get("/"), Cause::AccessDenied);
        keel.reload(&of(&[])).unwrap();
        assert_eq!(client.get("/").status, 200);
    }
    keel.reload(&of(&[without_one(None)])).unwrap();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.is_closed());
}

#[test]
fn a_client_on_a_unix_socket_is_in_no_list() {
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keel.sock");
    let keel = |list: AccessList| {
        Keel::with(&[&backends[0]], |config| {
            config.listeners[0].access = vec![list.into()];
            config.listeners[0].binds = vec![Bind::Unix(path.clone())];
        })
    };
    let status = || Client::over(UnixStream::connect(&path).unwrap()).get("/").status;
    let all: Vec<IpNet> = vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()];
    let open = keel(AccessList { deny: all.clone(), ..without_one(Some(403)) });
    assert_eq!(status(), 200);
    end(open);
    let closed = AccessList { allow: all, is_closed: true, deny: Vec::new(), ..without_one(Some(403)) };
    let _closed = keel(closed);
    assert_eq!(status(), 403);
}

#[test]
fn a_file_of_networks_that_is_saved_is_in_force_for_whoever_is_connected() {
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.txt"), "# nobody yet\n").unwrap();
    let config = format!(
        "access_lists: {{bad: {{deny_file: bad.txt, status: 401}}}}\ntargets:\n  web:\n    protocol: http\n    \
         listener: 127.0.0.1:0\n    access: bad\n    health_check: off\n    backends: [{{host: 127.0.0.1, port: {}}}]\n",
        backends[0].port()
    );
    fs::write(folder.path().join("evenkeel.yaml"), config).unwrap();
    let process = Process::start_in(folder, 1);
    let list = process.folder().join("bad.txt");
    let address: SocketAddr = process.address("web");
    let mut kept = Client::connect_from(ONE, address);
    assert_eq!(kept.get("/").status, 200);
    let save = |text: &str, count: usize| {
        let beside = list.with_extension("tmp");
        fs::write(&beside, text).unwrap();
        fs::rename(beside, &list).unwrap();
        eventually("it tells of a reload", || process.reloads().len() >= count);
    };
    save("127.0.0.1 # the one\n", 1);
    assert_eq!(kept.get("/").status, 401);
    assert_eq!(Client::connect_from(ONE, address).get("/").status, 401);
    assert_eq!(Client::connect_from(OTHER, address).get("/").status, 200);
    save("127.0.0.2\n", 2);
    assert_eq!((kept.get("/").status, Client::connect_from(ONE, address).get("/").status), (200, 200));
    // A line that is none changes nothing.
    save("127.0.0.1\n127.0.0.999\n", 3);
    let told = process.said().join("\n");
    assert!(told.contains("bad.txt:2:1: this line is `127.0.0.999`"), "{told}");
    assert_eq!(kept.get("/").status, 200);
}

#[test]
fn goloadbalances_key_is_a_list_with_its_status_on_the_listeners_of_targets() {
    let backends = fakes(1);
    let keel = Keel::start(&support::load(&format!(
        "blacklisted_ips: [127.0.0.1]\ntargets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:0\n    \
         health_check: off\n    backends: [{{host: 127.0.0.1, port: {}}}]\n",
        backends[0].port()
    )));
    assert_eq!(Client::connect_from(ONE, keel.address()).get("/").status, 401);
    assert_eq!(Client::connect_from(OTHER, keel.address()).get("/").status, 200);
    // A listener that lets in by address forwards paths as they come all the same.
    assert_eq!(Client::connect_from(OTHER, keel.address()).get("/a/%2e%2e/%zz").status, 200);
}
