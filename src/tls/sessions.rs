//! Sessions of clients that have shown a certificate, and whether they may still be resumed.
//!
//! A certificate is verified in a full handshake only, and whoever resumes a session is given a new ticket. So one that has
//! run out would let its owner in for as long as it comes back now and then. Here such a session counts as unknown: the
//! client shakes hands in full, and shows the certificate that it has by now.

use std::sync::Arc;

use rustls::pki_types::UnixTime;
use rustls::server::{ProducesTickets, StoresServerSessions};
use rustls::time_provider::TimeProvider;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::TicketKeys;

/// Bytes of a session that is kept. It holds the client's whole chain, which may be longer than a ticket can be (64 KiB), and
/// a client may fill it up at will.
const LARGEST: usize = 16 * 1024;

/// Gives back only sessions whose certificate is in force.
#[derive(Debug)]
pub(super) struct InForce<T> {
    pub(super) sessions: T,
    pub(super) clock: Arc<dyn TimeProvider>,
    /// In seconds since 1970: until then it is known which certificates are revoked; `None`: for ever, or nobody says.
    pub(super) until: Option<u64>,
}

impl<T> InForce<T> {
    fn check(&self, session: Vec<u8>) -> Option<Vec<u8>> {
        let now = self.clock.current_time()?;
        let may = match shown(&session)? {
            Shown::Nothing => true,
            Shown::Certificate(leaf) => {
                let (_, leaf) = X509Certificate::from_der(leaf).ok()?;
                let end = u64::try_from(leaf.validity().not_after.timestamp()).unwrap_or(0);
                let end = self.until.map_or(end, |until| end.min(until));
                now <= UnixTime::since_unix_epoch(std::time::Duration::from_secs(end))
            }
        };
        may.then_some(session)
    }
}

impl ProducesTickets for InForce<Arc<TicketKeys>> {
    fn enabled(&self) -> bool {
        self.sessions.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.sessions.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        if plain.len() > LARGEST { None } else { self.sessions.encrypt(plain) }
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.check(self.sessions.decrypt(ticket)?)
    }
}

impl<T: StoresServerSessions> StoresServerSessions for InForce<Arc<T>> {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        value.len() <= LARGEST && self.sessions.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.check(self.sessions.get(key)?)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.check(self.sessions.take(key)?)
    }

    fn can_cache(&self) -> bool {
        self.sessions.can_cache()
    }
}

/// What the client of a session has shown.
#[derive(Debug, PartialEq, Eq)]
enum Shown<'a> {
    Nothing,
    /// Its own certificate.
    Certificate(&'a [u8]),
}

/// Reads a session as rustls writes it: name, version, suite, secret, a flag, chain. `None`: it is written otherwise, and is
/// not resumed then; tests of resumption notice.
fn shown(session: &[u8]) -> Option<Shown<'_>> {
    let mut rest = Rest(session);
    if rest.number(1)? == 1 {
        rest.skip_with_length()?;
    }
    rest.take(4)?;
    rest.skip_with_length()?;
    rest.take(1)?;
    if rest.number(1)? == 0 {
        return Some(Shown::Nothing);
    }
    rest.take(3)?;
    let length = rest.number(3)?;
    rest.take(length).map(Shown::Certificate)
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        Some(self.take(bytes)?.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    }

    fn skip_with_length(&mut self) -> Option<()> {
        let length = self.number(1)?;
        self.take(length).map(|_| ())
    }
}

#[cfg(test)]
mod tests;
