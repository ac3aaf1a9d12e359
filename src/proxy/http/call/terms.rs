//! What else holds for a call of gRPC: either side may be silent while the other is not, it has an end of its own, and how well it was
//! served says only what follows the head of its answer.

use std::task::{Context, Poll};
use std::time::Duration;

use crate::config::model::{GrpcStatus, GrpcStatuses};
use crate::message::{Cause, Head};
use crate::net::{Piece, now};
use crate::targets::Heard;
use crate::tick::Tick;

use super::Call;
use super::sending::SendState;

/// The terms of one call.
#[derive(Clone, Debug)]
pub struct CallTerms {
    /// When it is over, whatever it is doing.
    due: Tick,
    /// The statuses that the breaker counts.
    failures: GrpcStatuses,
    /// It is one, and not its form for the web.
    is_call: bool,
    /// Its backend has heard of how it went so far.
    is_told: bool,
}

impl CallTerms {
    /// Those of a call that is over at `due`, where the breaker counts these statuses. `is_call`: it is not the form for the web.
    #[must_use]
    pub fn new(due: Tick, failures: GrpcStatuses, is_call: bool) -> CallTerms {
        CallTerms { due, failures, is_call, is_told: false }
    }

    /// What a status says about a backend.
    fn heard(&self, status: GrpcStatus) -> Heard {
        let code = status.http();
        Heard {
            fault: code >= 500 || code == 429,
            error: code >= 500,
            failure: self.failures.has(status),
            retry_after: None,
        }
    }
}

impl Call {
    /// It is a call of gRPC, on these terms, and in its body as patient as this.
    #[cold]
    pub fn set_terms(&mut self, terms: CallTerms, silence: Duration) {
        self.patience.idle = silence;
        self.terms = Some(Box::new(terms));
    }

    /// Waits for either side of a call that goes on.
    #[cold]
    pub(super) fn poll_terms(&mut self, cx: &mut Context<'_>) -> Poll<Cause> {
        let Some(terms) = self.terms.as_deref() else { return Poll::Pending };
        let state = self.carrier.send_state();
        let is_asked = matches!(state, SendState::Done) && !self.in_body;
        let silence = match terms.due {
            // Nobody has said how long an answer may take.
            Tick::NEVER if is_asked => self.patience.first_byte,
            _ => self.patience.idle,
        };
        let left = if terms.due == Tick::NEVER { Duration::MAX } else { terms.due.since(now()) };
        self.deadline.set_if_clear(silence.min(left));
        self.deadline.poll(cx).map(|()| {
            let is_blocked = matches!(state, SendState::Blocked);
            match (self.in_body, terms.is_call) {
                _ if now() >= terms.due => Cause::GrpcTimeout,
                (false, _) if is_asked || is_blocked => Cause::FirstByteTimeout,
                // Neither of the two has said a word, and nobody is to blame for that.
                (_, true) => Cause::TunnelIdle,
                (true, false) => Cause::AnswerStalled,
                (false, false) => Cause::BodyTimeout,
            }
        })
    }

    /// Tells what the head of a call's answer says: how it has ended, or that it goes on. False: it is no answer of gRPC, and what it says in
    /// HTTP is all that there is.
    #[inline(never)]
    pub(super) fn note_call(&mut self, answer: &Head) -> bool {
        if answer.status != 200 {
            if let Some(terms) = &mut self.terms {
                terms.is_told = true;
            }
            return false;
        }
        self.lease.note_begun(self.read);
        if let Some(status) = GrpcStatus::of_head(answer) {
            self.note_status(Some(status), self.read);
        }
        true
    }

    /// Notes what has come of a call's answer. With a message the backend is doing what it is to do; and when the time of a call is over its
    /// backend may be the first to end it.
    #[inline(never)]
    pub(super) fn note_piece(
        &mut self,
        outcome: Result<Option<Piece>, Cause>,
    ) -> Result<Option<Piece>, Cause> {
        let Some(terms) = self.terms.as_deref() else { return outcome };
        match &outcome {
            Ok(Some(_)) if !terms.is_told => self.note_status(None, now()),
            Err(_) if terms.due <= now() => return Err(Cause::GrpcTimeout),
            Ok(_) | Err(_) => {}
        }
        outcome
    }

    /// Tells what the end of a call's answer says, if that is something new.
    #[inline(never)]
    pub(super) fn note_call_end(&mut self, now: Tick) {
        let status = GrpcStatus::of_trailers(self.trailers());
        self.note_status(status, now);
    }

    /// Tells how it goes, unless that is well and was told. `None`: nobody has said that it does not.
    fn note_status(&mut self, status: Option<GrpcStatus>, now: Tick) {
        let Some(terms) = &mut self.terms else { return };
        let heard = status.map_or(Heard::GOOD, |status| terms.heard(status));
        if !std::mem::replace(&mut terms.is_told, true) || heard != Heard::GOOD {
            self.lease.note_outcome(heard, self.read, now);
        }
    }
}
