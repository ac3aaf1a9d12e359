//! What a client is waited for, and until when.
//!
//! One thing at a time is waited for, so one deadline does for all of them; thousands of clients are idle, and each has one.

use std::cell::Cell;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::net::Deadline;

/// What a client is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientWait {
    /// Nothing.
    #[default]
    Nothing,
    /// The first byte of its next request.
    Request,
    /// The rest of a head.
    Head,
    /// The next bytes of a request's body.
    Body,
    /// Not the client but the answer of a backend: while that is quick, the event loop need not watch the client.
    QuickAnswer,
    /// A sign that it is still there, while its request waits for a backend.
    Presence,
    /// Bytes in a tunnel, in either direction.
    Tunnel,
    /// The end of what it still sends behind the last answer.
    Rest,
}

/// The deadline of a client, and what it is about. The client holds the two apart: so one of them fits beside what else is
/// small.
#[derive(Clone, Copy)]
pub struct ClientTimer<'a> {
    deadline: &'a Deadline,
    wait: &'a Cell<ClientWait>,
}

impl<'a> ClientTimer<'a> {
    /// The two together.
    #[must_use]
    pub fn new(deadline: &'a Deadline, wait: &'a Cell<ClientWait>) -> ClientTimer<'a> {
        ClientTimer { deadline, wait }
    }

    /// From now on the client is waited for, for `span`.
    pub fn begin(self, wait: ClientWait, span: Duration) {
        self.wait.set(wait);
        self.deadline.set(span);
    }

    /// The same, unless something is waited for already.
    pub fn begin_if_idle(self, wait: ClientWait, span: Duration) {
        if self.wait.get() == ClientWait::Nothing {
            self.begin(wait, span);
        }
    }

    /// Ready once `wait` has taken too long. Without [`ClientTimer::begin`] it may take any time.
    pub fn poll(self, wait: ClientWait, cx: &mut Context<'_>) -> Poll<()> {
        let current = self.wait.get();
        debug_assert!(
            current == wait || current == ClientWait::Nothing,
            "{current:?} is waited for, not {wait:?}"
        );
        self.deadline.poll(cx)
    }

    /// Nothing is waited for any more.
    pub fn end(self) {
        self.wait.set(ClientWait::Nothing);
        self.deadline.clear();
    }

    /// The deadline itself, for who sets it by rules of its own while `wait` is waited for.
    pub fn lend(self, wait: ClientWait) -> &'a Deadline {
        self.wait.set(wait);
        self.deadline
    }
}
