//! Records and handshakes that no honest client sends (the advisories of every TLS library begin with one). Each ends its
//! own connection with a cause, and nothing else: the next client shakes hands and is served.

use super::stuck_lab::Lab;
use super::stuck_tls::seal;
use super::support::eventually;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A client that shakes hands and is served.
fn served(lab: &Lab) {
    let (mut client, mut session) = lab.secured("https");
    client.send(seal(&mut session, GET));
    let mut plain = Vec::new();
    while !plain.ends_with(b"Hello from fake-1") {
        let count = session.read_tls(&mut client.socket).unwrap();
        assert!(count > 0, "cut: {}", String::from_utf8_lossy(&plain));
        session.process_new_packets().unwrap();
        // Nothing more is there for now, or nothing ever: the loop tells which.
        let _ = std::io::Read::read_to_end(&mut session.reader(), &mut plain);
    }
    assert!(plain.starts_with(b"HTTP/1.1 200 OK\r\n"));
}

fn no_panic(lab: &Lab) {
    let said = lab.process.said();
    assert!(!said.iter().any(|line| line.contains("panicked")), "{said:#?}");
}

#[test]
fn what_is_no_handshake_ends_its_connection_and_no_other() {
    let lab = Lab::start("", "1h");
    let long = [&b"\x16\x03\x01\x40\x01"[..], &[0; 0x4001]].concat();
    let flood = b"\x14\x03\x03\x00\x01\x01".repeat(1000);
    let cases: [(&str, &[u8], &str); 13] = [
        ("a record of 65,535 bytes", b"\x16\x03\x01\xff\xff\x01", "tls_handshake"),
        ("a record one byte too long", &long, "tls_handshake"),
        ("an empty handshake record", b"\x16\x03\x01\x00\x00", "tls_handshake"),
        ("an alert", b"\x15\x03\x01\x00\x02\x02\x28", "tls_handshake"),
        ("data before the handshake", b"\x17\x03\x03\x00\x05hello", "tls_handshake"),
        ("a flood of ChangeCipherSpec", &flood, "tls_handshake"),
        ("a handshake message of 16 MB", b"\x16\x03\x01\x00\x04\x01\xff\xff\xff", "tls_handshake"),
        ("a ServerHello", b"\x16\x03\x03\x00\x05\x02\x00\x00\x01\x03", "tls_handshake"),
        ("SSL 2", b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10", "tls_handshake"),
        ("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "plain_http"),
        ("a line of the PROXY protocol", b"PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n", "proxy_protocol"),
        ("its second version", b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00", "proxy_protocol"),
        ("a plain request", GET.as_bytes(), "plain_http"),
    ];
    let ended: Vec<_> = cases
        .iter()
        .map(|(name, bytes, expected)| {
            let mut client = lab.client("https");
            client.send(bytes);
            let answer = client.rest();
            let is_told = *expected != "tls_handshake";
            assert_eq!(answer.starts_with(b"HTTP/1.1 400 "), is_told, "{name}: {answer:?}");
            served(&lab);
            client
        })
        .collect();
    for ((name, _, expected), client) in cases.iter().zip(ended) {
        eventually(name, || lab.causes(&client) == [*expected]);
    }
    no_panic(&lab);
}

#[test]
fn a_client_hello_with_any_byte_wrong_ends_its_connection_and_no_other() {
    let lab = Lab::start("", "1h");
    let hello = lab.secrets.hello();
    // Every byte of the headers and of what comes first, then some of the rest: most of it is random anyway.
    let places = (0..hello.len().min(120)).chain((120..hello.len()).step_by(41));
    let ended = places.map(|at| {
        let mut bytes = hello.clone();
        bytes[at] ^= 0xff;
        let mut client = lab.client("https");
        // What is understood after all is answered with a flight of the server's; then comes our end.
        client.send(&bytes).finish_sending();
        client.rest();
        (at, client)
    });
    for (at, client) in ended.collect::<Vec<_>>() {
        eventually("it is written down", || !lab.causes(&client).is_empty());
        let causes = lab.causes(&client);
        let [cause] = &causes[..] else { panic!("byte {at}: {causes:?}") };
        assert!(["tls_handshake", "client_gone", "plain_http"].contains(&cause.as_str()), "{at}: {cause}");
    }
    served(&lab);
    no_panic(&lab);
}

#[test]
fn a_client_hello_in_many_records_and_segments_is_understood() {
    let lab = Lab::start("", "1h");
    for size in [1, 7, 100] {
        let (mut client, mut session) = (lab.client("https"), lab.secrets.session());
        let mut hello = Vec::new();
        session.write_tls(&mut hello).unwrap();
        let (header, message) = hello.split_at(5);
        for piece in message.chunks(size) {
            let length = u16::try_from(piece.len()).unwrap().to_be_bytes();
            client.send([&header[..3], &length, piece].concat());
        }
        session.complete_io(&mut client.socket).unwrap();
        assert!(!session.is_handshaking(), "in records of {size}");
    }
    let (mut client, mut session) = (lab.client("https"), lab.secrets.session());
    let mut hello = Vec::new();
    session.write_tls(&mut hello).unwrap();
    for byte in hello {
        client.send([byte]);
    }
    session.complete_io(&mut client.socket).unwrap();
    assert!(!session.is_handshaking(), "byte by byte");
    served(&lab);
    no_panic(&lab);
}

#[test]
fn a_forged_record_inside_a_session_ends_it_and_no_request_is_made_of_it() {
    let lab = Lab::start("", "1h");
    let requests = lab.http.requests();
    for at in [0, 3, 5, 20] {
        let (mut client, mut session) = lab.secured("https");
        let mut record = seal(&mut session, GET);
        record[at] ^= 0x40;
        client.send(&record).finish_sending();
        client.rest();
    }
    assert_eq!(lab.http.requests(), requests, "nothing reached the backend");
    served(&lab);
    no_panic(&lab);
}
