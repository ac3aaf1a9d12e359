//! Reading a backend's answer into the store, by itself: whoever asked for it reads it from there, as all others who join.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::cache::store::{Filling, FlightLead, Object, ObjectBody};
use crate::message::Cause;
use crate::net::now;
use crate::proxy::http::reply::Reply;

/// Pieces that are read before others have their turn.
const AT_ONCE: usize = 8;

/// An answer on its way into the store.
pub(super) struct Fill {
    /// What is left of it.
    pub reply: Reply,
    /// What has come of it.
    pub filling: Arc<Filling>,
    /// Who asked for it; `None` once it is too large to be kept.
    pub lead: Option<FlightLead>,
    /// The object that it will be.
    pub object: Arc<Object>,
    /// It is read to its end though nobody reads it.
    pub to_the_end: bool,
}

/// Tells those who read it when the task goes before the body has ended.
struct Unfinished(Arc<Filling>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Nothing, where it has ended.
        self.0.break_off(Cause::Shutdown);
    }
}

/// Fills it, and keeps it in the end.
pub(super) async fn fill(mut fill: Fill) {
    let _unfinished = Unfinished(Arc::clone(&fill.filling));
    loop {
        for _ in 0..AT_ONCE {
            let has_more = poll_fn(|cx| {
                if fill.filling.poll_room(cx).is_pending() {
                    return Poll::Pending;
                }
                let may_leave = !fill.to_the_end || fill.lead.is_none();
                if may_leave && fill.filling.is_deserted(cx) {
                    return Poll::Ready(Ok(false));
                }
                match fill.reply.poll_piece(cx) {
                    Poll::Ready(Ok(Some(piece))) => {
                        fill.filling.append(piece.data());
                        Poll::Ready(Ok(true))
                    }
                    Poll::Ready(Ok(None)) => Poll::Ready(Ok(false)),
                    Poll::Ready(Err(cause)) => Poll::Ready(Err(cause)),
                    Poll::Pending => Poll::Pending,
                }
            });
            match has_more.await {
                Ok(true) => {}
                Ok(false) if fill.reply.is_done() => return end(fill),
                Ok(false) => return,
                Err(cause) => return fill.filling.break_off(cause),
            }
            if fill.filling.has_outgrown()
                && let Some(lead) = fill.lead.take()
            {
                lead.alone(fill.object.key(), Some(now()));
            }
        }
        tokio::task::yield_now().await;
    }
}

/// All of it has come.
fn end(fill: Fill) {
    let Fill { filling, lead, object, .. } = fill;
    if let (Some(body), Some(lead)) = (filling.body(), lead) {
        let whole = Object::new(
            object.key().clone(),
            Arc::clone(&object.answer),
            ObjectBody::Whole(body),
            object.purges(),
        );
        lead.keep(Arc::new(whole));
    }
    filling.finish();
}
