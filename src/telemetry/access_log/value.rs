//! One value of a line, for people and for machines.
//!
//! Everything goes straight into the line: no allocation, no `format!`. What is absent is `-` in text and
//! `null` in JSON.

use std::fmt::Display;
use std::io::Write as _;
use std::net::SocketAddr;

use super::batch::{Left, LineSpace, put, put_either, put_front};
use super::names::Name;
use super::stamp::{Stamps, WallStart};
use super::{digits, escape};
use crate::config::model::Share;
use crate::config::model::template::Slot;
use crate::message::{Attempt, ClientAddress};
use crate::tick::Tick;

/// A value with what is to be known to write it.
#[derive(Clone, Copy, Debug)]
pub(super) enum LogValue<'a> {
    /// The record has none.
    Absent,
    /// A count, a status.
    Number(u64),
    /// Nanoseconds, shown as milliseconds.
    Millis(u64),
    /// A request's number.
    Id(u128),
    /// Yes or no.
    Flag(bool),
    /// A word of our own, harmless as it is.
    Token(&'static str),
    /// A number with the name it has in the config, if it has one.
    Name(u32, Option<&'a Name>),
    /// A stranger's bytes that are one word.
    Word(&'a [u8]),
    /// A stranger's bytes that may well have blanks.
    Free(&'a [u8]),
    /// A point in time.
    Time(Tick),
    /// Address and port.
    Client(&'a ClientAddress),
    /// A part of all.
    Share(Share),
    /// How these attempts ended.
    Causes(&'a [Attempt]),
}

/// A worker's cached seconds, and the wall clock at tick zero.
pub(super) type Clock<'a> = (&'a mut Stamps, WallStart);

impl<'a> LogValue<'a> {
    /// A value that may be absent.
    #[inline(always)]
    pub(super) fn or_absent<T>(value: Option<T>, make: impl FnOnce(T) -> LogValue<'a>) -> LogValue<'a> {
        value.map_or(LogValue::Absent, make)
    }

    /// One word; an empty one is absent.
    #[inline(always)]
    pub(super) fn word(bytes: &'a [u8]) -> LogValue<'a> {
        if bytes.is_empty() { LogValue::Absent } else { LogValue::Word(bytes) }
    }

    /// Bytes with blanks; empty ones are absent.
    #[inline(always)]
    pub(super) fn free(bytes: &'a [u8]) -> LogValue<'a> {
        if bytes.is_empty() { LogValue::Absent } else { LogValue::Free(bytes) }
    }

    /// Writes it as text that fits into `slot`.
    pub(super) fn write_text<'r>(self, room: LineSpace<'r>, slot: Slot, clock: &mut Clock<'_>) -> Left<'r> {
        match self {
            LogValue::Absent => put(room, b"-"),
            LogValue::Flag(flag) => put_either(room, flag, [b"yes", b"no"]),
            LogValue::Name(_, Some(name)) => escape::write_word(room, name.text().as_bytes(), slot),
            LogValue::Word(bytes) => escape::write_word(room, bytes, slot),
            LogValue::Free(bytes) => escape::write_free(room, bytes, slot),
            LogValue::Causes(attempts) => write_causes(room, attempts, b",", b""),
            other => other.write_plain(room, clock),
        }
    }

    /// Writes it as a value of JSON.
    #[inline(always)]
    pub(super) fn write_json<'r>(self, room: LineSpace<'r>, clock: &mut Clock<'_>) -> Left<'r> {
        match self {
            LogValue::Absent => put(room, b"null"),
            LogValue::Flag(flag) => put_either(room, flag, [b"true", b"false"]),
            LogValue::Name(_, Some(name)) => escape::write_json(room, name.text().as_bytes()),
            LogValue::Word(bytes) | LogValue::Free(bytes) => escape::write_json(room, bytes),
            LogValue::Causes(attempts) => put(write_causes(put(room, b"[")?, attempts, b",", b"\"")?, b"]"),
            LogValue::Number(_) | LogValue::Millis(_) | LogValue::Share(_) => self.write_plain(room, clock),
            // The text of these has no character that means anything to JSON.
            LogValue::Id(_)
            | LogValue::Token(_)
            | LogValue::Name(_, None)
            | LogValue::Time(_)
            | LogValue::Client(..) => put(self.write_plain(put(room, b"\"")?, clock)?, b"\""),
        }
    }

    /// Writes a value whose text is the same everywhere.
    #[inline(always)]
    fn write_plain<'r>(self, room: LineSpace<'r>, (stamps, wall): &mut Clock<'_>) -> Left<'r> {
        match self {
            LogValue::Number(number) => digits::write(room, number),
            LogValue::Millis(nanos) => digits::write_millis(room, nanos),
            LogValue::Id(id) => digits::write_hex(room, id),
            LogValue::Token(word) => put(room, word.as_bytes()),
            LogValue::Name(number, _) => digits::write(put(room, b"#")?, number.into()),
            LogValue::Time(at) => put(room, stamps.rfc(*wall, at)),
            LogValue::Client(client) => write_client(room, client),
            LogValue::Share(share) => write_share(room, share),
            // The callers have their own text for these.
            LogValue::Absent
            | LogValue::Flag(_)
            | LogValue::Word(_)
            | LogValue::Free(_)
            | LogValue::Causes(_) => Some(room),
        }
    }
}

/// The names of causes, each in `quotes`, with `between` between them.
#[cold]
fn write_causes<'r>(
    mut room: LineSpace<'r>,
    attempts: &[Attempt],
    between: &[u8],
    quotes: &[u8],
) -> Left<'r> {
    for (place, attempt) in attempts.iter().enumerate() {
        room = if place > 0 { put(room, between)? } else { room };
        room = put(put(put(room, quotes)?, attempt.outcome.token().as_bytes())?, quotes)?;
    }
    Some(room)
}

/// A part of 1 as a decimal number: `0.01`, `1`.
fn write_share(room: LineSpace<'_>, share: Share) -> Left<'_> {
    if share == Share::ALL {
        return put(room, b"1");
    }
    let millionths = u64::from(share.millionths());
    let ([a, b, c], [d, e, f]) = (digits::triple(millionths / 1000), digits::triple(millionths % 1000));
    let text = [b'0', b'.', a, b, c, d, e, f];
    let length = text.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
    put(room, &text[..length])
}

/// `192.0.2.1:5000` or `[2001:db8::1]:5000`; an IPv4 client of a v6 socket is written as IPv4.
#[inline(always)]
pub(super) fn write_client<'r>(room: LineSpace<'r>, client: &ClientAddress) -> Left<'r> {
    match client.text() {
        Some((text, length)) => put_front(room, text, length),
        None => write_shown(room, SocketAddr::new(client.ip, client.port)),
    }
}

/// An address alone, without brackets.
pub(super) fn write_ip<'r>(room: LineSpace<'r>, client: &ClientAddress) -> Left<'r> {
    match client.ip_text() {
        Some(text) => put(room, text),
        None => write_shown(room, client.ip),
    }
}

#[cold]
fn write_shown(mut room: LineSpace<'_>, address: impl Display) -> Left<'_> {
    // It fails only for want of room; `Display` of an address formats on the stack.
    write!(room, "{address}").ok()?;
    Some(room)
}
