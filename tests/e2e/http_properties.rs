//! The codec against itself and against a decoder that was written another way, over random input.

use evenkeel::config::model::Forwarded;
use evenkeel::message::{Framing, Head, HeaderField, tokens};
use evenkeel::proxy::http::h1::chunk::Chunks;
use evenkeel::proxy::http::h1::parse;
use evenkeel::proxy::http::h1::search::Search;
use evenkeel::proxy::http::h1::write::{self, About, Host};
use evenkeel::proxy::http::h1::{chunk, framing};
use fuzz_cases::strict;
use proptest::prelude::*;

const VALID: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "\r\nGET /a/b?c=d&e HTTP/1.1\r\nHost: x:80\r\nAccept: */*\r\nCookie: a=b; c=d\r\nCookie: e\r\n\r\n",
    "POST /p HTTP/1.1\r\nHost: [::1]:8\r\nContent-Length: 12\r\nContent-Type: text/plain\r\n\r\n",
    "PUT http://other:1/p?q HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\nConnection: TE, X-A\r\nX-A: 1\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1\r\nX_Real_IP: 2\r\nVia: 1.0 a\r\n\r\n",
    "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n",
    "HEAD / HTTP/1.0\r\nConnection: keep-alive\r\nEmpty:\r\nBlank: \t \r\n\r\n",
];
/// What a mutation puts in: bytes that mean something.
const SPICE: &[&str] = &[
    "\r\n",
    "\n",
    "\r",
    " ",
    "\t",
    ":",
    ";",
    ",",
    "\0",
    "/",
    "#",
    "?",
    "*",
    "%00",
    "@",
    "[",
    "]",
    "\u{e9}",
    "HTTP/1.0",
    "chunked",
    "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Host: y\r\n",
    "Connection: close\r\n",
    "Connection: Host\r\n",
    "_",
    "X-Forwarded-Host: z\r\n",
    " HTTP/1.1\r\n",
    "A: b\r\n",
    "0",
    "99999999999999999999",
];

#[derive(Clone, Debug)]
enum Change {
    Insert(usize, usize),
    Remove(usize, usize),
    Set(usize, u8),
    Copy(usize, usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any::<usize>(), 0..SPICE.len()).prop_map(|(at, what)| Change::Insert(at, what)),
        2 => (any::<usize>(), 1..6usize).prop_map(|(at, count)| Change::Remove(at, count)),
        2 => (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        1 => (any::<usize>(), any::<usize>(), 1..30usize).prop_map(|(from, to, count)| Change::Copy(from, to, count)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    let length = bytes.len().max(1);
    match *change {
        Change::Insert(at, what) => {
            let at = (at % length).min(bytes.len());
            bytes.splice(at..at, SPICE[what].bytes());
        }
        Change::Remove(at, count) => {
            let at = (at % length).min(bytes.len());
            bytes.drain(at..(at + count).min(bytes.len()));
        }
        Change::Set(at, byte) => {
            if let Some(place) = bytes.get_mut(at % length) {
                *place = byte;
            }
        }
        Change::Copy(from, to, count) => {
            let from = (from % length).min(bytes.len());
            let copy = bytes[from..(from + count).min(bytes.len())].to_vec();
            let to = (to % length).min(bytes.len());
            bytes.splice(to..to, copy);
        }
    }
}

/// A head that was read the way the server reads it, and its length.
fn read(bytes: &[u8]) -> Option<(Head, usize)> {
    let length = Search::default().find(bytes, 64 * 1024).ok()??;
    let mut head = Head::new();
    parse::request(&bytes[..length], 100, &mut head).ok()?;
    Some((head, length))
}

/// The lines that must arrive, in order.
fn kept(head: &Head, host: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let nominated: Vec<Vec<u8>> =
        head.values(HeaderField::Connection).flat_map(tokens).map(<[u8]>::to_ascii_lowercase).collect();
    let protected =
        ["host", "content-length", "transfer-encoding", "via", "trailer", "date"].map(|name| name.as_bytes());
    let lines = head.lines().iter().filter(|line| {
        let name = head.pair(line).0.to_ascii_lowercase();
        let stays = protected.contains(&name.as_slice()) || !nominated.contains(&name);
        stays && !line.field.is_hop_by_hop() && !line.field.is_about_client() && (host || name != b"host")
    });
    lines.map(|line| head.pair(line)).map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

fn expected_path(head: &Head) -> Vec<u8> {
    let path = head.path();
    match path.first() {
        None if head.method() == b"OPTIONS" => b"*".to_vec(),
        Some(b'/' | b'*') => path.to_vec(),
        None | Some(_) => [b"/", path].concat(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_accepted_is_read_the_same_behind_us(
        start in 0..VALID.len(),
        changes in prop::collection::vec(change(), 0..6),
    ) {
        let mut bytes = VALID[start].as_bytes().to_vec();
        for each in &changes {
            apply(&mut bytes, each);
        }
        let Some((head, _)) = read(&bytes) else { return Ok(()) };
        let Ok(framed) = framing::request(&head) else { return Ok(()) };
        if head.method() == b"CONNECT" {
            return Ok(());
        }
        let about = About { kind: Forwarded::Off, client: None, trusted: false, real_ip: None, scheme: "http", certificate: b"", id: 7, retry: 0, trace: None };
        let mut out = Vec::new();
        write::request(&mut out, &head, framed, None, &about, None, Host::Pass { missing: "fallback" });
        let Some((again, length)) = read(&out) else {
            return Err(TestCaseError::fail(format!("{:?} became {:?}", text(&bytes), text(&out))));
        };
        prop_assert_eq!(length, out.len(), "one head, nothing behind it: {:?}", text(&out));
        prop_assert_eq!(framing::request(&again), Ok(framed), "{:?}", text(&out));
        prop_assert_eq!(again.method(), head.method());
        prop_assert_eq!(again.target(), expected_path(&head));
        if !head.authority().is_empty() {
            prop_assert_eq!(again.authority(), head.authority());
        }
        prop_assert!(!again.has_about_client() || again.values(HeaderField::XRequestId).count() == 1);
        let absolute = !matches!(head.target().first(), Some(b'/' | b'*'));
        let host = !absolute && head.value(HeaderField::Host).is_some();
        let mut lines = kept(&again, host);
        prop_assert_eq!(lines.pop().map(|(name, _)| name), Some(b"Via".to_vec()));
        prop_assert_eq!(lines, kept(&head, host), "{:?} became {:?}", text(&bytes), text(&out));
    }

    #[test]
    fn no_bytes_make_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), limit in 0..300usize) {
        let mut search = Search::default();
        for end in 0..=bytes.len() {
            if let Ok(None) = search.find(&bytes[..end], limit) {
                continue;
            }
            break;
        }
        let mut head = Head::new();
        let _ = parse::request(&bytes, 10, &mut head);
        let _ = parse::answer(&bytes, &mut head);
        let _ = Chunks::default().scan(&mut bytes.clone(), true);
        let _ = Chunks::default().scan(&mut bytes.clone(), false);
    }

    #[test]
    fn chunks_mean_the_same_to_another_decoder_over_any_split(
        sizes in prop::collection::vec(0..40usize, 0..6),
        trailer in prop::bool::ANY,
        changes in prop::collection::vec(change(), 0..3),
        cuts in prop::collection::vec(1..30usize, 1..8),
        raw in prop::bool::ANY,
    ) {
        let mut bytes = Vec::new();
        for size in sizes.iter().filter(|&&size| size > 0) {
            bytes.extend_from_slice(format!("{size:x};e=f\r\n").as_bytes());
            bytes.extend(std::iter::repeat_n(b'z', *size));
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(if trailer { b"0\r\nX-T: v\r\n\r\nGET /" } else { b"0\r\n\r\nGET /" });
        for each in &changes {
            apply(&mut bytes, each);
        }
        let ours = scan(&bytes, &cuts, raw);
        let theirs = decode(&bytes);
        match (&ours, &theirs) {
            (Verdict::Done { content, trailers, rest }, Verdict::Done { content: c, trailers: t, rest: r }) => {
                prop_assert_eq!((trailers, rest), (t, r), "{:?}", text(&bytes));
                let content = if raw { unwrap(content) } else { content.clone() };
                prop_assert_eq!(&content, c, "{:?}", text(&bytes));
            }
            _ => prop_assert_eq!(&ours, &theirs, "{:?}", text(&bytes)),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Done { content: Vec<u8>, trailers: Vec<u8>, rest: Vec<u8> },
    Partial,
    Wrong,
}

/// The scanner, fed in pieces of these sizes in turn.
fn scan(bytes: &[u8], cuts: &[usize], raw: bool) -> Verdict {
    let (mut chunks, mut held, mut content) = (Chunks::default(), Vec::new(), Vec::new());
    let (mut rest, mut cuts) = (bytes, cuts.iter().cycle());
    while !rest.is_empty() && !chunks.is_done() {
        let (piece, more) = rest.split_at((*cuts.next().expect("a cycle")).min(rest.len()));
        rest = more;
        held.extend_from_slice(piece);
        let Ok(found) = chunks.scan(&mut held, raw) else { return Verdict::Wrong };
        content.extend_from_slice(&held[found.start..found.end]);
        held.drain(..found.consumed);
    }
    if !chunks.is_done() {
        return Verdict::Partial;
    }
    held.extend_from_slice(rest);
    Verdict::Done { content, trailers: chunks.trailers().to_vec(), rest: held }
}

/// What raw chunks hold, once the end that the sender adds is there.
fn unwrap(raw: &[u8]) -> Vec<u8> {
    match decode(&[raw, b"0\r\n\r\n"].concat()) {
        Verdict::Done { content, .. } => content,
        Verdict::Partial | Verdict::Wrong => panic!("raw output does not decode: {}", text(raw)),
    }
}

/// RFC 9112 §7.1 over a whole input, as plainly as it can be written.
fn decode(bytes: &[u8]) -> Verdict {
    let (mut rest, mut content, mut trailers) = (bytes, Vec::new(), Vec::new());
    loop {
        let line = match line(&mut rest) {
            Ok(line) => line,
            Err(verdict) => return verdict,
        };
        let size = line.split(|&byte| byte == b';').next().unwrap_or_default();
        let extension = &line[size.len()..];
        let digits = text(size);
        // Of a size its value counts and not its zeros.
        let has_few = digits.trim_start_matches('0').len() <= 15;
        if digits.is_empty() || !has_few || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Verdict::Wrong;
        }
        if !extension_is_fine(extension) {
            return Verdict::Wrong;
        }
        let size = usize::from_str_radix(&digits, 16).expect("15 digits fit");
        if size == 0 {
            break;
        }
        let Some(data) = rest.get(..size) else { return Verdict::Partial };
        content.extend_from_slice(data);
        rest = &rest[size..];
        match rest {
            [b'\r', b'\n', ..] => rest = &rest[2..],
            [] | [b'\r'] => return Verdict::Partial,
            [..] => return Verdict::Wrong,
        }
    }
    loop {
        let line = match line(&mut rest) {
            Ok(line) => line,
            Err(verdict) => return verdict,
        };
        if line.is_empty() {
            return Verdict::Done { content, trailers, rest: rest.to_vec() };
        }
        // Whether a name is a token and may be a trailer is the other parser's word: asked in a request.
        if !chunk_trailer_is_fine(line) {
            return Verdict::Wrong;
        }
        trailers.extend_from_slice(line);
        trailers.extend_from_slice(b"\r\n");
    }
}

/// Extensions as the strict reader of the fuzz targets reads them.
fn extension_is_fine(extension: &[u8]) -> bool {
    let body = [b"0", extension, b"\r\n\r\n"].concat();
    strict::body(&body, 0, strict::Length::Chunked).is_ok_and(|read| read.end == body.len())
}

/// A line that a request head may hold, and none that says anything about framing, routing or the client.
fn chunk_trailer_is_fine(line: &[u8]) -> bool {
    let head = [b"GET / HTTP/1.1\r\nHost: x\r\n", line, b"\r\n\r\n"].concat();
    let Some((head, _)) = read(&head) else { return false };
    let name = head.pair(head.lines().last().expect("the line")).0.to_ascii_lowercase();
    let field = head.lines().last().expect("the line").field;
    let forbidden = ["content-length", "transfer-encoding", "host", "trailer", "expect"];
    let dashed: Vec<u8> = name.iter().map(|&byte| if byte == b'_' { b'-' } else { byte }).collect();
    !forbidden.iter().any(|known| known.as_bytes() == dashed)
        && !field.is_hop_by_hop()
        && !HeaderField::classify(&dashed).is_hop_by_hop()
        && !field.is_about_client()
}

fn line<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Verdict> {
    let Some(feed) = rest.iter().position(|&byte| byte == b'\n') else { return Err(Verdict::Partial) };
    if feed == 0 || rest[feed - 1] != b'\r' {
        return Err(Verdict::Wrong);
    }
    let line = &rest[..feed - 1];
    *rest = &rest[feed + 1..];
    Ok(line)
}

#[test]
fn the_other_decoder_knows_right_from_wrong() {
    let done = |content: &str, trailers: &str| Verdict::Done {
        content: content.into(),
        trailers: trailers.into(),
        rest: b"x".to_vec(),
    };
    assert_eq!(decode(b"3\r\nabc\r\n0\r\nA: b\r\n\r\nx"), done("abc", "A: b\r\n"));
    assert_eq!(decode(b"3\r\nab"), Verdict::Partial);
    assert_eq!(decode(b"3\nabc"), Verdict::Wrong);
    assert_eq!(Chunks::default().scan(&mut b"zz\r\n".to_vec(), false), Err(chunk::Malformed));
    assert_eq!(framing::request(&Head::request("GET", "/", "x")), Ok(Framing::None));
}
