//! A request that is over as bytes, and back.
//!
//! Numbers have seven bits in a byte, times are distances from the first of them, and what clients wrote is cut: an entry of a plain
//! request has about 200 bytes, the longest fewer than a ring takes ([`ENTRY_MAX`](super::ring::ENTRY_MAX)).

use std::net::IpAddr;

use super::kept::{KeptRequest, KeptSubject};
use super::kept_for::KeptFor;
use super::mask::{mask_path, mask_value, without_user};

use crate::config::model::GrpcStatus;
use crate::message::{
    Attempt, CacheNote, Cause, ClientAddress, Head, PickNote, Record, RecordKind, TlsSession, TraceContext,
    WhyNot,
};
use crate::telemetry::access_log::RouteName;
use crate::tick::Tick;

/// Bytes of a path that are kept.
const PATH_MAX: usize = 1024;
/// Of a name in the config.
const NAME_MAX: usize = 512;
/// Of a method or a host.
const WORD_MAX: usize = 256;
/// Of the value of a header line.
const VALUE_MAX: usize = 160;
/// What what was cut ends with.
const DOTS: &[u8] = b"...";

const KINDS: [RecordKind; 4] = [RecordKind::Http, RecordKind::Upgrade, RecordKind::Tcp, RecordKind::Udp];
const TLS_VERSIONS: [&str; 2] = ["1.2", "1.3"];

/// Appends an entry.
pub(super) fn encode(
    (record, kept_for): (&Record, KeptFor),
    subject: &KeptSubject<'_>,
    shows: &[Box<str>],
    into: &mut Vec<u8>,
) {
    let mut out = Out { bytes: into, base: record.accepted };
    let Record { kind, id, status, cause, cache, tls, client, .. } = *record;
    out.number(kept_for as u64);
    out.number(subject.config);
    out.number(kind as u64);
    out.bytes.extend_from_slice(&id.to_le_bytes());
    out.number(status.into());
    out.number(cause as u64);
    out.number(record.grpc.map_or(0, |ended| 1 + ended as u64));
    out.number(cache.map_or(0, |note| 1 + note.kind() as u64));
    out.number(cache.and_then(CacheNote::reason).map_or(0, |why| why as u64));
    let version = tls.and_then(|tls| TLS_VERSIONS.iter().position(|known| *known == tls.version()));
    out.number(version.map_or(0, |place| 1 + place as u64));
    out.number(tls.is_some_and(|tls| tls.resumed).into());
    match client {
        None => out.number(0),
        Some(ClientAddress { ip, port, .. }) => {
            match ip {
                IpAddr::V4(ip) => out.text(&ip.octets(), WORD_MAX),
                IpAddr::V6(ip) => out.text(&ip.octets(), WORD_MAX),
            }
            out.number(port.into());
        }
    }
    out.number(record.accepted.0);
    let Record { secured, started, head_read, routed, asked, told, waited, done, .. } = *record;
    [secured, started, head_read, routed, asked, told, waited, done].into_iter().for_each(|at| out.time(at));
    out.number(record.bytes_in);
    out.number(record.bytes_out);
    out.number(record.attempts_made.into());
    for attempt in record.kept_attempts() {
        out.text(subject.names.backend_text(attempt.backend).as_bytes(), NAME_MAX);
        out.number(attempt.outcome as u64);
        out.number(u64::from(attempt.reused) | u64::from(attempt.resent) << 1);
        out.number(attempt.pick.0.into());
        let Attempt { picked, stood, connected, sent, first_byte, end, .. } = *attempt;
        [picked, stood, connected, sent, first_byte, end].into_iter().for_each(|at| out.time(at));
    }
    let target = record.target.map_or("", |target| subject.names.target_text(target));
    let route = subject.route.map_or("", RouteName::text);
    for name in [subject.names.listener_text(record.listener), target, route] {
        out.text(name.as_bytes(), NAME_MAX);
    }
    match subject.trace {
        None => out.number(0),
        Some(TraceContext { trace, parent, span, flags }) => {
            out.number(1 + u64::from(flags));
            out.bytes.extend_from_slice(&trace.to_le_bytes());
            [parent, span].into_iter().for_each(|span| out.bytes.extend_from_slice(&span.to_le_bytes()));
        }
    }
    if let Some(head) = subject.head {
        out.head(head, shows);
    }
}

/// What an entry says; `None`: it is none.
pub(super) fn decode(bytes: &[u8]) -> Option<KeptRequest> {
    let mut from = In { bytes, base: Tick::ZERO };
    let mut kept = KeptRequest {
        kept_for: *KeptFor::ALL.get(from.place()?)?,
        config: from.number()?,
        ..KeptRequest::default()
    };
    let record = &mut kept.record;
    record.kind = *KINDS.get(from.place()?)?;
    record.id = u128::from_le_bytes(*from.take(16)?.first_chunk()?);
    record.status = from.short()?;
    record.cause = *Cause::ALL.get(from.place()?)?;
    record.grpc = match from.place()?.checked_sub(1) {
        None => None,
        Some(ended) => Some(*GrpcStatus::ALL.get(ended)?),
    };
    let (note, why) = (from.place()?, from.place()?);
    record.cache = match note.checked_sub(1) {
        None => None,
        Some(kind) => Some(note_of(kind, *WhyNot::ALL.get(why)?)?),
    };
    let (version, resumed) = (from.place()?, from.number()? == 1);
    record.tls = match version.checked_sub(1) {
        None => None,
        Some(place) => Some(TlsSession { is_tls13: *TLS_VERSIONS.get(place)? == "1.3", resumed }),
    };
    let ip = match from.text()? {
        [] => None,
        four if four.len() == 4 => Some(IpAddr::from(<[u8; 4]>::try_from(four).ok()?)),
        sixteen => Some(IpAddr::from(<[u8; 16]>::try_from(sixteen).ok()?)),
    };
    if let Some(ip) = ip {
        record.client = Some(ClientAddress::new(ip, from.short()?));
    }
    record.accepted = Tick(from.number()?);
    from.base = record.accepted;
    let Record { secured, started, head_read, routed, asked, told, waited, done, .. } = record;
    for at in [secured, started, head_read, routed, asked, told, waited, done] {
        *at = from.time()?;
    }
    (record.bytes_in, record.bytes_out) = (from.number()?, from.number()?);
    record.attempts_made = u8::try_from(from.number()?).ok()?;
    for place in 0..record.kept_attempts().len() {
        kept.backends.push(from.string()?);
        let attempt = &mut record.attempts[place];
        attempt.outcome = *Cause::ALL.get(from.place()?)?;
        let flags = from.number()?;
        (attempt.reused, attempt.resent) = (flags & 1 != 0, flags & 2 != 0);
        attempt.pick = PickNote(u8::try_from(from.number()?).ok()?);
        let Attempt { picked, stood, connected, sent, first_byte, end, .. } = attempt;
        for at in [picked, stood, connected, sent, first_byte, end] {
            *at = from.time()?;
        }
    }
    kept.listener = from.string()?;
    kept.target = from.string()?;
    kept.route = from.string()?;
    if let Some(flags) = from.number()?.checked_sub(1) {
        let trace = u128::from_le_bytes(*from.take(16)?.first_chunk()?);
        let mut span = || Some(u64::from_le_bytes(*from.take(8)?.first_chunk()?));
        let (parent, span) = (span()?, span()?);
        kept.trace = Some(TraceContext { trace, parent, span, flags: u8::try_from(flags).ok()? });
    }
    if !from.bytes.is_empty() {
        kept.method = from.text()?.to_vec();
        kept.host = from.text()?.to_vec();
        kept.path = from.text()?.to_vec();
        while !from.bytes.is_empty() {
            kept.headers.push((from.string()?, from.text()?.to_vec()));
        }
    }
    Some(kept)
}

fn note_of(kind: usize, why: WhyNot) -> Option<CacheNote> {
    use CacheNote::{Collapsed, Hit, Miss, Revalidated, Stale, Uncacheable};
    [Hit, Stale, Revalidated, Collapsed, Miss, Uncacheable(why)].into_iter().find(|note| note.kind() == kind)
}

struct Out<'b> {
    bytes: &'b mut Vec<u8>,
    base: Tick,
}

impl Out<'_> {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            // The lowest seven bits, and that more come.
            self.bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push((number & 0x7f) as u8);
    }

    /// What did not happen is a zero.
    fn time(&mut self, at: Tick) {
        self.number(if at == Tick::ZERO { 0 } else { at.0.wrapping_sub(self.base.0).wrapping_add(1) });
    }

    /// A text and its length before it; what is longer than `most` ends in dots.
    fn text(&mut self, text: &[u8], most: usize) {
        self.number(text.len().min(most) as u64);
        if text.len() <= most {
            return self.bytes.extend_from_slice(text);
        }
        self.bytes.extend_from_slice(&text[..most - DOTS.len()]);
        self.bytes.extend_from_slice(DOTS);
    }

    fn head(&mut self, head: &Head, shows: &[Box<str>]) {
        self.text(head.method(), WORD_MAX);
        self.text(without_user(head.authority()), WORD_MAX);
        self.masked(PATH_MAX, |into| mask_path(head.path(), into));
        for name in shows {
            let lines = head.lines().iter().map(|line| head.pair(line));
            for (_, value) in lines.filter(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes())) {
                if self.bytes.len() + VALUE_MAX * 2 > super::ring::ENTRY_MAX {
                    return;
                }
                self.text(name.as_bytes(), WORD_MAX);
                self.masked(VALUE_MAX, |into| mask_value(value, into));
            }
        }
    }

    /// Writes what `mask` makes of a text.
    fn masked(&mut self, most: usize, mask: impl FnOnce(&mut Vec<u8>)) {
        // What is masked may be longer than it was, by few bytes; its length goes before it.
        let mut text = Vec::with_capacity(most);
        mask(&mut text);
        self.text(&text, most);
    }
}

struct In<'b> {
    bytes: &'b [u8],
    base: Tick,
}

impl<'b> In<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = *self.take(1)?.first()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn place(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn short(&mut self) -> Option<u16> {
        u16::try_from(self.number()?).ok()
    }

    fn time(&mut self) -> Option<Tick> {
        let distance = self.number()?;
        Some(distance.checked_sub(1).map_or(Tick::ZERO, |distance| Tick(self.base.0.wrapping_add(distance))))
    }

    fn text(&mut self) -> Option<&'b [u8]> {
        let length = self.place()?;
        self.take(length)
    }

    fn string(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.text()?).into_owned())
    }
}

#[cfg(test)]
mod tests;
