//! What goes on is what came: a written head reads as the parsed one, without what must stay behind.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use evenkeel::config::model::Forwarded;
use evenkeel::message::{ClientAddress, Framing, Head, Version};
use evenkeel::proxy::http::h1::write::{self, About, Host, Persistence};

use crate::ours::{self, ADDED, HEADERS, Side, Whole};
use crate::shown::{fields, shown};
use crate::strict::{self, Field};

/// Used when a request has no authority.
pub(crate) const HOST: &str = "backend:1";

/// What a backend is told about a client by default.
pub(crate) static ABOUT: LazyLock<About<'static>> = LazyLock::new(|| About {
    kind: Forwarded::XForwarded,
    client: Some(&CLIENT),
    trusted: false,
    real_ip: None,
    scheme: "http",
    certificate: b"",
    id: 0xab,
    retry: 0,
    trace: None,
});
static CLIENT: LazyLock<ClientAddress> =
    LazyLock::new(|| ClientAddress::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 4711));
static OTHER: LazyLock<ClientAddress> =
    LazyLock::new(|| ClientAddress::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 4711));

/// Most lines that the head of an answer is read with.
const ANSWER_HEADERS: usize = 512;
/// Fields of one connection (RFC 9110 §7.6.1, and those of custom).
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "upgrade",
    "http2-settings",
];
/// Fields that speak about the client, in either spelling.
const ABOUT_CLIENT: &[&str] = &[
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-real-ip",
    "client-cert",
    "client-cert-chain",
    "x-forwarded-client-cert",
    "x-request-id",
];
/// Fields that a Connection line can't take away.
const PROTECTED: &[&str] = &["host", "content-length", "transfer-encoding", "via", "trailer", "date"];

/// A head, parsed and written. The first byte says whose and how: bits 0 and 1 choose the headers about the client,
/// bit 2 trusts it, bits 3 and 4 are its address, bit 5 is an answer, bit 6 an upgrade (or a HEAD), bit 7 a client
/// certificate.
pub fn head_writer(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let bit = |number: u32| choice >> number & 1 == 1;
    if bit(5) {
        answer(bytes, bit(6), bit(0));
        return;
    }
    let kind = match choice & 3 {
        0 | 3 => Forwarded::XForwarded,
        1 => Forwarded::Rfc7239,
        _ => Forwarded::Off,
    };
    let client = match choice >> 3 & 3 {
        0 | 3 => ABOUT.client,
        1 => Some(&*OTHER),
        _ => None,
    };
    let certificate = if bit(7) { &b"Client-Cert: :MAA=:\r\n"[..] } else { b"" };
    request(
        bytes,
        &About { kind, client, certificate, trusted: bit(2), ..*ABOUT },
        bit(6).then_some(&b"websocket"[..]),
    );
}

/// The head that a backend gets.
pub(crate) fn sent_request(
    head: &Head,
    framing: Framing,
    upgrade: Option<&[u8]>,
    about: &About<'_>,
) -> Vec<u8> {
    let mut out = Vec::new();
    write::request(&mut out, head, framing, upgrade, about, None, Host::Pass { missing: HOST });
    out
}

/// The head that a client gets.
pub(crate) fn sent_answer(head: &Head, framing: Framing, persistence: Persistence) -> Vec<u8> {
    let mut out = Vec::new();
    write::answer(&mut out, head, framing, persistence, b"Thu, 01 Jan 1970 00:00:00 GMT");
    out
}

/// A head with its body behind it, chunks as they came if `raw`.
pub(crate) fn with_body(mut out: Vec<u8>, framing: Framing, body: &Whole, raw: bool) -> Vec<u8> {
    if framing != Framing::Chunked {
        out.extend_from_slice(&body.content);
        return out;
    }
    if raw {
        out.extend_from_slice(&body.raw);
    } else if !body.content.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", body.content.len()).as_bytes());
        out.extend_from_slice(&body.content);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n");
    out.extend_from_slice(&body.trailers);
    out.extend_from_slice(b"\r\n");
    out
}

fn request(bytes: &[u8], about: &About<'_>, upgrade: Option<&[u8]>) {
    let Some(Ok((head, framing, _))) = ours::head(bytes, Side::Request, HEADERS) else { return };
    if head.method() == b"CONNECT" {
        return;
    }
    let out = sent_request(&head, framing, upgrade, about);
    let again = match ours::head(&out, Side::Request, HEADERS + ADDED) {
        Some(Ok((again, again_framing, length))) => {
            assert_eq!((again_framing, length), (framing, out.len()), "{}", shown(&out));
            again
        }
        other => panic!("{other:?}: {}", shown(&out)),
    };
    let theirs = strict::request(&out, 0).unwrap_or_else(|stop| panic!("{stop:?}: {}", shown(&out)));
    assert_eq!((theirs.end, &theirs.fields), (out.len(), &fields(&again)));
    assert_eq!((head.method(), Version::Http11), (again.method(), again.version));

    // First Host if it is written anew, then what came and may go on, then what is ours.
    let absolute = !matches!(head.target(), [b'/' | b'*', ..]);
    let rewritten = absolute || head.named("host").is_none();
    let mut kept = end_to_end(&fields(&head), |name| {
        let about_client = ABOUT_CLIENT.contains(&dashed(name).as_str());
        let merged = match about.kind {
            Forwarded::XForwarded => Some("x-forwarded-for"),
            Forwarded::Rfc7239 => Some("forwarded"),
            Forwarded::Off => None,
        };
        !(rewritten && name == "host" || about_client && (!about.trusted || merged == Some(name)))
    });
    if rewritten {
        let authority = if head.authority().is_empty() { HOST.as_bytes() } else { head.authority() };
        kept.insert(0, (b"Host".to_vec(), authority.to_vec()));
    }
    let (sent, added) = theirs.fields.split_at(kept.len().min(theirs.fields.len()));
    assert_eq!(sent, kept, "{}", shown(&out));
    let ours = ["connection", "upgrade", "te", "via", "forwarded", "x-forwarded-for", "x-forwarded-proto"];
    for (name, _) in added {
        let name = lower(name);
        assert!(
            ours.contains(&name.as_str())
                || ["x-forwarded-host", "x-request-id", "client-cert"].contains(&name.as_str()),
            "`{name}` was added: {}",
            shown(&out)
        );
    }
    // A request without an authority has one from now on, and X-Forwarded-Host with it.
    if !about.trusted && !head.authority().is_empty() {
        // Nothing is left to be taken away; only Via tells that it passed twice.
        let twice = sent_request(&again, framing, upgrade, about);
        assert_eq!(sorted_without_via(&twice), sorted_without_via(&out));
    }
}

fn answer(bytes: &[u8], to_head: bool, to_old_client: bool) {
    let side = Side::Answer { to_head };
    let Some(Ok((head, framing, _))) = ours::head(bytes, side, HEADERS) else { return };
    if head.lines().len() + ADDED > ANSWER_HEADERS {
        return;
    }
    // As the edge does for an HTTP/1.0 client.
    let chunked = head.named("transfer-encoding").is_some();
    let framing = match framing {
        Framing::Chunked if to_old_client => Framing::UntilClose,
        Framing::None if to_old_client && chunked => Framing::UntilClose,
        other => other,
    };
    let persistence = match framing {
        Framing::UntilClose => Persistence::Close,
        Framing::None | Framing::Length(_) | Framing::Chunked if to_old_client => Persistence::KeepAlive,
        Framing::None | Framing::Length(_) | Framing::Chunked => Persistence::Implied,
    };
    let out = sent_answer(&head, framing, persistence);
    let again = match ours::head(&out, side, HEADERS) {
        Some(Ok((again, again_framing, length))) => {
            let same =
                again_framing == framing || again_framing == Framing::None && framing == Framing::UntilClose;
            assert!(same && length == out.len(), "{framing:?}, {again_framing:?}: {}", shown(&out));
            again
        }
        other => panic!("{other:?}: {}", shown(&out)),
    };
    let theirs = strict::answer(&out, 0, to_head).unwrap_or_else(|stop| panic!("{stop:?}: {}", shown(&out)));
    assert_eq!((theirs.end, &theirs.fields), (out.len(), &fields(&again)));
    assert_eq!((head.status, Version::Http11), (again.status, again.version));
    assert!(head.reason().is_empty() || head.reason() == again.reason());

    let no_length = head.status < 200 || head.status == 204;
    let kept = end_to_end(&fields(&head), |name| match name {
        "transfer-encoding" => !no_length && framing != Framing::UntilClose,
        "content-length" => !no_length,
        _ => true,
    });
    let (sent, added) = theirs.fields.split_at(kept.len().min(theirs.fields.len()));
    assert_eq!(sent, kept, "{}", shown(&out));
    assert!(
        added.iter().all(|(name, _)| ["connection", "date"].contains(&lower(name).as_str())),
        "{}",
        shown(&out)
    );
    // Our own `Connection: close` would nominate a field of that name.
    if head.named("close").is_none() {
        let twice = sent_answer(&again, framing, persistence);
        assert_eq!(sorted_without_via(&twice), sorted_without_via(&out), "written again it is the same");
    }
}

/// The fields that go on: none of one connection, none that a Connection line names, and what `keep` says of the
/// rest, by their name in lower case.
fn end_to_end(fields: &[Field], keep: impl Fn(&str) -> bool) -> Vec<Field> {
    let connection = fields.iter().filter(|(name, _)| lower(name) == "connection");
    let nominated: Vec<String> = connection
        .flat_map(|(_, value)| value.split(|&byte| byte == b','))
        .map(|item| lower(item.trim_ascii()))
        .filter(|name| !PROTECTED.contains(&name.as_str()) && !ABOUT_CLIENT.contains(&dashed(name).as_str()))
        .collect();
    let goes_on = |name: &str| {
        !HOP_BY_HOP.contains(&name) && !nominated.iter().any(|nominated| nominated == name) && keep(name)
    };
    fields.iter().filter(|(name, _)| goes_on(&lower(name))).cloned().collect()
}

/// In lower case, one character for each byte.
fn lower(name: &[u8]) -> String {
    name.iter().map(|&byte| char::from(byte).to_ascii_lowercase()).collect()
}

/// As a backend reads a name that takes `_` for `-`.
fn dashed(name: &str) -> String {
    name.replace('_', "-")
}

/// Lines for comparison: what is ours stands behind the rest, and is the rest when it comes again.
fn sorted_without_via(head: &[u8]) -> Vec<String> {
    let lines = head.split_inclusive(|&byte| byte == b'\n');
    let mut lines: Vec<String> = lines.filter(|line| !lower(line).starts_with("via:")).map(shown).collect();
    lines.sort();
    lines
}
