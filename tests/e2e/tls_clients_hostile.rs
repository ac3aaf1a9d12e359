//! Clients that do not shake hands as they should, or not at all, and those that stop in the middle. Each of them
//! ends at its deadline, is told why if it listens, and nobody else is kept waiting.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use evenkeel::config::model::{Config, Protocol};
use evenkeel::message::Cause;
use fake_backend::{Running, pattern};
use rustls::pki_types::ServerName;
use rustls::{CipherSuite, ClientConnection, ConnectionTrafficSecrets};

use super::life_lab::{connect, read_to_end, tcp_fakes, until_ended};
use super::support::tls::{BOTH, Secure, TLS12, TLS13, TlsSocket, client_config_of};
use super::support::{Client, eventually, fakes, recording};

/// Long enough for whoever is honest in here, and short for the others.
const SOON: Duration = Duration::from_secs(2);

fn hurried(backends: &[&Running]) -> Secure {
    Secure::with(Protocol::Http, backends, "", |config| config.listeners[0].client_timeouts.tls = SOON)
}

/// What a client says first: one record.
fn hello(secure: &Secure) -> (ClientConnection, Vec<u8>) {
    let name = ServerName::try_from("localhost").unwrap();
    let mut session = ClientConnection::new(Arc::clone(&secure.client), name).unwrap();
    let mut bytes = Vec::new();
    session.write_tls(&mut bytes).unwrap();
    assert_eq!(usize::from(bytes[3]) << 8 | usize::from(bytes[4]), bytes.len() - 5);
    (session, bytes)
}

fn good(secure: &Secure) {
    assert_eq!(secure.client().get("/").text(), "Hello from fake-1");
}

/// The description of a fatal alert in clear (RFC 8446 §6).
fn fatal(bytes: &[u8]) -> Option<u8> {
    match bytes {
        [21, 3, _, 0, 2, 2, description] => Some(*description),
        _ => None,
    }
}

#[test]
fn silence_is_closed_and_leaves_no_record() {
    let backends = fakes(1);
    let secure = hurried(&[&backends[0]]);
    let mut silent = Client::connect(secure.keel.address());
    assert!(silent.is_closed());
    // Nor does one that leaves without a word.
    drop(Client::connect(secure.keel.address()));
    eventually("both are gone", || {
        let connections = secure.keel.server.readings().connections;
        connections.accepted == 2 && connections.open == 0
    });
    assert_eq!(secure.keel.server.readings().requests(), 0);
}

#[test]
fn half_a_hello_and_half_a_handshake_end_at_the_deadline() {
    let backends = fakes(1);
    let secure = hurried(&[&backends[0]]);
    let (_, bytes) = hello(&secure);
    // Before, inside and behind the header of the record, and a whole one without what must follow it.
    let stuck: Vec<_> = [1, 3, 5, 100, bytes.len()]
        .into_iter()
        .map(|sent| {
            let mut client = Client::connect(secure.keel.address());
            client.send(&bytes[..sent]);
            (sent, client)
        })
        .collect();
    for (sent, mut client) in stuck {
        assert_eq!(client.rest().is_empty(), sent < bytes.len(), "{sent}");
    }
    until_ended(&secure.keel, Cause::TlsTimeout, 5);
    eventually("all are gone", || secure.keel.server.connections() == 0);
    good(&secure);
}

#[test]
fn a_hello_that_comes_byte_by_byte_and_in_a_thousand_records_is_understood() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    for in_records in [false, true] {
        let (session, bytes) = hello(&secure);
        let mut tcp = connect(secure.keel.address());
        for &byte in &bytes[if in_records { 5 } else { 0 }..] {
            let record = [22, 3, 1, 0, 1, byte];
            tcp.write_all(if in_records { &record } else { &record[5..] }).unwrap();
        }
        let mut socket = TlsSocket { tcp, session };
        while socket.session.is_handshaking() {
            socket.session.complete_io(&mut socket.tcp).unwrap();
        }
        assert_eq!(Client::over(socket).get("/").status, 200, "{in_records}");
    }
}

#[test]
fn a_hello_that_drips_is_cut_at_the_deadline_however_many_bytes_have_come() {
    let backends = fakes(1);
    let secure = hurried(&[&backends[0]]);
    let (_, bytes) = hello(&secure);
    let mut client = Client::connect(secure.keel.address());
    // Always the last one: the deadline is for the whole, not for each of them.
    let mut sent = 0;
    eventually("it is cut", || {
        if sent + 1 < bytes.len() {
            client.send(&bytes[sent..=sent]);
            sent += 1;
        }
        secure.keel.server.readings().ended_with(Cause::TlsTimeout) == 1
    });
}

#[test]
fn garbage_gets_an_alert_that_arrives() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    let oversized = [&[22, 3, 1, 0x48, 0x01][..], &[0; 0x4801]].concat();
    let mut lying = hello(&secure).1;
    // The message claims to be longer than its record; what follows is no continuation.
    lying[7] = 0xff;
    lying.extend_from_slice(&[23, 3, 3, 0, 1, 0]);
    let cases: [&[u8]; 9] = [
        b"\x16\x03\x01garbage garbage garbage garbage",
        // SSL 2.
        &[0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10, 1, 0, 0x80, 2, 0, 0x80, 3, 0, 0x80, 4, 0, 0x80],
        // Application data before there is a session; a change of ciphers; an empty record.
        &[23, 3, 3, 0, 5, 1, 2, 3, 4, 5],
        &[22, 3, 1, 0, 0],
        &[0; 100],
        &[0xff; 5000],
        &oversized,
        // A message that is longer than any, and one that is interrupted: for these rustls makes no alert.
        &[22, 3, 1, 0, 5, 1, 2, 3, 4, 5],
        &lying,
    ];
    for (nth, bytes) in (1..).zip(cases) {
        let mut client = Client::connect(secure.keel.address());
        client.send(bytes);
        let came = client.rest();
        assert!(fatal(&came).is_some(), "case {nth}: {came:?}");
        assert!(!client.was_reset(), "case {nth}: the alert would be lost on a slower way");
        until_ended(&secure.keel, Cause::TlsHandshake, nth);
    }
    eventually("all are gone", || secure.keel.server.connections() == 0);
    assert_eq!(backends[0].connections(), 0);
    good(&secure);
}

/// RFC 5246 §7.2.2: whoever detects a fatal error sends the alert. Under TLS 1.2 all is in clear up to the change of ciphers.
#[test]
fn garbage_behind_a_hello_of_tls_1_2_gets_an_alert_in_clear() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    // A message that is longer than any, one that is interrupted, an empty record.
    let cases: [&[u8]; 3] = [
        &[22, 3, 3, 0, 5, 1, 2, 3, 4, 5],
        &[22, 3, 3, 0, 5, 16, 0, 0, 9, 1, 23, 3, 3, 0, 1, 0],
        &[22, 3, 3, 0, 0],
    ];
    for (nth, bytes) in (1..).zip(cases) {
        let name = ServerName::try_from("localhost").unwrap();
        let mut session = ClientConnection::new(secure.versions(TLS12), name).unwrap();
        let mut tcp = connect(secure.keel.address());
        session.write_tls(&mut tcp).unwrap();
        // The server's flight ends with ServerHelloDone, which has no content.
        let mut flight = Vec::new();
        while !flight.ends_with(&[14, 0, 0, 0]) {
            let mut byte = [0];
            tcp.read_exact(&mut byte).unwrap();
            flight.push(byte[0]);
        }
        tcp.write_all(bytes).unwrap();
        let came = read_to_end(&mut tcp).expect("no reset: it would take the alert away");
        assert!(fatal(&came).is_some(), "case {nth}: {came:?}");
        until_ended(&secure.keel, Cause::TlsHandshake, nth);
    }
    good(&secure);
}

#[test]
fn a_flood_of_alerts_or_of_cipher_changes_ends_the_handshake() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    for (nth, record) in (1..).zip([&[21u8, 3, 1, 0, 2, 1, 90][..], &[20, 3, 3, 0, 1, 1]]) {
        let mut client = Client::connect(secure.keel.address());
        client.send(record.repeat(10_000));
        client.rest();
        until_ended(&secure.keel, Cause::TlsHandshake, nth);
    }
    good(&secure);
}

#[test]
fn plain_http_gets_a_readable_answer() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    let large =
        format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 200000\r\n\r\n{}", "x".repeat(200_000));
    for (nth, request) in (1..).zip(["GET / HTTP/1.1\r\nHost: test\r\n\r\n", "G", large.as_str()]) {
        let mut client = Client::connect(secure.keel.address());
        let answer = client.send(request).answer();
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.text().contains("cause: plain_http\n") && answer.text().contains("https://"));
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(client.is_closed() && !client.was_reset());
        until_ended(&secure.keel, Cause::PlainHttp, nth);
    }
    let mut client = Client::connect(secure.keel.address());
    for byte in "GET /a/path HTTP/1.1\r\nHost: test\r\nUser-Agent: slow\r\n\r\n".bytes() {
        client.send([byte]);
    }
    assert_eq!(client.answer().status, 400);
    assert!(client.is_closed() && !client.was_reset());
    assert_eq!(backends[0].connections(), 0, "nothing of it went on");
    good(&secure);
}

#[test]
fn on_a_tcp_target_plain_http_is_garbage_like_any_other() {
    let backends = tcp_fakes(1, |fake| fake);
    let secure = Secure::with(Protocol::Tcp, &[&backends[0]], "", |_| ());
    let mut client = Client::connect(secure.keel.address());
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let came = client.rest();
    assert!(fatal(&came).is_some(), "{came:?}");
    until_ended(&secure.keel, Cause::TlsHandshake, 1);
    assert_eq!(backends[0].connections(), 0);
}

#[test]
fn a_client_that_leaves_in_the_handshake_is_gone() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    let (_, bytes) = hello(&secure);
    for (nth, sent) in (1..).zip([9, bytes.len()]) {
        let mut client = Client::connect(secure.keel.address());
        client.send(&bytes[..sent]).finish_sending();
        client.rest();
        until_ended(&secure.keel, Cause::ClientGone, nth);
    }
}

#[test]
fn without_room_a_client_is_closed_before_it_costs_a_handshake() {
    let backends = fakes(1);
    let secure = Secure::with(Protocol::Http, &[&backends[0]], "", |config| config.max_connections = Some(1));
    let mut first = secure.client();
    assert_eq!(first.get("/").status, 200);
    assert!(TlsSocket::open(secure.keel.address(), &secure.client, "localhost").is_err());
    assert_eq!(secure.keel.server.readings().connections.refused, 1);
    assert_eq!(first.get("/").status, 200, "the first one goes on");
    drop(first);
    eventually("its place is free", || secure.keel.server.connections() == 0);
    good(&secure);
}

/// A server whose clients may be silent for a moment only.
fn impatient(backends: &[&Running], change: impl FnOnce(&mut Config)) -> Secure {
    Secure::with(Protocol::Http, backends, "", |config| {
        let timeouts = &mut config.listeners[0].client_timeouts;
        (timeouts.head, timeouts.keep_alive, timeouts.idle) = (SOON, SOON, SOON);
        change(config);
    })
}

/// The beginning of a record that is never finished.
const HALF_RECORD: &[u8] = &[23, 3, 3, 0, 100, 1, 2, 3];

#[test]
fn half_a_record_and_then_silence_ends_at_the_deadline_of_what_it_is_a_part_of() {
    let backends = fakes(1);
    let secure = impatient(&[&backends[0]], |_| ());
    // Instead of a request.
    let mut client = secure.client();
    client.socket.tcp.write_all(HALF_RECORD).unwrap();
    assert!(client.is_closed());
    // Behind one.
    let mut client = secure.client();
    assert_eq!(client.get("/").status, 200);
    client.socket.tcp.write_all(HALF_RECORD).unwrap();
    assert!(client.is_closed());
    // In the middle of a head, and of a body.
    let mut client = secure.client();
    client.send("GET / HT").socket.tcp.write_all(HALF_RECORD).unwrap();
    let answer = client.answer();
    assert!(answer.status == 408 && answer.text().contains("head_timeout"), "{answer:?}");
    let mut client = secure.client();
    client.send("POST /count HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n12");
    client.socket.tcp.write_all(HALF_RECORD).unwrap();
    let answer = client.answer();
    assert!(answer.status == 408 && answer.text().contains("body_timeout"), "{answer:?}");
    eventually("all are gone", || secure.keel.server.connections() == 0);
    good(&secure);
}

#[test]
fn a_client_that_never_reads_is_cut_when_it_has_been_idle() {
    let backends = fakes(1);
    let secure = impatient(&[&backends[0]], |_| ());
    let mut client = secure.client();
    client.send(format!("GET /bytes/{} HTTP/1.1\r\nHost: test\r\n\r\n", 1u64 << 40));
    until_ended(&secure.keel, Cause::ClientStalled, 1);
    eventually("it is gone", || secure.keel.server.connections() == 0);
    client.rest();
    assert!(client.was_reset());
    good(&secure);
}

#[test]
fn garbage_behind_the_handshake_is_a_broken_connection() {
    let backend = recording();
    let secure = Secure::http(&[&backend]);
    let record = [&[23u8, 3, 3, 0, 64][..], &[7; 64]].concat();
    let mut client = secure.client();
    assert_eq!(client.get("/").status, 200);
    client.socket.tcp.write_all(&record).unwrap();
    client.rest();
    assert!(client.was_reset(), "bad_record_mac");
    // In the middle of a body: the backend sees an abort and no end.
    let mut client = secure.client();
    client.send("POST /count HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n12");
    eventually("the backend has the beginning", || {
        backend.last_requests().pop().is_some_and(|seen| seen.body == b"12")
    });
    client.socket.tcp.write_all(&record).unwrap();
    until_ended(&secure.keel, Cause::ClientGone, 1);
    eventually("and an abort", || backend.stats().aborted == 1);
    good(&secure);
}

#[test]
fn many_tiny_records_are_as_good_as_one() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    let mut client = secure.client();
    client.send(format!("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", 5_000));
    for byte in pattern(5_000) {
        client.send([byte]);
    }
    assert!(client.answer().body == pattern(5_000));
}

/// One record under the keys of a session of TLS 1.2 with AES-128-GCM (RFC 5246 §6.2.3.3, RFC 5288 §3).
fn sealed(kind: u8, plain: &[u8], sequence: u64, secrets: &ConnectionTrafficSecrets) -> Vec<u8> {
    let ConnectionTrafficSecrets::Aes128Gcm { key, iv } = secrets else { panic!("AES-128-GCM is asked for") };
    let explicit = sequence.to_be_bytes();
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&iv.as_ref()[..4]);
    nonce[4..].copy_from_slice(&explicit);
    let length = u16::try_from(plain.len()).unwrap();
    let aad = [&sequence.to_be_bytes()[..], &[kind, 3, 3], &length.to_be_bytes()].concat();
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key.as_ref()).unwrap());
    let mut content = plain.to_vec();
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(aad), &mut content).unwrap();
    let length = u16::try_from(explicit.len() + content.len()).unwrap();
    [&[kind, 3, 3][..], &length.to_be_bytes(), &explicit, &content].concat()
}

/// Sessions of TLS 1.2 with AES-128-GCM whose keys may be taken out of them.
fn open_book(secure: &Secure) -> Arc<rustls::ClientConfig> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider
        .cipher_suites
        .retain(|suite| suite.suite() == CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256);
    let mut config = client_config_of(provider, &[secure.authority.ca_pem()], TLS12, None);
    config.enable_secret_extraction = true;
    Arc::new(config)
}

/// RFC 5246 §6.2.1: a record holds at most 2^14 bytes.
#[test]
fn a_record_of_more_than_16_kib_ends_the_session() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    let config = open_book(&secure);
    for (length, served) in [(16_384, true), (16_385, false)] {
        let socket = TlsSocket::open(secure.keel.address(), &config, "localhost").unwrap();
        let TlsSocket { mut tcp, session } = socket;
        let (sequence, secrets) = session.dangerous_extract_secrets().unwrap().tx;
        let mut request = b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\nA: ".to_vec();
        request.resize(length - 4, b'a');
        request.extend_from_slice(b"\r\n\r\n");
        tcp.write_all(&sealed(23, &request, sequence, &secrets)).unwrap();
        let came = read_to_end(&mut tcp).unwrap_or_else(|cut| cut);
        assert_eq!(came.first() == Some(&23), served, "{length}: {} bytes came", came.len());
    }
    assert_eq!(backends[0].requests(), 1);
    good(&secure);
}

#[test]
fn renegotiation_is_refused_and_a_second_attempt_ends_the_connection() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    let config = open_book(&secure);
    let name = ServerName::try_from("localhost").unwrap();
    let mut hello = Vec::new();
    ClientConnection::new(Arc::clone(&config), name).unwrap().write_tls(&mut hello).unwrap();

    let socket = TlsSocket::open(secure.keel.address(), &config, "localhost").unwrap();
    let TlsSocket { mut tcp, session } = socket;
    let (sequence, secrets) = session.dangerous_extract_secrets().unwrap().tx;
    // One attempt is answered with a warning, and what follows is served.
    tcp.write_all(&sealed(22, &hello[5..], sequence, &secrets)).unwrap();
    let mut head = [0; 5];
    tcp.read_exact(&mut head).unwrap();
    assert_eq!(head[0], 21, "no_renegotiation");
    let mut rest = vec![0; usize::from(head[4])];
    tcp.read_exact(&mut rest).unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";
    tcp.write_all(&sealed(23, request, sequence + 1, &secrets)).unwrap();
    tcp.read_exact(&mut head).unwrap();
    assert_eq!(head[0], 23, "an answer");
    // Whoever goes on gets no more.
    for nth in 2..4 {
        let _ = tcp.write_all(&sealed(22, &hello[5..], sequence + nth, &secrets));
    }
    let _ = read_to_end(&mut tcp);
    assert_eq!(backends[0].requests(), 1);
    good(&secure);
}

#[test]
fn silence_before_or_inside_a_handshake_does_not_hold_up_a_drain() {
    let backends = fakes(1);
    let secure = Secure::with(Protocol::Http, &[&backends[0]], "", |config| {
        config.listeners[0].client_timeouts.tls = Duration::from_secs(3600);
        config.shutdown_timeout = Duration::from_secs(3600);
    });
    let mut silent = Client::connect(secure.keel.address());
    let mut begun = Client::connect(secure.keel.address());
    begun.send([22, 3, 1, 2, 0, 1, 0]);
    eventually("they are accepted", || secure.keel.server.connections() == 2);
    secure.keel.server.shutdown().advance();
    eventually("they are closed after some seconds", || secure.keel.server.connections() == 0);
    assert!(silent.is_closed() && begun.is_closed());
    assert_eq!(secure.keel.server.wait().unwrap().cut, 0);
}

#[test]
fn four_hundred_half_handshakes_keep_nobody_waiting() {
    let backends = fakes(1);
    let secure = Secure::http(&[&backends[0]]);
    let (_, bytes) = hello(&secure);
    let stuck: Vec<Client> = (0..400)
        .map(|nth| {
            let mut client = Client::connect(secure.keel.address());
            client.send(&bytes[..nth % bytes.len()]);
            client
        })
        .collect();
    eventually("they are there", || secure.keel.server.connections() == 400);
    for versions in [TLS12, TLS13, BOTH] {
        assert_eq!(secure.client_with(&secure.versions(versions)).get("/").status, 200);
    }
    drop(stuck);
    eventually("they are gone", || secure.keel.server.connections() == 0);
}
