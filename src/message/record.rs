//! One fixed-size value per request or connection: what happened, when, and why it ended.
//!
//! Plain data without allocation. The access log is its first reader; metrics are the second. Text that
//! varies (path, host) stays in the request's `Head` and is handed to readers beside the Record.

use super::{CacheNote, Cause, ClientAddress};
use crate::config::model::GrpcStatus;
use crate::tick::Tick;

/// A listener's number: its slot as long as it lives, over any number of configs (`slots`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ListenerId(pub u16);

/// A target's number, in the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TargetId(pub u16);

/// The number of a route, or of the way from it to one of its targets, in the same way, over all listeners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteId(pub u16);

/// A backend's number, in the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BackendId(pub u32);

/// How many attempts a Record keeps; later ones overwrite the last.
pub const ATTEMPTS: usize = 4;

/// One try on one backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// Which backend.
    pub backend: BackendId,
    /// How it ended; [`Cause::Done`] when its answer was used.
    pub outcome: Cause,
    /// It went out on a pooled connection.
    pub reused: bool,
    /// It went out once more, as the pooled connection was closed without an answer.
    pub resent: bool,
    /// How the backend was when it was chosen.
    pub pick: PickNote,
    /// The backend was chosen.
    pub picked: Tick,
    /// The TCP connection stood, where TLS came after it; zero: there was none, or it was pooled.
    pub stood: Tick,
    /// The connection stood, with TLS where there is any; equal to `picked` on a pooled one.
    pub connected: Tick,
    /// The last byte of the request head was written.
    pub sent: Tick,
    /// The first byte of the answer came; zero: none did.
    pub first_byte: Tick,
    /// It ended.
    pub end: Tick,
}

/// How a backend was when it was chosen, in one byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PickNote(pub u8);

impl PickNote {
    const TRIAL: u8 = 0x80;
    /// So many requests or more.
    pub const MANY: u8 = 0x7f;

    /// Of one that has so many requests with this one. `is_trial`: it had been left out, and this one finds out whether it is back.
    #[must_use]
    #[inline]
    pub fn new(in_flight: u32, is_trial: bool) -> PickNote {
        // At most `MANY`, so nothing is cut.
        PickNote(in_flight.min(PickNote::MANY.into()) as u8 | if is_trial { PickNote::TRIAL } else { 0 })
    }

    /// Requests that it had with this one; [`PickNote::MANY`] is that or more, 0 is not known.
    #[must_use]
    pub fn in_flight(self) -> u8 {
        self.0 & PickNote::MANY
    }

    /// Whether it had been left out.
    #[must_use]
    pub fn is_trial(self) -> bool {
        self.0 & PickNote::TRIAL != 0
    }
}

/// What a Record is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordKind {
    /// One HTTP request.
    #[default]
    Http,
    /// An HTTP request that became a tunnel.
    Upgrade,
    /// One TCP connection.
    Tcp,
    /// One flow of UDP.
    Udp,
}

impl RecordKind {
    /// Whether it is about requests of HTTP, or what became of one.
    #[must_use]
    #[inline]
    pub const fn is_of_http(self) -> bool {
        matches!(self, RecordKind::Http | RecordKind::Upgrade)
    }
}

/// Whether a request is traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracing {
    /// Nothing is.
    #[default]
    Off,
    /// Only if it fails, is tried again, or is slow.
    Unsampled,
    /// Not at all, though its turn had come: there were enough in that second. Others are told what they are told of an unsampled one.
    Surplus,
    /// Whatever becomes of it.
    Sampled,
}

/// What a TLS handshake with a client came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsSession {
    /// It speaks TLS 1.3, and otherwise 1.2: no other is spoken. Small, since idle connections hold it.
    pub is_tls13: bool,
    /// An earlier session was continued.
    pub resumed: bool,
}

impl TlsSession {
    /// `1.2` or `1.3`.
    #[must_use]
    pub const fn version(self) -> &'static str {
        if self.is_tls13 { "1.3" } else { "1.2" }
    }
}

/// What happened to one request or connection. A zero [`Tick`] means: did not happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Request, tunnel, TCP connection or flow.
    pub kind: RecordKind,
    /// The client's address; `None` on a unix socket.
    pub client: Option<ClientAddress>,
    /// Where it came in.
    pub listener: ListenerId,
    /// By which route, and on which way from there.
    pub route: Option<RouteId>,
    /// Where it was routed.
    pub target: Option<TargetId>,
    /// Number of the request; printed as 32 hex digits. Zero: none was given.
    pub id: u128,
    /// The status that was sent to the client; 0: none.
    pub status: u16,
    /// Why it ended.
    pub cause: Cause,
    /// What its call of gRPC ended with; `None`: it was none, or nobody has said.
    pub grpc: Option<GrpcStatus>,
    /// Whether it is traced.
    pub tracing: Tracing,
    /// The number of its span, where that is not off.
    pub span: u64,
    /// What the cache has done for it; `None`: its route has none.
    pub cache: Option<CacheNote>,
    /// The connection was accepted.
    pub accepted: Tick,
    /// The TLS handshake was complete.
    pub secured: Tick,
    /// What it came to; `None`: no TLS.
    pub tls: Option<TlsSession>,
    /// The first byte of this request came.
    pub started: Tick,
    /// The head was complete.
    pub head_read: Tick,
    /// A target was chosen.
    pub routed: Tick,
    /// Another service was asked whether its client may come in.
    pub asked: Tick,
    /// That has answered.
    pub told: Tick,
    /// It began to wait for a backend: for its first verdict, or for room.
    pub waited: Tick,
    /// The last byte of the answer was handed to the kernel, or the end of a tunnel.
    pub done: Tick,
    /// Body bytes from the client.
    pub bytes_in: u64,
    /// Body bytes to the client.
    pub bytes_out: u64,
    /// Attempts made; may exceed [`ATTEMPTS`].
    pub attempts_made: u8,
    /// The first attempts.
    pub attempts: [Attempt; ATTEMPTS],
}

impl Record {
    /// Forgets everything. The attempts stay where nobody looks: those made are counted, and there are none.
    pub fn clear(&mut self) {
        let Record {
            kind,
            client,
            listener,
            route,
            target,
            id,
            status,
            cause,
            grpc,
            tracing,
            span,
            cache,
            accepted,
            secured,
            tls,
            started,
            head_read,
            routed,
            asked,
            told,
            waited,
            done,
            bytes_in,
            bytes_out,
            attempts_made,
            attempts: _,
        } = self;
        (*kind, *client, *listener, *route, *target, *id) = Default::default();
        *grpc = None;
        (*status, *cause, *tracing, *span, *cache, *accepted, *secured, *tls) = Default::default();
        (*started, *head_read, *routed, *asked, *told, *waited, *done) = Default::default();
        (*bytes_in, *bytes_out, *attempts_made) = Default::default();
    }

    /// The status that says how it went: that of HTTP, or the one that its call's own stands for. Where we have ended the call ourselves, the
    /// cause knows better.
    #[must_use]
    #[inline]
    pub fn meaning(&self) -> u16 {
        match self.grpc {
            None | Some(GrpcStatus::Ok) => self.status,
            Some(ended) if self.cause == Cause::Done => ended.http(),
            Some(_) => self.cause.status(),
        }
    }

    /// How many times the request went out to backends.
    #[must_use]
    pub fn sends(&self) -> u8 {
        let resent = self.kept_attempts().iter().filter(|attempt| attempt.resent).count();
        self.attempts_made.saturating_add(u8::try_from(resent).unwrap_or(u8::MAX))
    }

    /// Starts an attempt on `backend` at `now` and gives its entry.
    pub fn attempt(&mut self, backend: BackendId, now: Tick) -> &mut Attempt {
        let place = usize::from(self.attempts_made).min(ATTEMPTS - 1);
        self.attempts_made = self.attempts_made.saturating_add(1);
        let attempt = &mut self.attempts[place];
        *attempt = Attempt { backend, picked: now, ..Attempt::default() };
        attempt
    }

    /// The latest attempt, if one was made.
    pub fn last_attempt(&mut self) -> Option<&mut Attempt> {
        let place = usize::from(self.attempts_made).checked_sub(1)?.min(ATTEMPTS - 1);
        Some(&mut self.attempts[place])
    }

    /// Makes the attempt before the latest one the latest: it is the one that counts.
    pub fn swap_last(&mut self) {
        if let Some(before) = usize::from(self.attempts_made).checked_sub(2)
            && before + 1 < ATTEMPTS
        {
            self.attempts.swap(before, before + 1);
        }
    }

    /// The attempts that are kept, oldest first.
    #[must_use]
    pub fn kept_attempts(&self) -> &[Attempt] {
        &self.attempts[..usize::from(self.attempts_made).min(ATTEMPTS)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleared_record_says_nothing() {
        let mut record = Record { status: 200, id: 7, done: Tick(9), ..Record::default() };
        record.attempt(BackendId(1), Tick(5)).reused = true;
        record.clear();
        assert!(record.kept_attempts().is_empty() && record.last_attempt().is_none());
        assert_eq!(
            *record.attempt(BackendId(2), Tick(6)),
            Attempt { backend: BackendId(2), picked: Tick(6), ..Attempt::default() }
        );
        assert_eq!(Record { attempts: Default::default(), attempts_made: 0, ..record }, Record::default());
    }

    #[test]
    fn the_attempt_that_counts_can_be_made_the_last_one() {
        let mut record = Record::default();
        record.swap_last();
        for number in 0..2 {
            record.attempt(BackendId(number), Tick(u64::from(number)));
        }
        record.swap_last();
        let kept: Vec<u32> = record.kept_attempts().iter().map(|a| a.backend.0).collect();
        assert_eq!((kept, record.attempts_made), (vec![1, 0], 2));
    }

    #[test]
    fn a_note_of_a_pick_has_room_for_what_matters() {
        for (in_flight, is_trial, kept) in [(0, false, 0), (1, true, 1), (127, false, 127), (4000, true, 127)]
        {
            let note = PickNote::new(in_flight, is_trial);
            assert_eq!((note.in_flight(), note.is_trial()), (kept, is_trial));
        }
        assert_eq!(size_of::<Attempt>(), 56, "the note stands where nothing stood");
    }

    #[test]
    fn a_fifth_attempt_overwrites_the_fourth() {
        let mut record = Record::default();
        assert!(record.last_attempt().is_none());
        for number in 0..5 {
            record.attempt(BackendId(number), Tick(u64::from(number)));
        }
        let kept: Vec<u32> = record.kept_attempts().iter().map(|a| a.backend.0).collect();
        assert_eq!(kept, [0, 1, 2, 4]);
        assert_eq!(record.attempts_made, 5);
        assert_eq!(record.last_attempt().map(|a| a.backend), Some(BackendId(4)));
    }
}
