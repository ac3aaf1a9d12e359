//! TLS that is passed through: who may come in, and what becomes of connections when names go elsewhere.

use std::io::Write;
use std::net::{Shutdown, SocketAddr};

use evenkeel::message::Cause;
use fake_backend::{Fake, TlsOptions};
use rustls::AlertDescription;

use super::life_lab::{connect, read_to_end, until_ended};
use super::passthrough::{AUTHORITY, Ear, answer, config_of, echo, offering, secure};
use super::support::tls::{TlsSocket, alert};
use super::support::{Client, Keel};

#[test]
fn lists_and_rates_of_the_listener_and_of_the_route_are_asked() {
    let ear = Ear::start();
    let routes = "
      - {match: {host: mail.example}, passthrough: true, target: mail, access: {deny: [127.0.0.1]}}
      - {match: {host: slow.example}, passthrough: true, target: mail, rate_limit: few}
      - {passthrough: true, match: {host: quick.example}, target: mail}
      - {match: {host: far.example, client: 10.0.0.0/8}, passthrough: true, target: mail}";
    let keys = "protocol: tcp\n    access: {deny: [127.0.0.2]}";
    let keel = Keel::start(&config_of(keys, routes, &[("mail", ear.address)]));
    let ask = |from: [u8; 4], name: &str| {
        let mut socket = Client::connect_from(from.into(), keel.address()).socket;
        socket.write_all(&hello_for(name)).unwrap();
        // Where it was closed meanwhile nothing is left to shut.
        let _ = socket.shutdown(Shutdown::Write);
        read_to_end(&mut socket).unwrap_or_else(|came| came)
    };
    assert_eq!(ask([127, 0, 0, 2], "slow.example"), b"");
    assert_eq!(ask([127, 0, 0, 1], "mail.example"), b"");
    until_ended(&keel, Cause::AccessDenied, 2);
    assert_eq!(ask([127, 0, 0, 1], "far.example"), [21, 3, 3, 0, 2, 2, 112]);
    assert_eq!(ear.take().len(), 0);
    let came: Vec<_> = (0..5).map(|_| ask([127, 0, 0, 3], "slow.example")).collect();
    assert_eq!(came, [&b"!"[..], b"!", b"", b"", b""]);
    until_ended(&keel, Cause::RateLimited, 3);
    let came: Vec<_> = (0..5).map(|_| ask([127, 0, 0, 3], "quick.example")).collect();
    assert_eq!(came, [b"!"; 5]);
}

#[test]
fn connections_outlive_a_reload_that_sends_their_name_elsewhere() {
    let options = || TlsOptions::new().authority(&AUTHORITY).names(["mail.example"]);
    let [one, other] = ["one", "other"].map(|id| echo(id).tls(options()).start_in_thread().unwrap());
    let routes = "      - {passthrough: true, target: mail}\n      - {match: {host: old.example}, passthrough: true, target: other}";
    let tcp = [("mail", one.addr()), ("other", other.addr())];
    let keel = Keel::start(&config_of("protocol: tcp", routes, &tcp));
    let mut before = TlsSocket::open(keel.address(), &offering(&[]), "mail.example").unwrap();
    assert_eq!(before.exchange(b"one", |came| came.len() == 3), b"one");
    let routes = "      - {match: {host: mail.example}, passthrough: true, target: other}\n      - {match: {host: old.example}, passthrough: true, target: mail}";
    let mut changed = config_of("protocol: tcp", routes, &tcp);
    changed.listeners[0].binds = vec![evenkeel::config::model::Bind::Tcp("127.0.0.1:0".parse().unwrap())];
    keel.reload(&changed).unwrap();
    let connections = other.stats().connections;
    let after = TlsSocket::open(keel.address(), &offering(&[]), "mail.example").unwrap();
    assert_eq!(other.stats().connections, connections + 1);
    assert_eq!(before.exchange(b"still", |came| came.len() == 5), b"still");
    drop((before, after));
    let gone = TlsSocket::open(keel.address(), &offering(&[]), "else.example").err().unwrap();
    assert_eq!(alert(&gone), Some(AlertDescription::UnrecognisedName));
}

/// An answer and whether the connection is kept, on one that stands.
fn again(socket: &mut TlsSocket, name: &str) -> (u16, String) {
    let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n");
    let came = socket.exchange(request.as_bytes(), |came| {
        let text = String::from_utf8_lossy(came);
        text.contains("\r\n\r\n") && (text.contains("Hello from") || text.contains("cause"))
    });
    let text = String::from_utf8_lossy(&came).into_owned();
    (text[9..12].parse().unwrap(), text)
}

#[test]
fn requests_of_a_name_that_is_passed_through_since_a_reload_reach_no_other_application() {
    let mail = secure("mail", &["shop.example"]);
    let web = Fake::http("web").start_in_thread().unwrap();
    let all = [("mail", mail.addr()), ("web", web.addr())];
    let before = "
      - {match: {host: shop.example}, target: web}
      - {target: web}
      - {match: {host: mail.example}, passthrough: true, target: mail}";
    let after = [
        "
      - {match: {host: shop.example}, passthrough: true, target: mail}
      - {target: web}",
        // Nothing is decrypted any more.
        "
      - {match: {host: shop.example}, passthrough: true, target: mail}",
    ];
    for after in after {
        let keel = Keel::start(&config_of("protocol: https\n    TLS", before, &all));
        let client = offering(&["http/1.1"]);
        let mut standing = TlsSocket::open(keel.address(), &client, "shop.example").unwrap();
        assert_eq!(again(&mut standing, "shop.example").0, 200);
        let keys = if after.contains("web") { "protocol: https\n    TLS" } else { "protocol: https" };
        let all = if after.contains("web") { &all[..] } else { &all[..1] };
        keel.reload(&config_of(keys, after, all)).unwrap();
        let (status, text) = again(&mut standing, "shop.example");
        assert!(status == 421 && text.contains("misdirected_request"), "{text}");
        assert_eq!(answer(&keel, &client, "shop.example"), "mail");
    }
    assert_eq!(web.stats().requests, 2, "those before the reloads");
}

/// What somebody sends first who asks for `name`.
fn hello_for(name: &str) -> Vec<u8> {
    let name = rustls::pki_types::ServerName::try_from(name.to_owned()).unwrap();
    let mut session = rustls::ClientConnection::new(offering(&[]), name).unwrap();
    let mut sent = Vec::new();
    session.write_tls(&mut sent).unwrap();
    sent
}

/// What comes back to somebody who sends this and no more.
fn tell(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut socket = connect(address);
    // It may be closed before.
    let _ = socket.write_all(bytes);
    let _ = socket.shutdown(Shutdown::Write);
    read_to_end(&mut socket).unwrap_or_else(|came| came)
}

#[test]
fn a_limit_of_a_listener_for_bytes_counts_whatever_connects_once() {
    let ear = Ear::start();
    let routes = "
      - {match: {host: mail.example}, passthrough: true, target: mail, rate_limit: few}
      - {match: {host: news.example}, passthrough: true, target: mail}";
    let keys = "protocol: tcp\n    rate_limit: some";
    let mut config = config_of(keys, routes, &[("mail", ear.address)]);
    let keel = Keel::start(&config);
    // Four may come, whatever they are.
    let alert = |code| vec![21, 3, 3, 0, 2, 2, code];
    assert_eq!(tell(keel.address(), b"nonsense"), alert(50));
    assert_eq!(tell(keel.address(), &hello_for("none.example")), alert(112));
    assert_eq!(tell(keel.address(), &hello_for("news.example")), b"!");
    assert_eq!(tell(keel.address(), &hello_for("mail.example")), b"!");
    assert_eq!(tell(keel.address(), &hello_for("news.example")), b"");
    until_ended(&keel, Cause::RateLimited, 1);
    drop(keel);
    // Where requests are counted by something that no connection has, connections count by their address.
    let routes = "
      - {passthrough: true, target: mail}";
    config = config_of("protocol: https\n    rate_limit: of_users", routes, &[("mail", ear.address)]);
    let keel = Keel::start(&config);
    let came: Vec<_> = (0..3).map(|_| tell(keel.address(), &hello_for("news.example"))).collect();
    assert_eq!(came, [&b"!"[..], b"!", b""]);
}

#[test]
fn probes_of_a_balancer_in_front_come_for_nobody() {
    let ear = Ear::start();
    let routes = "
      - {passthrough: true, target: mail, access: {allow: 192.0.2.0/24}, rate_limit: few}";
    let keys = "protocol: tcp\n    access: {allow: 192.0.2.0/24}\n    proxy_protocol: {from: 127.0.0.1}";
    let config = config_of(keys, routes, &[("mail", ear.address)]);
    let keel = Keel::start(&config);
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
    let told = |from: &str| format!("PROXY TCP4 {from} 192.0.2.9 1 443\r\n").into_bytes();
    let hello = hello_for("mail.example");
    let ask = |header: &[u8]| tell(keel.address(), &[header, &hello].concat());
    for _ in 0..5 {
        assert_eq!(ask(local), b"!");
    }
    assert_eq!(ask(&told("198.51.100.7")), b"");
    let came: Vec<_> = (0..3).map(|_| ask(&told("192.0.2.7"))).collect();
    assert_eq!(came, [&b"!"[..], b"!", b""]);
    until_ended(&keel, Cause::AccessDenied, 1);
    until_ended(&keel, Cause::RateLimited, 1);
}

/// rustls reads over a warning in front of a hello: whoever sent one was decrypted by the default certificate, whatever name came behind.
#[test]
fn a_warning_in_front_of_a_hello_gets_nobody_around_the_name() {
    let ear = Ear::start();
    let warning = [21, 3, 3, 0, 2, 1, 90];
    let routes = "
      - {match: {host: mail.example}, passthrough: true, target: mail}
      - {target: rest}";
    let all = [("mail", ear.address), ("rest", ear.address)];
    for protocol in ["tcp", "https"] {
        let keel = Keel::start(&config_of(&format!("protocol: {protocol}\n    TLS"), routes, &all));
        for name in ["mail.example", "shop.example"] {
            let came = tell(keel.address(), &[&warning[..], &hello_for(name)].concat());
            assert_eq!(came, [21, 3, 3, 0, 2, 2, 50], "{protocol} {name}");
        }
        until_ended(&keel, Cause::TlsHandshake, 2);
    }
    assert_eq!(ear.take().len(), 0);
}
