//! From decoded lines to the head of a request, as strict as a request line of HTTP/1.1 (RFC 9113 §8.2, §8.3).
//!
//! What comes out is written to backends as HTTP/1.1 by copying it, so whatever another reader could take for something else
//! ends here: a blank in `:path`, a second authority, a length that is not that of the body.

pub mod answer;

use crate::message::{Cause, Framing, Head, HeaderField, LineRun};
use crate::proxy::http::h1::chunk::is_barred_trailer;
use crate::proxy::http::h1::{classes, framing, parse};

use super::hpack::{FieldLine, LineKind, Pseudo};
use crate::proxy::http::websocket::handshake::KEY;

/// Why a head is none that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadFault {
    /// It breaks RFC 9113: the stream ends with PROTOCOL_ERROR. The cause is for the record.
    Malformed(Cause),
    /// The client is told so in an answer.
    Refused(Cause),
}

/// What a head may be.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// Its bytes, as HTTP/1.1 counts them.
    pub size: usize,
    /// Its lines.
    pub lines: usize,
}

/// Memory for what must be known whole before a head is begun.
#[derive(Debug, Default)]
pub struct DraftSpace {
    /// Values of pseudo-header fields, of this request or, where it has none, of one before.
    method: Vec<u8>,
    path: Vec<u8>,
    authority: Vec<u8>,
    /// The parts of the cookie line.
    cookie: Vec<u8>,
    /// The last authority that was found to be one, as the line of Host: nearly always the next one is the same.
    host: Vec<u8>,
}

/// Pseudo-header fields that have come, as bits.
const METHOD: u8 = 1;
const SCHEME: u8 = 2;
const AUTHORITY: u8 = 4;
const PATH: u8 = 8;
const PROTOCOL: u8 = 16;

/// A request's head in the making.
pub struct RequestDraft<'a> {
    head: &'a mut Head,
    space: &'a mut DraftSpace,
    limits: HeadLimits,
    /// Which pseudo-header fields have come.
    seen: u8,
    /// The scheme is one of the two.
    is_web: bool,
    /// The protocol of an extended CONNECT is the one that we know.
    is_websocket: bool,
    /// The request line is written: what follows are lines.
    begun: bool,
    /// One of the lines was Host.
    has_host: bool,
    crumbs: usize,
    lines: usize,
    fault: Option<HeadFault>,
}

/// What the line of Host begins with.
const HOST: &[u8] = b"host: ";
const BAD: HeadFault = HeadFault::Malformed(Cause::BadHead);

impl<'a> RequestDraft<'a> {
    /// Begins one in `head`.
    #[must_use]
    pub fn new(head: &'a mut Head, space: &'a mut DraftSpace, limits: HeadLimits) -> RequestDraft<'a> {
        head.clear();
        space.cookie.clear();
        RequestDraft {
            head,
            space,
            limits,
            seen: 0,
            is_web: false,
            is_websocket: false,
            begun: false,
            has_host: false,
            crumbs: 0,
            lines: 0,
            fault: None,
        }
    }

    /// Takes the next line.
    #[inline(always)]
    pub fn line(&mut self, line: &FieldLine<'_>) {
        let taken = match line.kind {
            LineKind::Pseudo(pseudo) => self.pseudo(pseudo, line.value()),
            LineKind::Field(field) => self.field(field, line),
            LineKind::Malformed => Err(BAD),
        };
        if let Err(fault) = taken {
            self.note(fault);
        }
    }

    /// True when a line has come that is no pseudo-header field.
    #[inline]
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.begun
    }

    /// True when its lines would be the same behind another path and with another authority.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        self.begun && self.fault.is_none() && self.has(AUTHORITY) && !self.has_host && !self.has(PROTOCOL)
    }

    /// Takes all lines at once, which a repeatable request of the same limits has had. False: it takes them one by one.
    pub fn lines(&mut self, lines: &LineRun) -> bool {
        if self.begun || !self.has(AUTHORITY) || self.has(PROTOCOL) {
            return false;
        }
        if let Err(fault) = self.begin() {
            self.note(fault);
        }
        let fits = self.fault.is_none() && self.head.len() + lines.len() <= self.limits.size;
        if fits {
            self.head.push_run(lines);
        }
        fits
    }

    /// What is malformed stays so; of other faults the first one counts.
    fn note(&mut self, fault: HeadFault) {
        if !matches!(
            (self.fault, fault),
            (Some(HeadFault::Malformed(_)), _) | (Some(_), HeadFault::Refused(_))
        ) {
            self.fault = Some(fault);
        }
    }

    #[inline]
    fn pseudo(&mut self, pseudo: Pseudo, value: &[u8]) -> Result<(), HeadFault> {
        let (bit, place) = match pseudo {
            Pseudo::Method => (METHOD, Some(&mut self.space.method)),
            Pseudo::Scheme => (SCHEME, None),
            Pseudo::Authority => (AUTHORITY, Some(&mut self.space.authority)),
            Pseudo::Path => (PATH, Some(&mut self.space.path)),
            Pseudo::Protocol => (PROTOCOL, None),
            // Of answers.
            Pseudo::Status => return Err(BAD),
        };
        // They come first, and each of them once (RFC 9113 §8.3).
        if self.begun || self.seen & bit != 0 {
            return Err(BAD);
        }
        if value.len() > self.limits.size {
            return Err(HeadFault::Refused(Cause::TargetTooLong));
        }
        self.seen |= bit;
        match place {
            Some(place) => {
                place.clear();
                place.extend_from_slice(value);
            }
            None if bit == PROTOCOL => self.is_websocket = value.eq_ignore_ascii_case(b"websocket"),
            None => {
                let is_known = |known: &[u8]| value.eq_ignore_ascii_case(known);
                self.is_web = value == b"https" || is_known(b"http") || is_known(b"https");
            }
        }
        Ok(())
    }

    #[inline]
    fn has(&self, bit: u8) -> bool {
        self.seen & bit != 0
    }

    fn field(&mut self, field: HeaderField, line: &FieldLine<'_>) -> Result<(), HeadFault> {
        if !self.begun {
            self.begin()?;
        }
        match field {
            // RFC 9113 §8.2.2: what is about one connection has no place here.
            HeaderField::Connection
            | HeaderField::KeepAlive
            | HeaderField::ProxyConnection
            | HeaderField::TransferEncoding
            | HeaderField::Upgrade => return Err(BAD),
            HeaderField::Te if !line.value().eq_ignore_ascii_case(b"trailers") => return Err(BAD),
            _ if self.fault.is_some() => return Ok(()),
            // It has no place there (RFC 8441 §5), and a backend gets ours.
            _ if self.has(PROTOCOL) && line.name() == KEY.as_bytes() => return Ok(()),
            _ => {}
        }
        self.lines += 1;
        if self.lines > self.limits.lines {
            return Err(HeadFault::Refused(Cause::TooManyHeaders));
        }
        if self.head.len() + self.space.cookie.len() + line.bytes.len() > self.limits.size {
            return Err(HeadFault::Refused(Cause::HeadTooLarge));
        }
        match field {
            // §8.3.1: the two say the same, and one of them goes on.
            HeaderField::Host if self.has(AUTHORITY) => {
                self.has_host = true;
                let same = line.value().eq_ignore_ascii_case(&self.space.authority);
                return if same { Ok(()) } else { Err(HeadFault::Malformed(Cause::BadHost)) };
            }
            // §8.2.3: HTTP/1.1 knows one line of them.
            HeaderField::Cookie => {
                if self.crumbs > 0 {
                    self.space.cookie.extend_from_slice(b"; ");
                } else {
                    self.space.cookie.extend_from_slice(b"cookie: ");
                }
                self.crumbs += 1;
                self.space.cookie.extend_from_slice(line.value());
            }
            field => self.head.push_line(field, line.bytes, line.name),
        }
        Ok(())
    }

    /// Writes the request line, and Host if there is an authority.
    fn begin(&mut self) -> Result<(), HeadFault> {
        self.begun = true;
        if self.fault.is_some() {
            return Ok(());
        }
        let DraftSpace { method, path, .. } = &mut *self.space;
        let is_method = !method.is_empty() && method.iter().all(|&byte| classes::is_token(byte));
        if self.seen & METHOD == 0 || !is_method {
            return Err(BAD);
        }
        if self.seen & PROTOCOL != 0 {
            return self.begin_tunnel();
        }
        if method == b"CONNECT" {
            // §8.5. It is refused, but by its name.
            if self.seen != METHOD | AUTHORITY {
                return Err(BAD);
            }
            path.clear();
        } else {
            if self.seen & PATH == 0 || !self.is_web {
                return Err(BAD);
            }
            let is_form = matches!(path.first(), Some(b'/')) || path == b"*" && method == b"OPTIONS";
            if !is_form || !parse::is_target(path) {
                return Err(BAD);
            }
        }
        self.head.begin_request(method, path);
        self.begin_lines()
    }

    /// Writes the request line of an extended CONNECT (RFC 8441 §4): what HTTP/1.1 has for it.
    #[cold]
    fn begin_tunnel(&mut self) -> Result<(), HeadFault> {
        let DraftSpace { method, path, .. } = &mut *self.space;
        let is_whole = self.seen == METHOD | SCHEME | AUTHORITY | PATH | PROTOCOL && self.is_web;
        if method != b"CONNECT" || !is_whole || path.first() != Some(&b'/') || !parse::is_target(path) {
            return Err(BAD);
        }
        self.head.begin_request(b"GET", path);
        self.begin_lines()?;
        if !self.is_websocket {
            return Err(HeadFault::Refused(Cause::ConnectMethod));
        }
        self.head.push_line(HeaderField::Connection, b"connection: upgrade\r\n", b"connection".len());
        self.head.push_line(HeaderField::Upgrade, b"upgrade: websocket\r\n", b"upgrade".len());
        Ok(())
    }

    /// Writes Host if there is an authority.
    #[inline(always)]
    fn begin_lines(&mut self) -> Result<(), HeadFault> {
        let DraftSpace { authority, host, .. } = &mut *self.space;
        if self.seen & AUTHORITY != 0 {
            let known = host.get(HOST.len()..).and_then(|rest| rest.strip_suffix(b"\r\n"));
            if known != Some(&authority[..]) {
                if !parse::is_authority(authority) {
                    return Err(HeadFault::Malformed(Cause::BadHost));
                }
                *host = [HOST, authority, b"\r\n"].concat();
            }
            self.head.push_host(host);
        }
        if self.head.len() > self.limits.size {
            return Err(HeadFault::Refused(Cause::TargetTooLong));
        }
        Ok(())
    }

    /// Ends it: how the body's length is known. `ended`: there is no body.
    ///
    /// # Errors
    /// See [`HeadFault`].
    pub fn finish(mut self, ended: bool) -> Result<Framing, HeadFault> {
        if !self.begun
            && let Err(fault) = self.begin()
        {
            self.note(fault);
        }
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.crumbs > 0 {
            self.space.cookie.extend_from_slice(b"\r\n");
            self.head.push_line(HeaderField::Cookie, &self.space.cookie, b"cookie".len());
        }
        if !self.has(AUTHORITY) {
            // Then Host says it (§8.3.1).
            parse::host(self.head).map_err(HeadFault::Malformed)?;
        }
        if self.has(PROTOCOL) {
            // What follows is no body.
            return match framing::request(self.head) {
                Ok(Framing::None) => Ok(Framing::None),
                Ok(_) => Err(HeadFault::Malformed(Cause::BadLength)),
                Err(cause) => Err(HeadFault::Malformed(cause)),
            };
        }
        match framing::request(self.head) {
            Ok(Framing::None | Framing::Length(0)) if ended => Ok(Framing::None),
            // A length that is not that of the body (§8.1.1).
            Ok(Framing::Length(_)) if ended => Err(HeadFault::Malformed(Cause::BadLength)),
            Ok(Framing::None) => Ok(Framing::Chunked),
            Ok(framing) => Ok(framing),
            Err(cause) => Err(HeadFault::Malformed(cause)),
        }
    }
}

/// The trailer section of a request in the making: lines as HTTP/1.1 writes them.
#[derive(Debug, Default)]
pub struct TrailersDraft {
    lines: Vec<u8>,
    is_bad: bool,
}

/// Most bytes of a trailer section, as with HTTP/1.1.
const TRAILERS: usize = 8 * 1024;

impl TrailersDraft {
    /// Takes the next line.
    pub fn line(&mut self, line: &FieldLine<'_>) {
        match line.kind {
            LineKind::Field(field)
                if !is_barred_trailer(field, line.name())
                    && self.lines.len() + line.bytes.len() <= TRAILERS =>
            {
                self.lines.extend_from_slice(line.bytes);
            }
            LineKind::Field(_) | LineKind::Pseudo(_) | LineKind::Malformed => self.is_bad = true,
        }
    }

    /// The lines; `None`: the section is malformed.
    #[must_use]
    pub fn finish(self) -> Option<Vec<u8>> {
        (!self.is_bad).then_some(self.lines)
    }
}

#[cfg(test)]
mod tests;
