//! The place that a connection holds among those that there may be.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use crate::message::{Cause, ListenerId, Peer};
use crate::proxy::WorkerCtx;
use crate::snapshot::{ConnectionLimits, CountedConnection, ListenerState};

/// A connection's place; given back on drop, also when its task panics.
pub(super) struct ConnectionSlot {
    counted: Result<CountedConnection, Cause>,
    ctx: Rc<WorkerCtx>,
}

impl ConnectionSlot {
    /// Takes a place, if there is one and the connection is not `denied` for this; otherwise the value stands for a connection that is
    /// turned away.
    pub(super) fn take(
        limits: &Arc<ConnectionLimits>,
        ctx: &Rc<WorkerCtx>,
        listener: &Arc<ListenerState>,
        peer: &Peer,
        denied: Option<Cause>,
    ) -> ConnectionSlot {
        ctx.cells.connections.accepted.increment();
        ctx.cells.connections.open.raise();
        let counted = match denied {
            Some(cause) => Err(cause),
            None => limits.enter(listener, peer.client.map(|client| client.ip)),
        };
        if let Err(cause) = &counted {
            ctx.cells.connections.refused.increment();
            ctx.cells.refusals.turn_away(peer.listener, *cause);
        }
        ConnectionSlot { counted, ctx: Rc::clone(ctx) }
    }

    /// Counts it as one of `client`, which is known now, unless it is `denied` for this.
    ///
    /// # Errors
    /// Why it is to be turned away; its place is free again.
    pub(super) fn name(
        &mut self,
        listener: ListenerId,
        client: Option<IpAddr>,
        denied: Option<Cause>,
    ) -> Result<(), Cause> {
        let named = match (&mut self.counted, denied) {
            (Err(cause), _) => return Err(*cause),
            (Ok(_), Some(cause)) => Err(cause),
            (Ok(counted), None) => counted.name(client),
        };
        if let Err(cause) = named {
            self.counted = Err(cause);
            self.ctx.cells.connections.refused.increment();
            self.ctx.cells.refusals.turn_away(listener, cause);
        }
        named
    }

    /// Gives its place back, for a connection that gets no more than one answer: whoever may come in is never kept out by who may not.
    pub(super) fn stand_aside(&mut self) {
        self.counted = Err(Cause::AccessDenied);
    }

    /// Why it is turned away; `None`: it is not.
    pub(super) fn refusal(&self) -> Option<Cause> {
        self.counted.as_ref().err().copied()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.ctx.cells.connections.open.lower();
        if std::thread::panicking() {
            self.ctx.cells.panics.increment();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Record;
    use crate::proxy::fixtures::context;
    use crate::proxy::recording::Recording;

    #[test]
    fn a_panic_in_one_connection_is_counted_and_recorded_and_ends_no_other() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build_local(tokio::runtime::LocalOptions::default())
            .expect("a runtime");
        let (ctx, limits) = (context(), ConnectionLimits::new(2));
        let connection = |breaks: bool| {
            let (ctx, place) = (
                Rc::clone(&ctx),
                ConnectionSlot::take(&limits, &ctx, &Arc::default(), &Peer::default(), None),
            );
            tokio::task::spawn_local(async move {
                let _place = place;
                let mut record = Record::default();
                let mut recording = Recording::new(&ctx, None, &mut record);
                tokio::task::yield_now().await;
                assert!(!breaks, "this panic is wanted");
                recording.settle(Cause::Done);
            })
        };
        let (broken, whole) = runtime.block_on(async { tokio::join!(connection(true), connection(false)) });
        assert!(broken.is_err_and(|error| error.is_panic()));
        assert!(whole.is_ok(), "the worker goes on");
        assert_eq!(limits.taken(), 0, "both places are free again");
        let cells = &ctx.cells;
        assert_eq!((cells.panics.value(), cells.connections.open.value()), (1, 0));
        assert_eq!((cells.ended_with(Cause::Internal), cells.ended_with(Cause::Done)), (1, 1));
    }
}
