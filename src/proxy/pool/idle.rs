//! A connection that waits for its next request, and whether it is fit for one.

use std::sync::Arc;
use std::time::Duration;

use crate::net::Stream;
use crate::targets::Backend;
use crate::telemetry::cells::Cells;
use crate::tick::Tick;

/// Longest idle time.
pub const IDLE: Duration = Duration::from_secs(90);

/// A connection rests when it was not used for this long.
pub(super) const RESTS: Duration = Duration::from_secs(1);
/// A request that may not be repeated takes a connection at most this long idle.
const RECENT: Duration = Duration::from_secs(1);
/// An idle time that every backend that keeps connections at all is trusted to grant.
const TRUSTED: Duration = Duration::from_millis(20);

/// What a request needs of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Any: if it turns out to have been closed before, the request is repeated.
    Repeatable,
    /// One that surely is open: the request can't be repeated.
    Once,
}

/// A connection whose request is over.
pub struct Used {
    /// The connection.
    pub stream: Stream,
    /// What the backend said of its own patience.
    pub keep_for: Option<Duration>,
    /// The backend's from before the connection was made.
    pub generation: u32,
}

/// A connection that waits for its next request.
pub(super) struct Idle {
    pub(super) stream: Stream,
    pub(super) since: Tick,
    pub(super) until: Tick,
    pub(super) generation: u32,
}

impl Idle {
    /// What rests from `now` on; `None`: the backend has changed since, or will not keep it for long enough.
    #[inline]
    pub(super) fn new(backend: &Backend, used: Used, now: Tick) -> Option<Idle> {
        let Used { stream, keep_for, generation } = used;
        // One second less than promised, so that we are the first to close.
        let keep_for =
            keep_for.map_or(IDLE, |promised| promised.saturating_sub(Duration::from_secs(1)).min(IDLE));
        // A worker that has not gone over to another config yet may have used one that is gone from it.
        let worth = backend.generation() == generation && !backend.is_gone() && !keep_for.is_zero();
        worth.then(|| Idle { stream, since: now, until: now.after(keep_for), generation })
    }

    /// Whether it may be used; if not, it is counted why.
    #[inline]
    pub(super) fn is_fit(&self, cells: &Cells, backend: &Backend, need: Need, now: Tick) -> bool {
        if self.generation != backend.generation() || now > self.until {
            cells.pool.closed_idle.increment();
            false
        } else if self.is_broken(need) {
            backend.note_idle_close(now.since(self.since));
            cells.pool.discarded_stale.increment();
            false
        } else {
            true
        }
    }

    /// True when there are bytes nobody asked for, or the end: either way it is not to be used.
    ///
    /// The runtime may take a connection for readable whose last byte was read together with those before it;
    /// only the kernel knows. It also knows of an end that the runtime has not been told of yet.
    pub(super) fn is_broken(&self, need: Need) -> bool {
        (need == Need::Once || self.stream.is_readable_now()) && !self.stream.is_silent()
    }
}

/// An idle connection, and where it leads.
pub(super) struct IdleTo {
    pub(super) backend: Arc<Backend>,
    pub(super) idle: Idle,
}

impl IdleTo {
    /// Whether it may wait on; if not, it is counted why.
    pub(super) fn may_stay(&self, cells: &Cells, now: Tick) -> bool {
        let fit = self.idle.is_fit(cells, &self.backend, Need::Repeatable, now);
        if fit {
            self.backend.note_idle_open(now.since(self.idle.since));
        }
        fit
    }
}

/// How long a connection may have been idle so that `backend` surely does not close it at this very moment:
/// half of the time for which it was seen to keep one. A backend that closes idle connections early can't be
/// asked for its patience, and finding it out by failing would cost a request that can't be repeated.
pub(super) fn surely_open(backend: &Backend) -> Duration {
    (backend.idle_proven() / 2).clamp(TRUSTED, RECENT)
}
