//! Lists of lines, made up.

use evenkeel::proxy::http::h2::hpack::Pseudo as Ours;
use fuzz_cases::Numbers;
use h2::frame::Pseudo;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};

/// Name and value.
pub(crate) type Line = (Vec<u8>, Vec<u8>);

/// Names of the static table and others; none that HTTP/2 bars.
const NAMES: &[&str] = &[
    "accept",
    "accept-encoding",
    "accept-language",
    "age",
    "authorization",
    "cache-control",
    "content-length",
    "content-type",
    "cookie",
    "cookie",
    "date",
    "etag",
    "host",
    "location",
    "proxy-authorization",
    "set-cookie",
    "user-agent",
    "via",
    "www-authenticate",
    "a",
    "x-request-id",
    "x-request-id-of-the-one-before",
    "grpc-status",
    "!#$%&'*+-.^_`|~09",
];
const VALUES: &[&str] =
    &["", "0", "a", "gzip, deflate", "no-cache", "text/html; charset=utf-8", "x=1; y=2", "~{}|^"];
const PATHS: &[&str] = &["/", "/index.html", "/a", "/a?b=c", "/%7Ea//b;c?d#"];
/// What a head begins with.
pub(crate) enum Start {
    Request(Method, Uri),
    Answer(StatusCode),
    Trailers,
}

pub(crate) struct List {
    pub(crate) start: Start,
    pub(crate) lines: Vec<Line>,
    sensitive: usize,
}

impl List {
    pub(crate) fn any(numbers: &mut Numbers) -> List {
        let start = match numbers.next(8) {
            0..4 => {
                let method = numbers.one_of(&["GET", "POST", "HEAD", "PURGE"]).as_bytes();
                let authority = numbers.one_of(&["a.example", "b.example:8080", "[::1]:443"]);
                let (scheme, path) = (numbers.one_of(&["http", "https"]), numbers.one_of(PATHS));
                let uri = format!("{scheme}://{authority}{path}").parse().expect("a URI");
                Start::Request(Method::from_bytes(method).expect("a method"), uri)
            }
            4..7 => {
                let status = *numbers.one_of(&[200, 204, 206, 304, 400, 404, 500, 100, 302, 999]);
                Start::Answer(StatusCode::from_u16(status).expect("a status"))
            }
            _ => Start::Trailers,
        };
        let most = if numbers.one_in(50) { 300 } else { 12 };
        let count = numbers.next(most);
        let lines = (0..count)
            .map(|_| match numbers.one_in(20) {
                true => (format!("x-{}", numbers.next(200)).into_bytes(), value(numbers)),
                false => (often(numbers, NAMES).as_bytes().to_vec(), value(numbers)),
            })
            .collect();
        List { start, lines, sensitive: numbers.next(8) }
    }

    pub(crate) fn pseudo(&self) -> Pseudo {
        match &self.start {
            Start::Request(method, uri) => Pseudo::request(method.clone(), uri.clone(), None),
            Start::Answer(status) => Pseudo::response(*status),
            Start::Trailers => Pseudo::default(),
        }
    }

    pub(crate) fn pseudo_lines(&self) -> Vec<Line> {
        let line = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        match &self.start {
            Start::Request(method, uri) => vec![
                line(":method", method.as_str()),
                line(":scheme", uri.scheme_str().unwrap_or_default()),
                line(":authority", uri.authority().map_or("", |authority| authority.as_str())),
                line(":path", uri.path_and_query().map_or("", |path| path.as_str())),
            ],
            Start::Answer(status) => vec![line(":status", status.as_str())],
            Start::Trailers => Vec::new(),
        }
    }

    /// Some of them are never to be indexed.
    pub(crate) fn fields(&self) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (at, (name, value)) in self.lines.iter().enumerate() {
            let mut value = HeaderValue::from_bytes(value).expect("a value");
            value.set_sensitive(at % 8 == self.sensitive);
            map.append(HeaderName::from_bytes(name).expect("a name"), value);
        }
        map
    }
}

/// One of these, of which the first ones come most often.
fn often<'a>(numbers: &mut Numbers, all: &[&'a str]) -> &'a str {
    all[numbers.next(all.len()).min(numbers.next(all.len()))]
}

/// A value that comes again, or one of any bytes, or a long one that leaves room for few others.
fn value(numbers: &mut Numbers) -> Vec<u8> {
    let bytes = |numbers: &mut Numbers, most: usize, from: usize| -> Vec<u8> {
        let length = numbers.next(most);
        (0..length).map(|_| (from + numbers.next(0x7f - 0x21)) as u8).collect()
    };
    match numbers.next(64) {
        0..44 => often(numbers, VALUES).as_bytes().to_vec(),
        44..54 => bytes(numbers, 40, 0x21),
        54..57 => bytes(numbers, 40, 0x80),
        57..60 => [bytes(numbers, 9, 0x90), b"a \t b".to_vec(), bytes(numbers, 9, 0x80 + 0x22)].concat(),
        60 if numbers.one_in(8) => bytes(numbers, 20_000, 0x21),
        60..62 => vec![b'a' + numbers.next(3) as u8; 100 * numbers.next(40)],
        _ => vec![b'a' + numbers.next(3) as u8; 10 * numbers.next(40)],
    }
}

/// The pseudo-header field of this name.
pub(crate) fn pseudo_of(name: &[u8]) -> Ours {
    match name {
        b":method" => Ours::Method,
        b":scheme" => Ours::Scheme,
        b":authority" => Ours::Authority,
        b":path" => Ours::Path,
        b":status" => Ours::Status,
        other => panic!("{}", other.escape_ascii()),
    }
}

/// What a line counts (RFC 7541 §4.1).
pub(crate) fn counted((name, value): &Line) -> usize {
    name.len() + value.len() + 32
}
