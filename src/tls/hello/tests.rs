use proptest::prelude::*;

use super::*;

/// First messages of programs, as they were recorded, each for `mail.example`.
const RECORDED: &[(&str, &str, &[&str])] = &[
    ("openssl", include_str!("../../../fixtures/client_hellos/openssl.hex"), &["h2", "http/1.1"]),
    ("openssl, TLS 1.2", include_str!("../../../fixtures/client_hellos/openssl-1.2.hex"), &[]),
    ("curl", include_str!("../../../fixtures/client_hellos/curl.hex"), &["h2", "http/1.1"]),
    ("Python", include_str!("../../../fixtures/client_hellos/python.hex"), &["h2", "http/1.1"]),
    ("Node", include_str!("../../../fixtures/client_hellos/node.hex"), &["h2", "http/1.1"]),
    ("Go", include_str!("../../../fixtures/client_hellos/go.hex"), &["h2", "http/1.1"]),
    ("Chromium", include_str!("../../../fixtures/client_hellos/chromium.hex"), &["h2", "http/1.1"]),
];

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.trim().as_bytes().chunks(2).map(|two| std::str::from_utf8(two).expect("ASCII"));
    digits.map(|two| u8::from_str_radix(two, 16).expect("a byte")).collect()
}

fn read(bytes: &[u8]) -> HelloRead {
    HelloReader::default().read(bytes)
}

/// What comes of bytes that drip one by one, and behind how many of them.
fn dripped(bytes: &[u8]) -> (HelloRead, usize) {
    let mut reader = HelloReader::default();
    for end in 0..=bytes.len() {
        match reader.read(&bytes[..end]) {
            HelloRead::More => {}
            clear => return (clear, end),
        }
    }
    (HelloRead::More, bytes.len())
}

/// The message in records of so many bytes.
fn in_records(message: &[u8], size: usize) -> Vec<u8> {
    let record = |piece: &[u8]| [&[22, 3, 1][..], &(piece.len() as u16).to_be_bytes(), piece].concat();
    message.chunks(size).flat_map(record).collect()
}

/// A message with these extensions.
fn hello(extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 1], &[1, 0]].concat();
    let all: Vec<u8> = extensions
        .iter()
        .flat_map(|(kind, content)| {
            [&kind.to_be_bytes()[..], &(content.len() as u16).to_be_bytes(), content].concat()
        })
        .collect();
    body.extend_from_slice(&(all.len() as u16).to_be_bytes());
    body.extend_from_slice(&all);
    framed(&body)
}

/// This as a ClientHello.
fn framed(body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    [&[1][..], &length[1..], body].concat()
}

fn name(text: &[u8]) -> Vec<u8> {
    let (list, name) = ((text.len() + 3) as u16, text.len() as u16);
    [&list.to_be_bytes()[..], &[0], &name.to_be_bytes(), text].concat()
}

#[test]
fn what_programs_say_first_is_read_however_it_is_split() {
    for (program, hex, protocols) in RECORDED {
        let bytes = bytes_of(hex);
        let expected = HelloRead::Whole(ClientHello {
            name: Some("mail.example".into()),
            protocols: protocols.iter().map(|name| name.as_bytes().into()).collect(),
        });
        assert_eq!(read(&bytes), expected, "{program}");
        assert_eq!(dripped(&bytes), (expected.clone(), bytes.len()), "{program}: no sooner and no later");
        for at in 0..bytes.len() {
            let mut reader = HelloReader::default();
            assert_eq!(reader.read(&bytes[..at]), HelloRead::More, "{program} at {at}");
            assert_eq!(reader.read(&bytes), expected, "{program} at {at}");
        }
        for size in [1, 2, 3, 5, 100, 1000] {
            let split = in_records(&bytes[5..], size);
            assert_eq!(dripped(&split).0, expected, "{program} in records of {size}");
        }
        // What comes behind it is nobody's business here.
        assert_eq!(read(&[&bytes[..], b"\x17\x03\x03\0\x01x"].concat()), expected, "{program}");
    }
}

#[test]
fn names_and_protocols_are_those_that_a_server_would_read() {
    let of = |extensions: &[(u16, &[u8])]| match read(&in_records(&hello(extensions), 1 << 14)) {
        HelloRead::Whole(hello) => hello,
        other => panic!("{other:?}"),
    };
    assert_eq!(of(&[]), ClientHello::default());
    assert_eq!(of(&[(0, &name(b"Shop.Example"))]).name.as_deref(), Some("shop.example"));
    for none in [
        &b"192.0.2.1"[..],
        b"::1",
        b"a..b",
        b".a",
        b"a..",
        b".",
        b"a b",
        b"a\0",
        b"\xff",
        &[b'a'; 64],
        &[b'a'; 300],
    ] {
        assert_eq!(of(&[(0, &name(none))]).name, None, "{}", none.escape_ascii());
    }
    // GREASE, and an encrypted hello inside.
    let odd: &[(u16, &[u8])] = &[
        (0x0a0a, b""),
        (0xfe0d, b"secret"),
        (0, &name(b"outer.example")),
        (16, b"\0\x03\x02h2"),
        (0xfafa, b"\0"),
    ];
    let read_of = of(odd);
    assert_eq!(
        (read_of.name.as_deref(), &read_of.protocols[..]),
        (Some("outer.example"), &[b"h2"[..].into()][..])
    );
    // As old as TLS can be: no extensions.
    let bare = framed(&[&[3, 1][..], &[7; 32], &[0], &[0, 2, 0, 5], &[1, 0]].concat());
    assert_eq!(read(&in_records(&bare, 1 << 14)), HelloRead::Whole(ClientHello::default()));
}

#[test]
fn what_is_malformed_is_refused_as_soon_as_it_can_be_seen() {
    use HelloFault::{Long, Malformed, Message, Record, Twice};
    let whole = in_records(&hello(&[(0, &name(b"a.b"))]), 1 << 14);
    let body = &hello(&[])[4..];
    let record = |message: &[u8]| in_records(message, 1 << 14);
    let with = |kind: u16, content: &[u8]| record(&hello(&[(kind, content)]));
    for (what, bytes, fault, at) in [
        ("a request", b"GET / HTTP/1.1\r\n".to_vec(), Record, 1),
        ("an alert", b"\x15\x03\x01\0\x02\x02\x28".to_vec(), Record, 1),
        ("SSL 2", b"\x80\x2e\x01\0\x02".to_vec(), Record, 1),
        ("another version", b"\x16\x02\x01\0\x01\x01".to_vec(), Record, 2),
        ("an empty record", b"\x16\x03\x01\0\0".to_vec(), Record, 5),
        ("a record that is too long", b"\x16\x03\x01\x40\x01\x01".to_vec(), Record, 5),
        ("an alert in the middle", [&whole[..20], b""].concat(), Record, usize::MAX),
        ("a ServerHello", b"\x16\x03\x03\0\x05\x02\0\0\x01\x03".to_vec(), Message, 6),
        ("16 MiB", b"\x16\x03\x01\0\x04\x01\xff\xff\xff".to_vec(), Long, 9),
        ("one byte more than is taken", b"\x16\x03\x01\0\x04\x01\0\x80\x01".to_vec(), Long, 9),
        ("nothing", record(&framed(b"")), Malformed, 9),
        ("no random", record(&framed(&[3, 3, 1])), Malformed, usize::MAX),
        (
            "a long session",
            record(&framed(&[&[3, 3][..], &[7; 32], &[33], &[1; 33], &[0, 2, 1, 1, 1, 0]].concat())),
            Malformed,
            usize::MAX,
        ),
        (
            "no suites",
            record(&framed(&[&[3, 3][..], &[7; 32], &[0, 0, 0, 1, 0]].concat())),
            Malformed,
            usize::MAX,
        ),
        (
            "half a suite",
            record(&framed(&[&[3, 3][..], &[7; 32], &[0, 0, 1, 1, 1, 0]].concat())),
            Malformed,
            usize::MAX,
        ),
        (
            "no compression",
            record(&framed(&[&[3, 3][..], &[7; 32], &[0, 0, 2, 1, 1, 0]].concat())),
            Malformed,
            usize::MAX,
        ),
        ("more behind the extensions", record(&framed(&[body, &[0]].concat())), Malformed, usize::MAX),
        (
            "half an extension",
            record(&framed(&[&body[..body.len() - 2], &[0, 1, 0]].concat())),
            Malformed,
            usize::MAX,
        ),
        ("an extension twice", record(&hello(&[(5, b""), (9, b""), (5, b"")])), Twice, usize::MAX),
        ("two names", with(0, b"\0\x08\0\0\x01a\0\0\x01b"), Malformed, usize::MAX),
        ("a name of another kind", with(0, b"\0\x04\x07\0\x01x"), Malformed, usize::MAX),
        ("no name", with(0, b"\0\0"), Malformed, usize::MAX),
        ("nothing of a name", with(0, b""), Malformed, usize::MAX),
        ("a name that is too long", with(0, b"\0\x04\0\0\x09a"), Malformed, usize::MAX),
        ("more behind the names", with(0, b"\0\x04\0\0\x01ab"), Malformed, usize::MAX),
        ("no protocols", with(16, b"\0\0"), Malformed, usize::MAX),
        ("an empty protocol", with(16, b"\0\x01\0"), Malformed, usize::MAX),
        ("a protocol that is too long", with(16, b"\0\x02\x05h"), Malformed, usize::MAX),
    ] {
        let bytes = if what == "an alert in the middle" {
            [&in_records(&hello(&[(0, &name(b"a.b"))]), 20)[..25], b"\x15\x03\x01\0\x02"].concat()
        } else {
            bytes
        };
        assert_eq!(read(&bytes), HelloRead::Fault(fault), "{what}");
        let (outcome, end) = dripped(&bytes);
        assert_eq!(outcome, HelloRead::Fault(fault), "{what}");
        assert!(at == usize::MAX || end == at, "{what}: at {end}");
    }
    // Crumbs without end.
    let mut reader = HelloReader::default();
    let mut crumbs = in_records(&[&[1, 0, 0x7f, 0xff][..], &[0; 20_000]].concat(), 1);
    crumbs.truncate(MOST_HELD + 1);
    assert_eq!(reader.read(&crumbs[..MOST_HELD]), HelloRead::More);
    assert_eq!(reader.read(&crumbs), HelloRead::Fault(Long));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_is_the_same_in_one_piece_and_in_many(
        which in 0..RECORDED.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        size in 1usize..600,
        cuts in prop::collection::vec(1usize..200, 0..12),
    ) {
        let recorded = bytes_of(RECORDED[which].1);
        let mut bytes = in_records(&recorded[5..], size);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let whole = read(&bytes);
        prop_assert_eq!(&dripped(&bytes).0, &whole);
        let mut reader = HelloReader::default();
        let mut end = 0;
        for cut in cuts {
            end = (end + cut).min(bytes.len());
            let part = reader.read(&bytes[..end]);
            prop_assert!(part == HelloRead::More || part == whole);
            if part != HelloRead::More {
                return Ok(());
            }
        }
        prop_assert_eq!(reader.read(&bytes), whole);
    }
}
