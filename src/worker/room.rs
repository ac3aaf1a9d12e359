//! Room for client connections: the process's limit, and the place that each connection holds.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::proxy::WorkerCtx;

/// The process's room for client connections.
#[derive(Debug)]
pub struct Room {
    taken: AtomicUsize,
    limit: usize,
}

impl Room {
    /// Room for `limit` connections.
    #[must_use]
    pub fn new(limit: usize) -> Arc<Room> {
        Arc::new(Room { taken: AtomicUsize::new(0), limit })
    }

    /// How many there is room for.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Connections open now.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    fn enter(&self) -> bool {
        if self.taken.fetch_add(1, Ordering::AcqRel) < self.limit {
            return true;
        }
        self.leave();
        false
    }

    fn leave(&self) {
        self.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A connection's place; given back on drop, also when its task panics.
pub(super) struct Place {
    room: Option<Arc<Room>>,
    ctx: Rc<WorkerCtx>,
}

impl Place {
    /// Takes a place, if there is one; otherwise the value stands for a connection that is turned away.
    pub(super) fn take(room: &Arc<Room>, ctx: &Rc<WorkerCtx>) -> Place {
        ctx.cells.connections.accepted.increment();
        ctx.cells.connections.open.raise();
        let entered = room.enter();
        if !entered {
            ctx.cells.connections.refused.increment();
        }
        Place { room: entered.then(|| Arc::clone(room)), ctx: Rc::clone(ctx) }
    }

    /// False: there was no room.
    pub(super) fn is_granted(&self) -> bool {
        self.room.is_some()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.ctx.cells.connections.open.lower();
        if let Some(room) = &self.room {
            room.leave();
        }
        if std::thread::panicking() {
            self.ctx.cells.panics.increment();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Cause, Record};
    use crate::proxy::fixtures::context;
    use crate::proxy::ledger::Ledger;

    #[test]
    fn there_is_never_more_than_the_limit() {
        let room = Room::new(2);
        assert!(room.enter() && room.enter() && !room.enter());
        room.leave();
        assert!(room.enter());
        assert_eq!(room.taken(), 2);
    }

    #[test]
    fn a_panic_in_one_connection_is_counted_and_recorded_and_ends_no_other() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build_local(tokio::runtime::LocalOptions::default())
            .expect("a runtime");
        let (ctx, room) = (context(), Room::new(2));
        let connection = |breaks: bool| {
            let (ctx, place) = (Rc::clone(&ctx), Place::take(&room, &ctx));
            tokio::task::spawn_local(async move {
                let _place = place;
                let mut record = Record::default();
                let mut ledger = Ledger::new(&ctx, None, &mut record);
                tokio::task::yield_now().await;
                assert!(!breaks, "this panic is wanted");
                ledger.settle(Cause::Done);
            })
        };
        let (broken, whole) = runtime.block_on(async { tokio::join!(connection(true), connection(false)) });
        assert!(broken.is_err_and(|error| error.is_panic()));
        assert!(whole.is_ok(), "the worker goes on");
        assert_eq!(room.taken(), 0, "both places are free again");
        let cells = &ctx.cells;
        assert_eq!((cells.panics.value(), cells.connections.open.value()), (1, 0));
        assert_eq!((cells.ended_with(Cause::Internal), cells.ended_with(Cause::Done)), (1, 1));
    }
}
