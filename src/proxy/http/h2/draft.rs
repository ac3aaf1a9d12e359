//! From decoded lines to the head of a request, as strict as a request line of HTTP/1.1 (RFC 9113 §8.2, §8.3).
//!
//! What comes out is written to backends as HTTP/1.1 by copying it, so whatever another reader could take for something else
//! ends here: a blank in `:path`, a second authority, a length that is not that of the body.

use crate::message::{Cause, Framing, Head, HeaderField};
use crate::proxy::http::h1::chunk::is_barred_trailer;
use crate::proxy::http::h1::{classes, framing, parse};

use super::hpack::{FieldLine, LineKind, Pseudo};

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
    /// Values of pseudo-header fields, one behind the other.
    pseudo: Vec<u8>,
    /// The parts of the cookie line.
    cookie: Vec<u8>,
    /// The last authority that was found to be one: nearly always the next one is the same.
    authority: Vec<u8>,
}

/// Where the value of a pseudo-header field stands.
type Place = Option<(u32, u32)>;

/// A request's head in the making.
pub struct RequestDraft<'a> {
    head: &'a mut Head,
    space: &'a mut DraftSpace,
    limits: HeadLimits,
    method: Place,
    scheme: Place,
    authority: Place,
    path: Place,
    /// The request line is written: what follows are lines.
    begun: bool,
    crumbs: usize,
    lines: usize,
    fault: Option<HeadFault>,
}

const BAD: HeadFault = HeadFault::Malformed(Cause::BadHead);

impl<'a> RequestDraft<'a> {
    /// Begins one in `head`.
    #[must_use]
    pub fn new(head: &'a mut Head, space: &'a mut DraftSpace, limits: HeadLimits) -> RequestDraft<'a> {
        head.clear();
        space.pseudo.clear();
        space.cookie.clear();
        RequestDraft {
            head,
            space,
            limits,
            method: None,
            scheme: None,
            authority: None,
            path: None,
            begun: false,
            crumbs: 0,
            lines: 0,
            fault: None,
        }
    }

    /// Takes the next line.
    #[inline]
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

    /// What is malformed stays so; of other faults the first one counts.
    fn note(&mut self, fault: HeadFault) {
        if !matches!(
            (self.fault, fault),
            (Some(HeadFault::Malformed(_)), _) | (Some(_), HeadFault::Refused(_))
        ) {
            self.fault = Some(fault);
        }
    }

    fn pseudo(&mut self, pseudo: Pseudo, value: &[u8]) -> Result<(), HeadFault> {
        let place = match pseudo {
            Pseudo::Method => &mut self.method,
            Pseudo::Scheme => &mut self.scheme,
            Pseudo::Authority => &mut self.authority,
            Pseudo::Path => &mut self.path,
            // Of answers, and of what we have not said that we take (RFC 8441 §3).
            Pseudo::Status | Pseudo::Protocol => return Err(BAD),
        };
        // They come first, and each of them once (RFC 9113 §8.3).
        if self.begun || place.is_some() {
            return Err(BAD);
        }
        let start = self.space.pseudo.len();
        if start + value.len() > self.limits.size {
            return Err(HeadFault::Refused(Cause::TargetTooLong));
        }
        self.space.pseudo.extend_from_slice(value);
        // Both are within the limit of a head.
        *place = Some((start as u32, self.space.pseudo.len() as u32));
        Ok(())
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
            HeaderField::Host if self.authority.is_some() => {
                let same = line.value().eq_ignore_ascii_case(at(self.space, self.authority));
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
        let (method, path) = (at(self.space, self.method), at(self.space, self.path));
        if method.is_empty() || !method.iter().all(|&byte| classes::is_token(byte)) {
            return Err(BAD);
        }
        let is_connect = method == b"CONNECT";
        if is_connect {
            // §8.5. It is refused, but by its name.
            if self.scheme.is_some() || self.path.is_some() || self.authority.is_none() {
                return Err(BAD);
            }
        } else {
            let scheme = at(self.space, self.scheme);
            if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known.as_bytes())) {
                return Err(BAD);
            }
            let is_form = matches!(path.first(), Some(b'/')) || path == b"*" && method == b"OPTIONS";
            if !is_form || !parse::is_target(path) {
                return Err(BAD);
            }
        }
        self.head.begin_request(method, path);
        if self.authority.is_some() {
            let authority = at(self.space, self.authority);
            if authority.is_empty() || self.space.authority != authority {
                if !parse::is_authority(authority) {
                    return Err(HeadFault::Malformed(Cause::BadHost));
                }
                self.space.authority = authority.to_vec();
            }
            let authority = at(self.space, self.authority);
            self.head.push_host(authority);
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
        if self.authority.is_none() {
            // Then Host says it (§8.3.1).
            parse::host(self.head).map_err(HeadFault::Malformed)?;
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

fn at(space: &DraftSpace, place: Place) -> &[u8] {
    let (start, end) = place.unwrap_or_default();
    space.pseudo.get(start as usize..end as usize).unwrap_or_default()
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
