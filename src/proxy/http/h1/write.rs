//! Heads on their way out: runs of untouched lines are copied, the rest is left out or added.
//!
//! Both directions follow RFC 9110 §7.6: fields of one connection, and those that its Connection lines
//! nominate, stay behind. A nomination of a field that frames or routes the message, or that a proxy adds, is
//! ignored: otherwise a client could strip what it must not.

use std::net::IpAddr;

use crate::config::model::Forwarded;
use crate::message::{
    ClientAddress, Fields, Framing, Head, HeaderField, Span, TraceContext, Version, status,
};

use super::digits::{push_number, push_peer};
use super::nominated::Nominated;
use crate::telemetry::access_log::id_digits;

/// Most bytes that a head grows by, but for a certificate and a long name of a host.
const ADDED: usize = 400;

/// Fields that say which trace a request belongs to.
const TRACE: Fields = Fields::of(&[HeaderField::TraceParent, HeaderField::TraceState]);

/// What a backend is told about the client.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// By which headers.
    pub kind: Forwarded,
    /// The peer's address; `None` on a unix socket.
    pub client: Option<&'a ClientAddress>,
    /// The peer may speak for the client: what it sent is kept.
    pub trusted: bool,
    /// The client's address for `X-Real-IP`; `None`: nothing is added.
    pub real_ip: Option<IpAddr>,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// Header lines about the client's verified certificate; empty: there are none.
    pub certificate: &'a [u8],
    /// Number of the request.
    pub id: u128,
    /// Which retry it is; 0: the first attempt, of which nothing is said.
    pub retry: u8,
    /// The trace that it belongs to, and its span; `None`: what the client says about that goes on.
    pub trace: Option<TraceContext>,
}

/// What a backend gets as Host.
#[derive(Clone, Copy, Debug)]
pub enum Host<'a> {
    /// What the client sent.
    Pass {
        /// For a request without any authority (HTTP/1.0).
        missing: &'a str,
    },
    /// This, whatever the client sent.
    Write(&'a str),
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

/// Appends a request head for a backend. `upgrade`: the protocol to ask for. `span`: where it is traced, what the backend's own spans are
/// below; `None`: the request's.
pub fn request(
    out: &mut Vec<u8>,
    head: &Head,
    framing: Framing,
    upgrade: Option<&[u8]>,
    about: &About<'_>,
    span: Option<u64>,
    host: Host<'_>,
) {
    out.reserve(head.len() + ADDED + about.certificate.len());
    // An absolute target overrides Host (RFC 9112 §3.2.2), so the line is written anew; Host stays first.
    let plain = matches!(head.target().first(), Some(b'/' | b'*'));
    let rewrite_host = !plain || !head.has(HeaderField::Host) || matches!(host, Host::Write(_));
    let is_retry = about.retry > 0;
    if rewrite_host
        || head.version == Version::Http10
        || head.has_hop_by_hop()
        || head.has_about_client()
        || is_retry
        || about.trace.is_some() && head.fields().meets(TRACE)
    {
        copy_changed(out, head, about, if rewrite_host { Some(host) } else { None });
    } else {
        out.extend_from_slice(head.at(head.start_and_lines()));
    }
    add_framing(out, head, framing);
    if is_retry {
        add_retry(out, about.retry);
    }
    if let Some(protocol) = upgrade {
        line(out, b"Connection: ", b"Upgrade");
        line(out, b"Upgrade: ", protocol);
    } else if head.has(HeaderField::Te) && head.lists(HeaderField::Te, b"trailers") {
        line(out, b"TE: ", b"trailers");
        line(out, b"Connection: ", b"TE");
    }
    if head.version == Version::Http11 {
        out.extend_from_slice(b"Via: 1.1 evenkeel\r\n");
    } else {
        add_other_via(out, head.version);
    }
    if about.trusted
        || about.real_ip.is_some()
        || about.kind != Forwarded::XForwarded
        || !about.certificate.is_empty()
    {
        add_about(out, head, about, span);
    } else {
        add_common_about(out, head, about, span);
    }
}

#[inline(never)]
fn add_other_via(out: &mut Vec<u8>, version: Version) {
    let via = if version == Version::Http10 { b"Via: 1.0 evenkeel\r\n" } else { b"Via: 2.0 evenkeel\r\n" };
    out.extend_from_slice(via);
}

/// A request's line and its fields, when they can't be copied in one piece. `host`: see [`request`]; `None`: Host goes on as
/// it came.
#[inline(never)]
fn copy_changed(out: &mut Vec<u8>, head: &Head, about: &About<'_>, host: Option<Host<'_>>) {
    let mut left_out = Fields::default();
    if head.has_hop_by_hop() {
        left_out = left_out.and(Fields::HOP_BY_HOP);
    }
    if host.is_some() {
        left_out = left_out.and(Fields::of(&[HeaderField::Host]));
    }
    if head.has_about_client() {
        let kept = if about.trusted { kept(about.kind) } else { Fields::default() };
        left_out = left_out.and(Fields::ABOUT_CLIENT.without(kept));
    }
    if about.retry > 0 {
        left_out = left_out.and(Fields::of(&[HeaderField::RetryAttempt]));
    }
    if let Some(trace) = &about.trace {
        // Of a parent that says nothing its vendors' words mean nothing either (§3.3.1.1).
        left_out =
            left_out.and(if trace.parent == 0 { TRACE } else { Fields::of(&[HeaderField::TraceParent]) });
    }
    let mut run = Span::default();
    if matches!(head.target().first(), Some(b'/' | b'*')) && head.version != Version::Http10 {
        run = head.start_line();
    } else {
        request_line(out, head);
    }
    if let Some(host) = host {
        out.extend_from_slice(head.at(std::mem::take(&mut run)));
        let authority = match host {
            Host::Write(host) => host.as_bytes(),
            Host::Pass { missing } if head.authority().is_empty() => missing.as_bytes(),
            Host::Pass { .. } => head.authority(),
        };
        line(out, b"Host: ", authority);
    }
    copy_runs(out, head, run, left_out);
}

/// A request line that goes on in another form than it came.
fn request_line(out: &mut Vec<u8>, head: &Head) {
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
}

/// Appends an answer's head for a client. `date`: written when the answer has none.
pub fn answer(out: &mut Vec<u8>, head: &Head, framing: Framing, persistence: Persistence, date: &[u8]) {
    out.reserve(head.len() + ADDED);
    let is_changed = head.has_hop_by_hop()
        || head.version == Version::Http10
        || head.reason().is_empty()
        || framing == Framing::UntilClose
        || head.status < 200
        || head.status == 204;
    if is_changed {
        copy_changed_answer(out, head, framing);
    } else {
        out.extend_from_slice(head.at(head.start_and_lines()));
    }
    add_framing(out, head, framing);
    match persistence {
        Persistence::Implied => {}
        Persistence::KeepAlive => line(out, b"Connection: ", b"keep-alive"),
        Persistence::Close => line(out, b"Connection: ", b"close"),
        Persistence::Upgrade => {
            line(out, b"Connection: ", b"Upgrade");
            line(out, b"Upgrade: ", head.value(HeaderField::Upgrade).unwrap_or_default());
        }
    }
    // RFC 9110 §6.6.1: whoever receives an answer without Date and has a clock adds one.
    if head.status >= 200 && !head.has(HeaderField::Date) {
        line(out, b"Date: ", date);
    }
    out.extend_from_slice(b"\r\n");
}

/// An answer's status line and its fields, when they can't be copied in one piece.
#[inline(never)]
fn copy_changed_answer(out: &mut Vec<u8>, head: &Head, framing: Framing) {
    let mut run = Span::default();
    if head.version == Version::Http11 && !head.reason().is_empty() {
        run = head.start_line();
    } else {
        out.extend_from_slice(b"HTTP/1.1 ");
        push_number(out, u64::from(head.status));
        out.push(b' ');
        let reason = head.reason();
        let customary = status::reason(head.status).as_bytes();
        out.extend_from_slice(if reason.is_empty() { customary } else { reason });
        out.extend_from_slice(b"\r\n");
    }
    let mut left_out = Fields::default();
    if head.has_hop_by_hop() {
        left_out = left_out.and(Fields::HOP_BY_HOP);
    }
    if framing == Framing::UntilClose {
        left_out = left_out.and(Fields::of(&[HeaderField::TransferEncoding]));
    }
    // RFC 9110 §8.6: neither may a 1xx or 204 carry.
    if head.status < 200 || head.status == 204 {
        left_out = left_out.and(Fields::of(&[HeaderField::ContentLength, HeaderField::TransferEncoding]));
    }
    copy_runs(out, head, run, left_out);
}

/// Copies every line but those left out, run by run. The first run goes on behind `run`.
fn copy_runs(out: &mut Vec<u8>, head: &Head, mut run: Span, left_out: Fields) {
    if !head.fields().meets(left_out.and(Fields::of(&[HeaderField::Connection]))) {
        // The common case: everything is one run.
        if let (Some(first), Some(last)) = (head.lines().first(), head.lines().last()) {
            let start = if run == Span::default() { first.whole().start } else { run.start };
            run = Span { start, end: last.whole().end };
        }
        return out.extend_from_slice(head.at(run));
    }
    let nominated = Nominated::by(head);
    for item in head.lines() {
        if left_out.contains(item.field) || nominated.holds(head, item) {
            out.extend_from_slice(head.at(std::mem::take(&mut run)));
        } else if run == Span::default() {
            run = item.whole();
        } else {
            run.end = item.whole().end;
        }
    }
    out.extend_from_slice(head.at(run));
}

/// Of a trusted peer's fields: those that stand as they are. The rest is merged with ours in `add_about`.
const fn kept(kind: Forwarded) -> Fields {
    match kind {
        Forwarded::XForwarded => Fields::ABOUT_CLIENT.without(Fields::of(&[HeaderField::XForwardedFor])),
        Forwarded::Rfc7239 => Fields::ABOUT_CLIENT.without(Fields::of(&[HeaderField::Forwarded])),
        Forwarded::Off => Fields::ABOUT_CLIENT,
    }
}

#[inline(always)]
fn add_framing(out: &mut Vec<u8>, head: &Head, framing: Framing) {
    match framing {
        Framing::Length(length) if !head.has(HeaderField::ContentLength) => {
            add_length(out, length);
        }
        Framing::Chunked if !head.has(HeaderField::TransferEncoding) => {
            line(out, b"Transfer-Encoding: ", b"chunked");
        }
        Framing::Length(_) | Framing::Chunked | Framing::None | Framing::UntilClose => {}
    }
}

#[inline(never)]
fn add_length(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"Content-Length: ");
    push_number(out, length);
    out.extend_from_slice(b"\r\n");
}

#[inline(never)]
fn add_retry(out: &mut Vec<u8>, retry: u8) {
    out.extend_from_slice(b"Retry-Attempt: ");
    push_number(out, u64::from(retry));
    out.extend_from_slice(b"\r\n");
}

/// What ends nearly every request: nothing that the client said about itself stands, and there is no certificate.
fn add_common_about(out: &mut Vec<u8>, head: &Head, about: &About<'_>, span: Option<u64>) {
    if let Some(client) = about.client {
        out.extend_from_slice(b"X-Forwarded-For: ");
        match client.ip_front() {
            Some((text, length)) => {
                // A copy of fixed size costs less than one of the right size.
                let end = out.len() + length;
                out.extend_from_slice(text);
                out.truncate(end);
            }
            None => push_peer(out, client.ip),
        }
        out.extend_from_slice(b"\r\n");
    }
    let authority = head.authority();
    match about.scheme {
        _ if authority.is_empty() => line(out, b"X-Forwarded-Proto: ", about.scheme.as_bytes()),
        "http" => line(out, b"X-Forwarded-Proto: http\r\nX-Forwarded-Host: ", authority),
        scheme => {
            line(out, b"X-Forwarded-Proto: ", scheme.as_bytes());
            line(out, b"X-Forwarded-Host: ", authority);
        }
    }
    add_numbers_and_end(out, about, span);
}

/// W3C Trace Context §3.2.
fn add_trace(out: &mut Vec<u8>, trace: &TraceContext, trace_id: &[u8; 32], span: Option<u64>) {
    let mut text = *b"traceparent: 00-0123456789abcdef0123456789abcdef-0123456789abcdef-00\r\n";
    text[16..48].copy_from_slice(trace_id);
    text[49..65].copy_from_slice(&id_digits(span.unwrap_or(trace.span).into())[16..]);
    // Of the flags three bits or fewer are known.
    text[67] = b'0' + (trace.flags & 7);
    out.extend_from_slice(&text);
}

/// The number of a request, its place in a trace, and the end of its head.
fn add_numbers_and_end(out: &mut Vec<u8>, about: &About<'_>, span: Option<u64>) {
    let id = id_digits(about.id);
    if let Some(trace) = &about.trace {
        // Mostly its number is that of a trace.
        let trace_id = if trace.trace == about.id { id } else { id_digits(trace.trace) };
        add_trace(out, trace, &trace_id, span);
    }
    let mut text = *b"X-Request-Id: 0123456789abcdef0123456789abcdef\r\n\r\n";
    text[14..46].copy_from_slice(&id);
    out.extend_from_slice(&text);
}

/// All that is said about the client and the request, merged with what a trusted peer said, and the end of the head.
fn add_about(out: &mut Vec<u8>, head: &Head, about: &About<'_>, span: Option<u64>) {
    let has = |field| about.trusted && head.has(field);
    match about.kind {
        Forwarded::XForwarded => {
            add_merged(out, b"X-Forwarded-For: ", head, HeaderField::XForwardedFor, about, push_peer);
            if !has(HeaderField::XForwardedProto) {
                line(out, b"X-Forwarded-Proto: ", about.scheme.as_bytes());
            }
            if !has(HeaderField::XForwardedHost) && !head.authority().is_empty() {
                line(out, b"X-Forwarded-Host: ", head.authority());
            }
        }
        Forwarded::Rfc7239 => {
            add_merged(out, b"Forwarded: ", head, HeaderField::Forwarded, about, |out, address| {
                let (before, behind): (&[u8], &[u8]) =
                    if address.to_canonical().is_ipv6() { (b"for=\"[", b"]\"") } else { (b"for=", b"") };
                out.extend_from_slice(before);
                push_peer(out, address);
                out.extend_from_slice(behind);
                out.extend_from_slice(b";proto=");
                out.extend_from_slice(about.scheme.as_bytes());
                if !head.authority().is_empty() {
                    // A validated authority holds neither quotes nor backslashes.
                    out.extend_from_slice(b";host=\"");
                    out.extend_from_slice(head.authority());
                    out.push(b'"');
                }
            });
        }
        Forwarded::Off => {}
    }
    if let Some(address) = about.real_ip.filter(|_| !has(HeaderField::XRealIp)) {
        out.extend_from_slice(b"X-Real-IP: ");
        push_peer(out, address);
        out.extend_from_slice(b"\r\n");
    }
    if !about.certificate.is_empty()
        && !has(HeaderField::ClientCert)
        && !has(HeaderField::XForwardedClientCert)
    {
        out.extend_from_slice(about.certificate);
    }
    if has(HeaderField::XRequestId) {
        if let Some(trace) = &about.trace {
            add_trace(out, trace, &id_digits(trace.trace), span);
        }
        out.extend_from_slice(b"\r\n");
    } else {
        add_numbers_and_end(out, about, span);
    }
}

/// One line: what a trusted peer said, then what we see.
fn add_merged(
    out: &mut Vec<u8>,
    name: &[u8],
    head: &Head,
    field: HeaderField,
    about: &About<'_>,
    ours: impl FnOnce(&mut Vec<u8>, IpAddr),
) {
    let start = out.len();
    out.extend_from_slice(name);
    let value = out.len();
    if about.trusted {
        for theirs in head.values(field).filter(|theirs| !theirs.is_empty()) {
            if out.len() > value {
                out.extend_from_slice(b", ");
            }
            out.extend_from_slice(theirs);
        }
    }
    if let Some(client) = about.client {
        if out.len() > value {
            out.extend_from_slice(b", ");
        }
        ours(out, client.ip);
    }
    if out.len() == value {
        out.truncate(start);
    } else {
        out.extend_from_slice(b"\r\n");
    }
}

/// `name` ends with a colon and a blank.
#[inline]
fn line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
