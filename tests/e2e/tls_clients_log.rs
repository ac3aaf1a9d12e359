//! What the access log says of TLS.

use std::sync::Arc;

use evenkeel::config::model::{LogFormat, Protocol};
use evenkeel::message::Cause;
use serde_json::{Value, json};

use super::life_lab::{LogFile, end, tcp_fakes, until_ended};
use super::support::tls::{BOTH, Secure, TLS12, TLS13, TlsSocket, client_config};
use super::support::{Client, Keel, eventually, fakes};

const LAST: &str = "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";

#[test]
fn each_record_says_which_tls_and_whether_it_was_resumed() {
    let backends = fakes(1);
    let mut log = None;
    let secure = Secure::with(Protocol::Http, &[&backends[0]], "", |config| {
        log = Some(LogFile::of(config, LogFormat::Json));
        config.workers = 1;
    });
    let mut expected = Vec::new();
    for (versions, name) in [(TLS12, "1.2"), (TLS13, "1.3")] {
        let config = secure.versions(versions);
        for resumed in [false, true] {
            let mut client = secure.client_with(&config);
            assert_eq!(client.get("/").status, 200);
            assert_eq!(client.ask(LAST).status, 200);
            // The same for all requests of a connection.
            expected.extend([(); 2].map(|()| json!([name, resumed, true, null])));
        }
    }
    let plain = Client::connect(secure.keel.address()).ask(LAST);
    assert_eq!(plain.status, 400);
    expected.push(json!([null, null, false, "plain_http"]));
    let mut alien = client_config(&[secure.authority.ca_pem()], BOTH, None);
    alien.alpn_protocols = vec![b"h2".to_vec()];
    assert!(TlsSocket::open(secure.keel.address(), &Arc::new(alien), "localhost").is_err());
    until_ended(&secure.keel, Cause::TlsHandshake, 1);
    expected.push(json!([null, null, false, "tls_handshake"]));
    end(secure.keel);
    let told: Vec<Value> = log
        .unwrap()
        .records()
        .iter()
        .map(|record| {
            let took = record["tls_ms"].as_f64().is_some_and(|took| took > 0.0);
            json!([record["tls"], record["tls_resumed"], took, record["cause"]])
        })
        .collect();
    assert_eq!(told, expected);
}

#[test]
fn a_tcp_connection_says_it_too_and_one_in_clear_says_nothing() {
    let backends = tcp_fakes(1, |fake| fake);
    let mut log = None;
    let secure = Secure::with(Protocol::Tcp, &[&backends[0]], "", |config| {
        log = Some(LogFile::of(config, LogFormat::Text));
    });
    let mut client = secure.client();
    assert_eq!(client.rest(), b"Hello from fake-1");
    client.socket.say_end();
    until_ended(&secure.keel, Cause::Done, 1);
    end(secure.keel);
    let lines = log.unwrap().lines();
    assert!(lines.len() == 1 && lines[0].contains(" tcp - ") && lines[0].ends_with(" tls=1.3"), "{lines:?}");

    let backends = fakes(1);
    let mut log = None;
    let keel = Keel::with(&[&backends[0]], |config| log = Some(LogFile::of(config, LogFormat::Text)));
    assert_eq!(keel.client().get("/").status, 200);
    eventually("it is counted", || keel.server.readings().requests() == 1);
    end(keel);
    let lines = log.unwrap().lines();
    assert!(lines.len() == 1 && lines[0].contains(" kind=http tls=- "), "{lines:?}");
}
