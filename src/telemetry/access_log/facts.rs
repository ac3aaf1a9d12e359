//! What a line can say about one record, field by field.
//!
//! Nothing is looked up before a line asks for it: a form without Referer never searches a head for one.

use crate::config::model::Share;
use crate::config::model::template::{DerivedField, LogField, Slot};
use crate::message::{Attempt, Cause, Field, Head, Kind, Record, Version};
use crate::telemetry::cells::{connect_time, first_byte_time, span};
use crate::tick::Tick;

use super::names::Names;
use super::room::{Left, Room, put};
use super::value::{Clock, Value, write_ip};
use super::{digits, escape};

/// A record with what stands beside it.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    /// What happened.
    pub(super) record: &'a Record,
    /// `None`: a TCP connection, or a request of which nothing was read.
    pub(super) head: Option<&'a Head>,
    /// What its numbers are called.
    pub(super) names: &'a Names,
    /// The attempt that counts.
    pub(super) last: Option<&'a Attempt>,
    /// When the request began.
    pub(super) start: Tick,
    /// The share of records like this one that is logged.
    share: Share,
}

impl<'a> Facts<'a> {
    /// The facts about `record`. A TCP connection has no head, whatever is passed.
    pub(super) fn new(
        record: &'a Record,
        head: Option<&'a Head>,
        names: &'a Names,
        share: Share,
    ) -> Facts<'a> {
        Facts {
            record,
            head: head.filter(|_| record.kind != Kind::Tcp),
            names,
            last: record.kept_attempts().last(),
            start: if record.started == Tick::ZERO { record.accepted } else { record.started },
            share,
        }
    }

    /// The value of a field. A new field is one line here and one in [`LogField`].
    ///
    /// Where the field is a constant this comes down to the one line.
    #[inline(always)]
    pub(super) fn value(&self, field: LogField) -> Value<'a> {
        let Facts { record, names, last, .. } = *self;
        match field {
            LogField::Time => Value::Time(self.start),
            LogField::Kind => Value::Token(kind_word(record.kind)),
            LogField::Client => Value::or_absent(record.client.as_ref(), Value::Client),
            LogField::Listener => Value::Name(record.listener.0.into(), names.listener(record.listener)),
            LogField::Target => {
                Value::or_absent(record.target, |id| Value::Name(id.0.into(), names.target(id)))
            }
            LogField::Backend => {
                Value::or_absent(last, |last| Value::Name(last.backend.0, names.backend(last.backend)))
            }
            LogField::Method => Value::word(self.of_head(Head::method)),
            LogField::Path => Value::word(self.of_head(Head::path)),
            LogField::Host => Value::word(self.of_head(Head::authority)),
            LogField::Status => Value::or_absent(self.sent(), Value::Number),
            LogField::Cause => Value::or_absent(self.cause(), |cause| Value::Token(cause.token())),
            LogField::BytesIn => Value::Number(record.bytes_in),
            LogField::BytesOut => Value::Number(record.bytes_out),
            LogField::Duration => Value::or_absent(span(self.start, record.done), Value::Millis),
            LogField::Connect => Value::or_absent(last.and_then(connect_time), Value::Millis),
            LogField::FirstByte => Value::or_absent(last.and_then(first_byte_time), Value::Millis),
            LogField::Attempts => Value::Number(record.attempts_made.into()),
            LogField::EarlierCauses => Value::or_absent(self.earlier(), Value::Causes),
            LogField::Reused => Value::or_absent(last, |last| Value::Flag(last.reused)),
            LogField::Tls => Value::or_absent(record.tls, |tls| Value::Token(tls.version)),
            LogField::TlsResumed => Value::or_absent(record.tls, |tls| Value::Flag(tls.resumed)),
            LogField::Handshake => {
                let handshake = record.tls.and_then(|_| span(record.accepted, record.secured));
                Value::or_absent(handshake, Value::Millis)
            }
            LogField::Id => Value::or_absent(Some(record.id).filter(|&id| id != 0), Value::Id),
            LogField::UserAgent => Value::free(self.header(Field::UserAgent)),
            LogField::Referer => Value::free(self.header(Field::Referer)),
            LogField::SampleRate => Value::Share(self.share),
        }
    }

    /// The value of the first header of this name.
    pub(super) fn named(&self, name: &str) -> Value<'a> {
        Value::free(self.head.and_then(|head| head.named(name)).unwrap_or_default())
    }

    /// Writes a field in another form.
    pub(super) fn write_derived<'r>(
        &self,
        room: Room<'r>,
        field: DerivedField,
        slot: Slot,
        clock: &mut Clock<'_>,
    ) -> Left<'r> {
        let client = self.record.client.as_ref();
        match field {
            DerivedField::TimeCommon => put(room, clock.0.common(clock.1, self.start)),
            DerivedField::ClientIp => match client {
                Some(client) => write_ip(room, client),
                None => put(room, b"-"),
            },
            DerivedField::ClientPort => match client {
                Some(client) => digits::write(room, client.port.into()),
                None => put(room, b"-"),
            },
            DerivedField::Request => self.write_request(room, Head::target, slot, true),
            DerivedField::MethodPath => self.write_request(room, Head::path, slot, false),
            DerivedField::Code => {
                digits::write(room, self.sent().unwrap_or_else(|| self.record.cause.status().into()))
            }
        }
    }

    /// All kept attempts but the last; `None`: there was no other.
    #[inline(always)]
    fn earlier(&self) -> Option<&'a [Attempt]> {
        if self.record.attempts_made < 2 {
            return None;
        }
        self.record.kept_attempts().split_last().map(|(_, earlier)| earlier)
    }

    /// Method, one form of the target, perhaps the version; `-` alone when there is none of them.
    fn write_request<'r>(
        &self,
        room: Room<'r>,
        target: fn(&Head) -> &[u8],
        slot: Slot,
        versioned: bool,
    ) -> Left<'r> {
        let head = self.head.filter(|head| !head.method().is_empty() || !target(head).is_empty());
        let Some(head) = head else { return put(room, b"-") };
        let blank: &[u8] = if slot.keeps_blanks() { b" " } else { b"\\x20" };
        let room = put(escape::write_word(room, head.method(), slot)?, blank)?;
        let room = escape::write_word(room, target(head), slot)?;
        if !versioned {
            return Some(room);
        }
        let version = match head.version {
            Version::Http10 => b"HTTP/1.0",
            Version::Http11 => b"HTTP/1.1",
        };
        put(put(room, blank)?, version)
    }

    fn of_head(&self, part: fn(&Head) -> &[u8]) -> &'a [u8] {
        self.head.map_or(&[][..], part)
    }

    fn header(&self, field: Field) -> &'a [u8] {
        self.head.and_then(|head| head.value(field)).unwrap_or_default()
    }

    /// A status that was sent.
    fn sent(&self) -> Option<u64> {
        Some(u64::from(self.record.status)).filter(|&status| status != 0)
    }

    /// A cause other than success.
    fn cause(&self) -> Option<Cause> {
        Some(self.record.cause).filter(|&cause| cause != Cause::Done)
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
