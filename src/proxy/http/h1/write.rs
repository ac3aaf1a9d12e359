//! Heads on their way out: runs of untouched lines are copied, the rest is left out or added.
//!
//! Both directions follow RFC 9110 §7.6: fields of one connection, and those that its Connection lines
//! nominate, stay behind. A nomination of a field that frames or routes the message, or that a proxy adds, is
//! ignored: otherwise a client could strip what it must not.

use std::fmt::Write as _;
use std::net::IpAddr;

use crate::config::model::Forwarded;
use crate::message::{Field, Framing, Head, Line, Version, status, tokens};

/// What a backend is told about the client.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// By which headers.
    pub kind: Forwarded,
    /// The peer's address; `None` on a unix socket.
    pub client: Option<IpAddr>,
    /// The peer may speak for the client: what it sent is kept.
    pub trusted: bool,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// Header lines about the client's verified certificate; empty: there are none.
    pub certificate: &'a [u8],
    /// Number of the request.
    pub id: u128,
}

/// What an answer's Connection line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// Nothing: HTTP/1.1 stays open.
    Implied,
    /// `keep-alive`, for HTTP/1.0 clients.
    KeepAlive,
    /// `close`.
    Close,
    /// `upgrade`, with the protocol beside.
    Upgrade,
}

/// Appends a request head for a backend. `upgrade`: the protocol to ask for. `host`: used when the request has
/// no authority at all (HTTP/1.0).
pub fn request(
    out: &mut Vec<u8>,
    head: &Head,
    framing: Framing,
    upgrade: Option<&[u8]>,
    about: &About<'_>,
    host: &str,
) {
    out.extend_from_slice(head.method());
    out.push(b' ');
    match head.path().first() {
        Some(b'/' | b'*') => {}
        // RFC 9112 §3.2.4: OPTIONS of an authority alone asks about the server.
        None if head.method() == b"OPTIONS" => out.push(b'*'),
        Some(_) | None => out.push(b'/'),
    }
    out.extend_from_slice(head.path());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    // An absolute target overrides Host (RFC 9112 §3.2.2), so the line is written anew; Host stays first.
    let absolute = head.target().first().is_some_and(|&byte| byte != b'/' && byte != b'*');
    let authority = if head.authority().is_empty() { host.as_bytes() } else { head.authority() };
    let rewrite_host = absolute || head.value(Field::Host).is_none();
    if rewrite_host {
        line(out, b"Host", authority);
    }
    let strict = head.has_hop_by_hop();
    let about_client = head.has_about_client();
    copy_runs(out, head, |item| {
        (strict && (item.field.is_hop_by_hop() || is_nominated(head, item)))
            || (rewrite_host && item.field == Field::Host)
            || (about_client
                && item.field.is_about_client()
                && !(about.trusted && is_kept(item.field, about)))
    });
    add_framing(out, head, framing);
    if let Some(protocol) = upgrade {
        line(out, b"Connection", b"Upgrade");
        line(out, b"Upgrade", protocol);
    } else if strict && head.lists(Field::Te, b"trailers") {
        line(out, b"TE", b"trailers");
        line(out, b"Connection", b"TE");
    }
    out.extend_from_slice(if head.version == Version::Http10 {
        b"Via: 1.0 evenkeel\r\n"
    } else {
        b"Via: 1.1 evenkeel\r\n"
    });
    add_about(out, head, about);
    out.extend_from_slice(b"\r\n");
}

/// Appends an answer's head for a client. `date`: written when the answer has none.
pub fn answer(out: &mut Vec<u8>, head: &Head, framing: Framing, persistence: Persistence, date: &[u8]) {
    out.extend_from_slice(b"HTTP/1.1 ");
    push_number(out, u64::from(head.status));
    out.push(b' ');
    let reason = head.reason();
    out.extend_from_slice(if reason.is_empty() { status::reason(head.status).as_bytes() } else { reason });
    out.extend_from_slice(b"\r\n");
    let strict = head.has_hop_by_hop();
    let unchunk = framing == Framing::UntilClose;
    let no_length = head.status < 200 || head.status == 204;
    copy_runs(out, head, |item| {
        (strict && (item.field.is_hop_by_hop() || is_nominated(head, item)))
            || (unchunk && item.field == Field::TransferEncoding)
            // RFC 9110 §8.6: neither may a 1xx or 204 carry.
            || (no_length && matches!(item.field, Field::ContentLength | Field::TransferEncoding))
    });
    add_framing(out, head, framing);
    match persistence {
        Persistence::Implied => {}
        Persistence::KeepAlive => line(out, b"Connection", b"keep-alive"),
        Persistence::Close => line(out, b"Connection", b"close"),
        Persistence::Upgrade => {
            line(out, b"Connection", b"Upgrade");
            line(out, b"Upgrade", head.value(Field::Upgrade).unwrap_or_default());
        }
    }
    // RFC 9110 §6.6.1: whoever receives an answer without Date and has a clock adds one.
    if head.status >= 200 && head.value(Field::Date).is_none() {
        line(out, b"Date", date);
    }
    out.extend_from_slice(b"\r\n");
}

/// Copies every line for which `leave_out` says no, run by run.
fn copy_runs(out: &mut Vec<u8>, head: &Head, leave_out: impl Fn(&Line) -> bool) {
    let lines = head.lines();
    let mut run: Option<crate::message::Span> = None;
    for item in lines {
        if leave_out(item) {
            if let Some(span) = run.take() {
                out.extend_from_slice(head.at(span));
            }
        } else {
            match &mut run {
                Some(span) => span.end = item.whole.end,
                None => run = Some(item.whole),
            }
        }
    }
    if let Some(span) = run {
        out.extend_from_slice(head.at(span));
    }
}

/// Whether a Connection line names this field. All Connection lines count together.
fn is_nominated(head: &Head, item: &Line) -> bool {
    let protected = matches!(
        item.field,
        Field::Host
            | Field::ContentLength
            | Field::TransferEncoding
            | Field::Via
            | Field::Trailer
            | Field::Date
    );
    if protected || item.field.is_about_client() {
        return false;
    }
    let name = head.at(item.name);
    head.values(Field::Connection).flat_map(tokens).any(|nominated| nominated.eq_ignore_ascii_case(name))
}

/// Of a trusted peer's fields: those that stand as they are. The rest is merged with ours in `add_about`.
fn is_kept(field: Field, about: &About<'_>) -> bool {
    match about.kind {
        Forwarded::XForwarded => field != Field::XForwardedFor,
        Forwarded::Rfc7239 => field != Field::Forwarded,
        Forwarded::Off => true,
    }
}

fn add_framing(out: &mut Vec<u8>, head: &Head, framing: Framing) {
    match framing {
        Framing::Length(length) if head.value(Field::ContentLength).is_none() => {
            out.extend_from_slice(b"Content-Length: ");
            push_number(out, length);
            out.extend_from_slice(b"\r\n");
        }
        Framing::Chunked if head.value(Field::TransferEncoding).is_none() => {
            line(out, b"Transfer-Encoding", b"chunked");
        }
        Framing::Length(_) | Framing::Chunked | Framing::None | Framing::UntilClose => {}
    }
}

fn add_about(out: &mut Vec<u8>, head: &Head, about: &About<'_>) {
    let has = |field| about.trusted && head.value(field).is_some();
    match about.kind {
        Forwarded::XForwarded => {
            add_merged(out, b"X-Forwarded-For", head, Field::XForwardedFor, about, |text, address| {
                let _ = write!(text, "{address}");
            });
            if !has(Field::XForwardedProto) {
                line(out, b"X-Forwarded-Proto", about.scheme.as_bytes());
            }
            if !has(Field::XForwardedHost) && !head.authority().is_empty() {
                line(out, b"X-Forwarded-Host", head.authority());
            }
        }
        Forwarded::Rfc7239 => {
            add_merged(out, b"Forwarded", head, Field::Forwarded, about, |text, address| {
                let _ = match address {
                    IpAddr::V4(v4) => write!(text, "for={v4};proto={}", about.scheme),
                    IpAddr::V6(v6) => write!(text, "for=\"[{v6}]\";proto={}", about.scheme),
                };
                if !head.authority().is_empty() {
                    // A validated authority holds neither quotes nor backslashes.
                    let _ = write!(text, ";host=\"{}\"", String::from_utf8_lossy(head.authority()));
                }
            });
        }
        Forwarded::Off => {}
    }
    if !has(Field::ClientCert) && !has(Field::XForwardedClientCert) {
        out.extend_from_slice(about.certificate);
    }
    if !has(Field::XRequestId) {
        out.extend_from_slice(b"X-Request-Id: ");
        push_id(out, about.id);
        out.extend_from_slice(b"\r\n");
    }
}

/// One line: what a trusted peer said, then what we see.
fn add_merged(
    out: &mut Vec<u8>,
    name: &[u8],
    head: &Head,
    field: Field,
    about: &About<'_>,
    ours: impl FnOnce(&mut Text<'_>, IpAddr),
) {
    let start = out.len();
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    let value = out.len();
    if about.trusted {
        for theirs in head.values(field).filter(|theirs| !theirs.is_empty()) {
            if out.len() > value {
                out.extend_from_slice(b", ");
            }
            out.extend_from_slice(theirs);
        }
    }
    if let Some(address) = about.client {
        if out.len() > value {
            out.extend_from_slice(b", ");
        }
        ours(&mut Text(out), address.to_canonical());
    }
    if out.len() == value {
        out.truncate(start);
    } else {
        out.extend_from_slice(b"\r\n");
    }
}

/// Lets `write!` append to bytes.
struct Text<'a>(&'a mut Vec<u8>);

impl std::fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

fn line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends a decimal number.
pub fn push_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a request's number as 32 hex digits.
pub fn push_id(out: &mut Vec<u8>, id: u128) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.extend(
        id.to_be_bytes().iter().flat_map(|&byte| [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: About<'_> = About {
        kind: Forwarded::XForwarded,
        client: Some(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7))),
        trusted: false,
        scheme: "http",
        certificate: b"",
        id: 0xab,
    };

    fn written(text: &str, about: &About<'_>, upgrade: Option<&[u8]>) -> String {
        let mut head = Head::new();
        super::super::parse::request(text.as_bytes(), 100, &mut head).expect("valid");
        let framing = super::super::framing::request(&head).expect("valid");
        let mut out = Vec::new();
        request(&mut out, &head, framing, upgrade, about, "b:1");
        String::from_utf8(out).expect("ascii")
    }

    const TAIL: &str = "Via: 1.1 evenkeel\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: x\r\nX-Request-Id: 000000000000000000000000000000ab\r\n\r\n";

    #[test]
    fn untouched_lines_are_copied_as_they_are() {
        let out = written("GET /a HTTP/1.1\r\nHost:  x\r\naCCept: */* \r\n\r\n", &ABOUT, None);
        assert_eq!(out, format!("GET /a HTTP/1.1\r\nHost:  x\r\naCCept: */* \r\n{TAIL}"));
    }

    #[test]
    fn connection_fields_and_nominated_ones_stay_behind() {
        let out = written(
            "POST / HTTP/1.1\r\nConnection: x-a\r\nHost: x\r\nX-A: 1\r\nKeep: 1\r\nX-B: 2\r\nConnection: X-B, host, content-length, Via\r\n\
             Keep-Alive: 5\r\nProxy-Connection: a\r\nUpgrade: h2c\r\nHTTP2-Settings: a\r\nTE: gzip\r\nContent-Length: 3\r\n\r\n",
            &ABOUT,
            None,
        );
        assert_eq!(out, format!("POST / HTTP/1.1\r\nHost: x\r\nKeep: 1\r\nContent-Length: 3\r\n{TAIL}"));
    }

    #[test]
    fn what_a_client_says_about_itself_is_replaced_in_every_spelling() {
        let text = "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1\r\nX_Forwarded_Proto: 2\r\nForwarded: for=3\r\nX-Real-IP: 4\r\nx-request_id: 5\r\n\
                    X-Request-Id: 6\r\nX-Forwarded-Host: 7\r\nConnection: X-Forwarded-For\r\n\r\n";
        assert_eq!(written(text, &ABOUT, None), format!("GET / HTTP/1.1\r\nHost: x\r\n{TAIL}"));
    }

    #[test]
    fn a_trusted_peer_is_believed_and_joined() {
        let text = "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 2.2.2.2\r\nX-Forwarded-Proto: https\r\nX-Request-Id: q\r\n\r\n";
        let out = written(text, &About { trusted: true, ..ABOUT }, None);
        assert!(out.contains("X-Forwarded-For: 1.1.1.1, 2.2.2.2, 192.0.2.7\r\n"), "{out}");
        assert!(out.contains("X-Forwarded-Proto: https\r\n") && !out.contains("Proto: http\r\n"), "{out}");
        assert_eq!(out.matches("X-Request-Id").count(), 1, "{out}");
    }

    #[test]
    fn rfc_7239_quotes_v6() {
        let client = Some("2001:db8::1".parse().expect("an address"));
        let out = written(
            "GET / HTTP/1.1\r\nHost: x:8\r\n\r\n",
            &About { kind: Forwarded::Rfc7239, client, ..ABOUT },
            None,
        );
        assert!(out.contains("\r\nForwarded: for=\"[2001:db8::1]\";proto=http;host=\"x:8\"\r\n"), "{out}");
        assert!(!out.contains("X-Forwarded"), "{out}");
    }

    #[test]
    fn an_absolute_target_becomes_host() {
        let out = written("GET http://a?q HTTP/1.1\r\nHost: b\r\n\r\n", &ABOUT, None);
        assert!(out.starts_with("GET /?q HTTP/1.1\r\nHost: a\r\nVia"), "{out}");
        let out = written("GET / HTTP/1.0\r\n\r\n", &ABOUT, None);
        assert!(out.starts_with("GET / HTTP/1.1\r\nHost: b:1\r\nVia: 1.0"), "{out}");
    }

    #[test]
    fn upgrades_and_trailers_are_asked_for_anew() {
        let text = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, TE\r\nUpgrade: websocket, h2c\r\nTE: trailers, gzip\r\n\r\n";
        assert!(
            written(text, &ABOUT, Some(b"websocket"))
                .contains("x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nVia")
        );
        assert!(written(text, &ABOUT, None).contains("x\r\nTE: trailers\r\nConnection: TE\r\nVia"));
    }

    #[test]
    fn answers_get_date_framing_and_persistence() {
        let mut head = Head::answer(200);
        head.push(b"Transfer-Encoding", b"chunked");
        head.push(b"Connection", b"X-Hop");
        head.push(b"X-Hop", b"1");
        head.push(b"X-End", b"2");
        let mut out = Vec::new();
        answer(&mut out, &head, Framing::UntilClose, Persistence::Close, b"D");
        assert_eq!(out, b"HTTP/1.1 200 OK\r\nX-End: 2\r\nConnection: close\r\nDate: D\r\n\r\n");
        out.clear();
        answer(&mut out, &Head::answer(299), Framing::Length(7), Persistence::Implied, b"D");
        assert_eq!(out, b"HTTP/1.1 299 \r\nContent-Length: 7\r\nDate: D\r\n\r\n");
    }
}
