//! One Record as one line, text or JSON.
//!
//! Everything goes straight into the worker's buffer: no allocation, no `format!`. Fields that a record
//! does not have are `-` in text and `null` in JSON.

use std::io::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use super::names::Names;
use super::stamp::{Stamp, WallStart};
use super::{digits, escape};
use crate::config::model::LogFormat;
use crate::message::{Cause, Kind, Record};
use crate::telemetry::cells::{connect_time, first_byte_time, span};
use crate::tick::Tick;

/// What a request's head said, raw. An empty field counts as absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line<'a> {
    /// The method.
    pub method: &'a [u8],
    /// Path and query.
    pub target: &'a [u8],
    /// The Host header or the authority of the request target.
    pub host: &'a [u8],
    /// The User-Agent header.
    pub user_agent: &'a [u8],
    /// The Referer header.
    pub referer: &'a [u8],
}

/// A Record with everything a line says, absent things as `None`.
struct Fields<'a> {
    record: &'a Record,
    head: Line<'a>,
    start: Tick,
    listener: Named<'a>,
    target: Option<Named<'a>>,
    backend: Option<Named<'a>>,
    duration: Option<Duration>,
    connect: Option<Duration>,
    first_byte: Option<Duration>,
    reused: Option<bool>,
}

/// A number with the name it has, if it has one.
type Named<'a> = (u32, Option<&'a str>);

impl<'a> Fields<'a> {
    fn of(record: &'a Record, line: &Line<'a>, names: &'a Names) -> Fields<'a> {
        let start = if record.started == Tick::ZERO { record.accepted } else { record.started };
        let last = record.kept_attempts().last();
        Fields {
            record,
            // A TCP connection has no head, whatever the caller passed.
            head: if record.kind == Kind::Tcp { Line::default() } else { *line },
            start,
            listener: (record.listener.0.into(), names.listener(record.listener)),
            target: record.target.map(|id| (id.0.into(), names.target(id))),
            backend: last.map(|attempt| (attempt.backend.0, names.backend(attempt.backend))),
            duration: span(start, record.done),
            connect: last.and_then(connect_time),
            first_byte: last.and_then(first_byte_time),
            reused: last.map(|attempt| attempt.reused),
        }
    }
}

/// The word for a kind of record.
const fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Http => "http",
        Kind::Upgrade => "upgrade",
        Kind::Tcp => "tcp",
    }
}

/// Appends one line with its end to `out`. `stamp` is the worker's cached second.
pub(super) fn write(
    out: &mut Vec<u8>,
    format: LogFormat,
    record: &Record,
    line: &Line<'_>,
    names: &Names,
    clock: (&mut Stamp, WallStart),
) {
    let fields = Fields::of(record, line, names);
    match format {
        LogFormat::Text => write_text(out, &fields, clock),
        LogFormat::Json => write_json(out, &fields, clock),
    }
}

/// `time client listener target backend "method path" status cause host= in= out= ms= connect= first_byte=
/// attempts= reused= kind= id= agent="" referer=""`.
fn write_text(out: &mut Vec<u8>, fields: &Fields<'_>, (stamp, wall): (&mut Stamp, WallStart)) {
    let Fields { record, head, .. } = fields;
    stamp.write(out, wall, fields.start);
    out.push(b' ');
    or_dash(out, record.client, write_client);
    out.push(b' ');
    text_name(out, Some(fields.listener));
    out.push(b' ');
    text_name(out, fields.target);
    out.push(b' ');
    text_name(out, fields.backend);
    out.extend_from_slice(b" \"");
    if head.method.is_empty() && head.target.is_empty() {
        out.push(b'-');
    } else {
        text_word(out, head.method);
        out.push(b' ');
        text_word(out, head.target);
    }
    out.extend_from_slice(b"\" ");
    or_dash(out, sent(record.status), digits::write);
    out.push(b' ');
    out.extend_from_slice(record.cause.token().as_bytes());
    out.extend_from_slice(b" host=");
    text_word(out, head.host);
    out.extend_from_slice(b" in=");
    digits::write(out, record.bytes_in);
    out.extend_from_slice(b" out=");
    digits::write(out, record.bytes_out);
    out.extend_from_slice(b" ms=");
    or_dash(out, fields.duration, digits::write_millis);
    out.extend_from_slice(b" connect=");
    or_dash(out, fields.connect, digits::write_millis);
    out.extend_from_slice(b" first_byte=");
    or_dash(out, fields.first_byte, digits::write_millis);
    out.extend_from_slice(b" attempts=");
    digits::write(out, record.attempts_made.into());
    out.extend_from_slice(b" reused=");
    or_dash(out, fields.reused, |out, reused| out.extend_from_slice(if reused { b"yes" } else { b"no" }));
    out.extend_from_slice(b" kind=");
    out.extend_from_slice(kind_word(record.kind).as_bytes());
    out.extend_from_slice(b" id=");
    or_dash(out, Some(record.id).filter(|&id| id != 0), digits::write_hex);
    out.extend_from_slice(b" agent=\"");
    or_dash(out, present(head.user_agent), escape::write_quoted);
    out.extend_from_slice(b"\" referer=\"");
    or_dash(out, present(head.referer), escape::write_quoted);
    out.extend_from_slice(b"\"\n");
}

fn write_json(out: &mut Vec<u8>, fields: &Fields<'_>, (stamp, wall): (&mut Stamp, WallStart)) {
    let Fields { record, head, .. } = fields;
    out.extend_from_slice(b"{\"time\":\"");
    stamp.write(out, wall, fields.start);
    out.extend_from_slice(b"\",\"kind\":\"");
    out.extend_from_slice(kind_word(record.kind).as_bytes());
    out.extend_from_slice(b"\",\"client\":");
    or_null(out, record.client, |out, client| {
        out.push(b'"');
        write_client(out, client);
        out.push(b'"');
    });
    out.extend_from_slice(b",\"listener\":");
    json_name(out, fields.listener);
    out.extend_from_slice(b",\"target\":");
    or_null(out, fields.target, json_name);
    out.extend_from_slice(b",\"backend\":");
    or_null(out, fields.backend, json_name);
    out.extend_from_slice(b",\"method\":");
    or_null(out, present(head.method), escape::write_json);
    out.extend_from_slice(b",\"path\":");
    or_null(out, present(head.target), escape::write_json);
    out.extend_from_slice(b",\"host\":");
    or_null(out, present(head.host), escape::write_json);
    out.extend_from_slice(b",\"status\":");
    or_null(out, sent(record.status), digits::write);
    out.extend_from_slice(b",\"cause\":");
    or_null(out, Some(record.cause).filter(|&cause| cause != Cause::Done), |out, cause| {
        out.push(b'"');
        out.extend_from_slice(cause.token().as_bytes());
        out.push(b'"');
    });
    out.extend_from_slice(b",\"bytes_in\":");
    digits::write(out, record.bytes_in);
    out.extend_from_slice(b",\"bytes_out\":");
    digits::write(out, record.bytes_out);
    out.extend_from_slice(b",\"duration_ms\":");
    or_null(out, fields.duration, digits::write_millis);
    out.extend_from_slice(b",\"connect_ms\":");
    or_null(out, fields.connect, digits::write_millis);
    out.extend_from_slice(b",\"first_byte_ms\":");
    or_null(out, fields.first_byte, digits::write_millis);
    out.extend_from_slice(b",\"attempts\":");
    digits::write(out, record.attempts_made.into());
    out.extend_from_slice(b",\"reused\":");
    or_null(out, fields.reused, |out, reused| {
        out.extend_from_slice(if reused { b"true" } else { b"false" });
    });
    out.extend_from_slice(b",\"id\":");
    or_null(out, Some(record.id).filter(|&id| id != 0), |out, id| {
        out.push(b'"');
        digits::write_hex(out, id);
        out.push(b'"');
    });
    out.extend_from_slice(b",\"user_agent\":");
    or_null(out, present(head.user_agent), escape::write_json);
    out.extend_from_slice(b",\"referer\":");
    or_null(out, present(head.referer), escape::write_json);
    out.extend_from_slice(b"}\n");
}

/// Writes a present value, or `absent`.
fn or<T>(out: &mut Vec<u8>, absent: &[u8], value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
    match value {
        Some(value) => write(out, value),
        None => out.extend_from_slice(absent),
    }
}

fn or_dash<T>(out: &mut Vec<u8>, value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
    or(out, b"-", value, write);
}

fn or_null<T>(out: &mut Vec<u8>, value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
    or(out, b"null", value, write);
}

fn present(value: &[u8]) -> Option<&[u8]> {
    Some(value).filter(|value| !value.is_empty())
}

/// A status that was sent.
fn sent(status: u16) -> Option<u64> {
    Some(u64::from(status)).filter(|&status| status != 0)
}

fn text_word(out: &mut Vec<u8>, value: &[u8]) {
    or_dash(out, present(value), escape::write_word);
}

fn text_name(out: &mut Vec<u8>, named: Option<Named<'_>>) {
    or_dash(out, named, |out, (number, name)| match name {
        Some(name) => text_word(out, name.as_bytes()),
        None => write_number(out, number),
    });
}

fn json_name(out: &mut Vec<u8>, (number, name): Named<'_>) {
    match name {
        Some(name) => escape::write_json(out, name.as_bytes()),
        None => {
            out.push(b'"');
            write_number(out, number);
            out.push(b'"');
        }
    }
}

/// A number that has no name.
fn write_number(out: &mut Vec<u8>, number: u32) {
    out.push(b'#');
    digits::write(out, number.into());
}

/// `192.0.2.1:5000` or `[2001:db8::1]:5000`; an IPv4 client of a v6 socket is written as IPv4.
fn write_client(out: &mut Vec<u8>, (address, port): (IpAddr, u16)) {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            for (place, part) in v4.octets().into_iter().enumerate() {
                if place > 0 {
                    out.push(b'.');
                }
                digits::write(out, part.into());
            }
        }
        IpAddr::V6(v6) => {
            // Writing to a Vec cannot fail, and `Display` of an address formats on the stack.
            let _ = write!(out, "[{v6}]");
        }
    }
    out.push(b':');
    digits::write(out, port.into());
}

#[cfg(test)]
mod tests;
