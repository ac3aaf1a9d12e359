//! What lines are worth.

use super::super::line::Pseudo;
use super::*;

/// The verdict on a literal; it must be the same however it comes: at once, from the table, and with its name from there.
#[track_caller]
fn verdict(name: &[u8], value: &[u8]) -> LineKind {
    let mut decoder = HpackDecoder::new(4096);
    let (_, at_once, known) = only(&mut decoder, &literal(name, value));
    let (written, kept, _) = only(&mut decoder, &kept(name, value));
    assert_eq!((written, kept), ((name.to_vec(), value.to_vec()), at_once));
    let stored = (name.to_vec(), value.to_vec());
    assert_eq!(only(&mut decoder, &[0xbe]), (stored.clone(), at_once, known), "from the table");
    let again = [&[0x7e, value.len() as u8][..], value].concat();
    assert_eq!(only(&mut decoder, &again), (stored.clone(), at_once, known), "with its name from there");
    assert_eq!(only(&mut decoder, &[0xbe]), (stored, at_once, known));
    at_once
}

#[test]
fn names_are_tokens_in_small_letters() {
    for byte in 0..=u8::MAX {
        let fine = matches!(byte, b'a'..=b'z' | b'0'..=b'9') || b"!#$%&'*+-.^_`|~".contains(&byte);
        let expected = if fine { OTHER } else { LineKind::Malformed };
        for name in [vec![byte], [b"x-", &[byte][..]].concat(), [&[byte][..], b"-x"].concat()] {
            assert_eq!(verdict(&name, b"1"), expected, "{}", name.escape_ascii());
        }
        // Where sixteen bytes are looked at together.
        let long = [&b"abcdefghijklmnop"[..], &[byte], b"qrstuvwxyzabcdefghij"].concat();
        assert_eq!(verdict(&long, b"1"), expected, "{}", long.escape_ascii());
    }
    assert_eq!(verdict(b"", b"1"), LineKind::Malformed);
    for name in [&b"Host"[..], b"hosT", b"CONTENT-LENGTH", b"x-A", b"Accept"] {
        assert_eq!(verdict(name, b"1"), LineKind::Malformed, "{}", name.escape_ascii());
    }
}

#[test]
fn values_hold_no_control_byte_and_no_blank_at_their_ends() {
    for byte in 0..=u8::MAX {
        let inside = byte >= 0x20 && byte != 0x7f || byte == b'\t';
        let at_the_end = inside && byte != b' ' && byte != b'\t';
        let kind = |fine| if fine { OTHER } else { LineKind::Malformed };
        for (value, fine) in [
            (vec![b'a', byte, b'b'], inside),
            (vec![byte], at_the_end),
            (vec![byte, b'a'], at_the_end),
            (vec![b'a', byte], at_the_end),
            ([&[b'a'; 20][..], &[byte], &[b'b'; 20]].concat(), inside),
        ] {
            assert_eq!(verdict(b"x", &value), kind(fine), "{}", value.escape_ascii());
        }
    }
    assert_eq!(verdict(b"x", b""), OTHER);
    assert_eq!(verdict(b":path", b"/\r\nhost: b"), LineKind::Malformed);
}

#[test]
fn six_names_may_begin_with_a_colon() {
    let six = [
        (":method", Pseudo::Method),
        (":scheme", Pseudo::Scheme),
        (":authority", Pseudo::Authority),
        (":path", Pseudo::Path),
        (":status", Pseudo::Status),
        (":protocol", Pseudo::Protocol),
    ];
    for (name, pseudo) in six {
        assert_eq!(verdict(name.as_bytes(), b"1"), LineKind::Pseudo(pseudo));
        assert_eq!(verdict(&name.as_bytes()[1..], b"1"), OTHER, "{name} without its colon");
    }
    for name in [":", "::path", ":Path", ":paths", ":host", ":pat", ":method:", "path:", ":protocols"] {
        assert_eq!(verdict(name.as_bytes(), b"1"), LineKind::Malformed, "{name}");
    }
}

#[test]
fn fields_are_known_by_number_and_index_however_they_came() {
    for (name, field, known) in [
        (&b"host"[..], HeaderField::Host, 38),
        (b"content-length", HeaderField::ContentLength, 28),
        (b"transfer-encoding", HeaderField::TransferEncoding, 57),
        (b"connection", HeaderField::Connection, 0),
        (b"x-forwarded-for", HeaderField::XForwardedFor, 0),
        (b"te", HeaderField::Te, 0),
        (b"accept-encoding", HeaderField::Other, 16),
    ] {
        assert_eq!(verdict(name, b"1"), LineKind::Field(field));
        assert_eq!(only(&mut HpackDecoder::new(0), &literal(name, b"1")).2, known);
    }
    // All lines of one name have its first index.
    for (block, known) in [(0x82, 2), (0x83, 2), (0x87, 6), (0x8e, 8), (0xbd, 61)] {
        assert_eq!(only(&mut HpackDecoder::new(0), &[block]).2, known);
    }
}

#[test]
fn names_with_underscores_are_seen_through_as_in_http_1() {
    for name in ["content_length", "transfer_encoding", "transfer-encoding_", "x_y"] {
        let expected = if name.starts_with('x') || name.ends_with('_') { OTHER } else { LineKind::Malformed };
        assert_eq!(verdict(name.as_bytes(), b"1"), expected, "{name}");
    }
    for name in ["x_forwarded_for", "x-forwarded_proto", "x_real_ip", "client_cert"] {
        assert_eq!(verdict(name.as_bytes(), b"1"), LineKind::Field(HeaderField::ClientAlias), "{name}");
    }
}

#[test]
fn a_malformed_line_leaves_the_table_in_step() {
    let mut decoder = HpackDecoder::new(4096);
    let block = [kept(b"Bad", b"1"), kept(b"good", b"2"), kept(b"x", b"\n"), bytes("be bf c0")].concat();
    let mut kinds = Vec::new();
    decoder.decode(&block, MUCH, |line| kinds.push((line.name().to_vec(), line.kind))).expect("a block");
    let (bad, good, x) = (b"Bad".to_vec(), b"good".to_vec(), b"x".to_vec());
    let malformed = LineKind::Malformed;
    let expected = [
        (bad.clone(), malformed),
        (good.clone(), OTHER),
        (x.clone(), malformed),
        (x.clone(), malformed),
        (good, OTHER),
        (bad, malformed),
    ];
    assert_eq!(kinds, expected);
    // The name alone was never at fault.
    assert_eq!(only(&mut decoder, &bytes("7e 01 31")), ((x, b"1".to_vec()), OTHER, 0));
    // This one's was.
    assert_eq!(only(&mut decoder, &bytes("7f 02 01 31")).1, malformed);
}
