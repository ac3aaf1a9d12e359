//! The spans of a request that is over: the request itself, and below it the question to another service, the cache, the queue and each
//! attempt, with its parts. Names and attributes follow OpenTelemetry's conventions for HTTP (semantic conventions 1.23 and later); what they have
//! no name for begins with `evenkeel.`.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::{Status, status::StatusCode};

use crate::message::{Attempt, Blame, Cause, Record, TraceContext};
use crate::telemetry::recorder::KeptRequest;
use crate::telemetry::traces::{attempt_span, part_span, question_span};
use crate::tick::Tick;

/// Methods that may be a part of a span's name (RFC 9110 §9, RFC 5789): of others there can be any number.
const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/// A part of a request that has no number of its own.
#[derive(Clone, Copy)]
enum Part {
    Cache = 1,
    Queue = 2,
    Connect = 3,
    Tls = 4,
    FirstByte = 5,
}

/// All spans of `kept`, its own first; none without a trace. `wall`: the wall clock at tick zero, in nanoseconds since 1970.
#[must_use]
pub(super) fn spans(kept: &KeptRequest, wall: u64) -> Vec<Span> {
    let Some(context) = kept.trace else { return Vec::new() };
    let record = &kept.record;
    let begun = if record.started == Tick::ZERO { record.accepted } else { record.started };
    let mut story = Story { context, wall, within: (begun, record.done.max(begun)), all: Vec::new() };
    story.request(kept);
    story.before_backends(record);
    for (place, attempt) in record.kept_attempts().iter().enumerate() {
        story.attempt(kept, place, attempt);
    }
    story.all
}

struct Story {
    context: TraceContext,
    wall: u64,
    /// From the beginning of the request to its end: nothing of it is outside.
    within: (Tick, Tick),
    all: Vec<Span>,
}

impl Story {
    /// Adds a span, with what is cut off that lies outside of the request, and gives it.
    fn add(
        &mut self,
        (id, parent): (u64, u64),
        name: &str,
        kind: SpanKind,
        from: Tick,
        to: Tick,
    ) -> &mut Span {
        let (begun, done) = self.within;
        let from = from.clamp(begun, done);
        let to = to.clamp(from, done);
        let bytes = |id: u64| if id == 0 { Vec::new() } else { id.to_be_bytes().to_vec() };
        self.all.push(Span {
            trace_id: self.context.trace.to_be_bytes().to_vec(),
            span_id: bytes(id),
            parent_span_id: bytes(parent),
            flags: u32::from(self.context.flags),
            name: name.to_owned(),
            kind: kind.into(),
            start_time_unix_nano: self.wall.saturating_add(from.0),
            end_time_unix_nano: self.wall.saturating_add(to.0),
            ..Span::default()
        });
        // It was pushed just now.
        let last = self.all.len() - 1;
        &mut self.all[last]
    }

    fn request(&mut self, kept: &KeptRequest) {
        let record = &kept.record;
        let TraceContext { span, parent, .. } = self.context;
        let method = known_method(&kept.method);
        let name = match (method, kept.route.as_str()) {
            (None, _) => "HTTP".to_owned(),
            (Some(method), "") => method.to_owned(),
            (Some(method), route) => format!("{method} {route}"),
        };
        let (from, to) = self.within;
        let own = self.add((span, parent), &name, SpanKind::Server, from, to);
        let (path, query) = match kept.path.iter().position(|&byte| byte == b'?') {
            Some(place) => (&kept.path[..place], &kept.path[place + 1..]),
            None => (&kept.path[..], &[][..]),
        };
        own.attributes.push(text("http.request.method", method.unwrap_or("_OTHER")));
        if method.is_none() {
            own.attributes.push(text("http.request.method_original", &readable(&kept.method)));
        }
        own.attributes.push(text("url.scheme", if record.tls.is_some() { "https" } else { "http" }));
        own.attributes.push(text("url.path", &readable(path)));
        if !query.is_empty() {
            own.attributes.push(text("url.query", &readable(query)));
        }
        if !kept.host.is_empty() {
            let host = readable(&kept.host);
            let (address, port) = place_of(&host);
            own.attributes.push(text("server.address", address));
            own.attributes.extend(port.map(|port| number("server.port", port.into())));
        }
        if let Some(client) = record.client {
            own.attributes.push(text("client.address", &client.ip.to_string()));
            own.attributes.push(number("client.port", client.port.into()));
        }
        if record.status != 0 {
            own.attributes.push(number("http.response.status_code", record.status.into()));
        }
        own.attributes.push(number("http.request.body.size", record.bytes_in));
        own.attributes.push(number("http.response.body.size", record.bytes_out));
        own.attributes.push(text("evenkeel.request_id", &format!("{:032x}", record.id)));
        own.attributes.push(text("evenkeel.kept_for", kept.kept_for.token()));
        own.attributes.push(number("evenkeel.attempts", record.attempts_made.into()));
        let names = [
            ("evenkeel.listener", &kept.listener),
            ("evenkeel.route", &kept.route),
            ("evenkeel.target", &kept.target),
        ];
        own.attributes.extend(
            names.into_iter().filter(|(_, name)| !name.is_empty()).map(|(key, name)| text(key, name)),
        );
        if let Some(note) = record.cache {
            own.attributes.push(text("evenkeel.cache", note.token()));
        }
        if let Some(ended) = record.grpc {
            own.attributes.push(text("rpc.system", "grpc"));
            own.attributes.push(number("rpc.grpc.status_code", ended as u64));
        }
        if record.cause != Cause::Done {
            own.attributes.push(text("evenkeel.cause", record.cause.token()));
        }
        // Of a server's span what clients do wrong is no error.
        let is_ours =
            record.cause != Cause::Done && matches!(record.cause.blame(), Blame::Local | Blame::Backend);
        match (is_ours, record.meaning()) {
            (true, _) => failed(own, record.cause.token(), &record.cause.to_string()),
            (false, code @ 500..) => failed(own, &code.to_string(), ""),
            (false, _) => {}
        }
    }

    /// What is between the route and the first backend.
    fn before_backends(&mut self, record: &Record) {
        let (span, done) = (self.context.span, record.done);
        let or_done = |at: Tick| if at == Tick::ZERO { done } else { at };
        if record.asked != Tick::ZERO {
            let id = (question_span(span), span);
            self.add(id, "forward auth", SpanKind::Client, record.asked, or_done(record.told));
        }
        let picked = record.kept_attempts().first().map_or(done, |attempt| attempt.picked);
        if let Some(note) = record.cache {
            let until = if record.waited == Tick::ZERO { picked } else { record.waited };
            let id = (part_span(span, Part::Cache as u64), span);
            let cache = self.add(id, "cache", SpanKind::Internal, record.routed, until);
            cache.attributes.push(text("evenkeel.cache", note.token()));
            if let Some(why) = note.reason() {
                cache.attributes.push(text("evenkeel.cache_reason", why.token()));
            }
        }
        if record.waited != Tick::ZERO {
            let id = (part_span(span, Part::Queue as u64), span);
            self.add(id, "queue", SpanKind::Internal, record.waited, picked);
        }
    }

    fn attempt(&mut self, kept: &KeptRequest, place: usize, attempt: &Attempt) {
        let record = &kept.record;
        let backend = kept.backends.get(place).map_or("", String::as_str);
        let id = attempt_span(self.context.span, attempt.picked);
        let or = |at: Tick, other: Tick| if at == Tick::ZERO { other } else { at };
        let end = or(attempt.end, record.done);
        let own = self.add((id, self.context.span), "attempt", SpanKind::Client, attempt.picked, end);
        if let Some(method) = known_method(&kept.method) {
            own.attributes.push(text("http.request.method", method));
        }
        own.attributes.push(text("evenkeel.backend", backend));
        // Of many only the first and the last are kept.
        let is_last = place + 1 == record.kept_attempts().len();
        let number_of = if is_last { u64::from(record.attempts_made) } else { place as u64 + 1 };
        if number_of > 1 {
            own.attributes.push(number("http.request.resend_count", number_of - 1));
        }
        own.attributes.push(flag("evenkeel.reused", attempt.reused));
        if attempt.resent {
            own.attributes.push(flag("evenkeel.resent", true));
        }
        match attempt.pick.in_flight() {
            0 => {}
            many => own.attributes.push(number("evenkeel.in_flight", many.into())),
        }
        match attempt.outcome {
            Cause::Done => {
                // Nobody else's answer was taken.
                if is_last && record.status != 0 {
                    own.attributes.push(number("http.response.status_code", record.status.into()));
                    if record.meaning() >= 500 {
                        failed(own, &record.meaning().to_string(), "");
                    }
                }
            }
            // Of what a client does, as of what another attempt does, its backend knows nothing.
            cause if cause == Cause::Overtaken || cause.blame() == Blame::Client => {
                own.attributes.push(text("evenkeel.cause", cause.token()));
            }
            cause => {
                own.attributes.push(text("evenkeel.cause", cause.token()));
                failed(own, cause.token(), &cause.to_string());
            }
        }
        let mut part = |part: Part, name: &str, from: Tick, to: Tick| {
            self.add((part_span(id, part as u64), id), name, SpanKind::Internal, from, to.min(end));
        };
        if !attempt.reused {
            let connected = or(attempt.connected, end);
            part(Part::Connect, "connect", attempt.picked, or(attempt.stood, connected));
            if attempt.stood != Tick::ZERO {
                part(Part::Tls, "tls", attempt.stood, connected);
            }
        }
        if attempt.sent != Tick::ZERO {
            part(Part::FirstByte, "first byte", attempt.sent, or(attempt.first_byte, end));
        }
    }
}

fn known_method(method: &[u8]) -> Option<&'static str> {
    METHODS.iter().copied().find(|known| known.as_bytes() == method)
}

/// Host and port of an authority; the brackets of an IPv6 address are no part of it.
fn place_of(authority: &str) -> (&str, Option<u16>) {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port.parse().ok()),
        _ => (authority, None),
    };
    (host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host), port)
}

/// What a client wrote as text: what is no UTF-8 is `\xNN`, as in the access log.
fn readable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text += chunk.valid();
        chunk.invalid().iter().for_each(|byte| text += &format!("\\x{byte:02x}"));
    }
    text
}

fn failed(span: &mut Span, kind: &str, message: &str) {
    span.attributes.push(text("error.type", kind));
    span.status = Some(Status { message: message.to_owned(), code: StatusCode::Error.into() });
}

pub(super) fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn number(key: &str, value: u64) -> KeyValue {
    attribute(key, Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn flag(key: &str, value: bool) -> KeyValue {
    attribute(key, Value::BoolValue(value))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

#[cfg(test)]
mod tests;
