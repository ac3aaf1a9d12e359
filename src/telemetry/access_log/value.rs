//! One value of a line, for people and for machines.
//!
//! Everything goes straight into the worker's buffer: no allocation, no `format!`. What is absent is `-` in
//! text and `null` in JSON.

use std::io::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use super::stamp::{Stamps, WallStart};
use super::{digits, escape};
use crate::config::model::Share;
use crate::config::model::template::Slot;
use crate::tick::Tick;

/// A value with what is to be known to write it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// The record has none.
    Absent,
    /// A count, a status.
    Number(u64),
    /// A time in milliseconds.
    Millis(Duration),
    /// A request's number.
    Id(u128),
    /// Yes or no.
    Flag(bool),
    /// A word of our own, harmless as it is.
    Token(&'static str),
    /// A number with the name it has in the config, if it has one.
    Name(u32, Option<&'a str>),
    /// A stranger's bytes that are one word.
    Word(&'a [u8]),
    /// A stranger's bytes that may well have blanks.
    Free(&'a [u8]),
    /// A point in time.
    Time(Tick),
    /// Address and port.
    Client(IpAddr, u16),
    /// A part of all.
    Share(Share),
}

/// A worker's cached seconds, and the wall clock at tick zero.
pub(super) type Clock<'a> = (&'a mut Stamps, WallStart);

impl<'a> Value<'a> {
    /// A value that may be absent.
    pub(super) fn or_absent<T>(value: Option<T>, make: impl FnOnce(T) -> Value<'a>) -> Value<'a> {
        value.map_or(Value::Absent, make)
    }

    /// One word; an empty one is absent.
    pub(super) fn word(bytes: &'a [u8]) -> Value<'a> {
        if bytes.is_empty() { Value::Absent } else { Value::Word(bytes) }
    }

    /// Bytes with blanks; empty ones are absent.
    pub(super) fn free(bytes: &'a [u8]) -> Value<'a> {
        if bytes.is_empty() { Value::Absent } else { Value::Free(bytes) }
    }

    /// Appends it as text that fits into `slot`.
    pub(super) fn write_text(self, out: &mut Vec<u8>, slot: Slot, (stamps, wall): Clock<'_>) {
        match self {
            Value::Absent => out.push(b'-'),
            Value::Number(number) => digits::write(out, number),
            Value::Millis(span) => digits::write_millis(out, span),
            Value::Id(id) => digits::write_hex(out, id),
            Value::Flag(flag) => out.extend_from_slice(if flag { b"yes" } else { b"no" }),
            Value::Token(word) => out.extend_from_slice(word.as_bytes()),
            Value::Name(_, Some(name)) => escape::write_word(out, name.as_bytes(), slot),
            Value::Name(number, None) => write_number(out, number),
            Value::Word(bytes) => escape::write_word(out, bytes, slot),
            Value::Free(bytes) => escape::write_free(out, bytes, slot),
            Value::Time(at) => stamps.write(out, wall, at),
            Value::Client(address, port) => write_client(out, address, port),
            Value::Share(share) => write_share(out, share),
        }
    }

    /// Appends it as a value of JSON.
    pub(super) fn write_json(self, out: &mut Vec<u8>, clock: Clock<'_>) {
        match self {
            Value::Absent => out.extend_from_slice(b"null"),
            Value::Flag(flag) => out.extend_from_slice(if flag { b"true" } else { b"false" }),
            Value::Name(_, Some(name)) => escape::write_json(out, name.as_bytes()),
            Value::Word(bytes) | Value::Free(bytes) => escape::write_json(out, bytes),
            Value::Number(_) | Value::Millis(_) | Value::Share(_) => {
                self.write_text(out, Slot::default(), clock);
            }
            // The text of these has no character that means anything to JSON.
            Value::Id(_) | Value::Token(_) | Value::Name(_, None) | Value::Time(_) | Value::Client(..) => {
                out.push(b'"');
                self.write_text(out, Slot::default(), clock);
                out.push(b'"');
            }
        }
    }
}

/// A number that has no name.
fn write_number(out: &mut Vec<u8>, number: u32) {
    out.push(b'#');
    digits::write(out, number.into());
}

/// A part of 1 as a decimal number: `0.01`, `1`.
fn write_share(out: &mut Vec<u8>, share: Share) {
    if share == Share::ALL {
        out.push(b'1');
        return;
    }
    out.extend_from_slice(b"0.");
    digits::write_padded(out, share.millionths().into(), 6);
    while out.last() == Some(&b'0') {
        out.pop();
    }
}

/// `192.0.2.1:5000` or `[2001:db8::1]:5000`; an IPv4 client of a v6 socket is written as IPv4.
fn write_client(out: &mut Vec<u8>, address: IpAddr, port: u16) {
    let six = address.to_canonical().is_ipv6();
    if six {
        out.push(b'[');
    }
    write_ip(out, address);
    if six {
        out.push(b']');
    }
    out.push(b':');
    digits::write(out, port.into());
}

/// An address alone, without brackets.
pub(super) fn write_ip(out: &mut Vec<u8>, address: IpAddr) {
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
            let _ = write!(out, "{v6}");
        }
    }
}
