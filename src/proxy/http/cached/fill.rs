//! Reading a body into the store, by itself: whoever asked for it reads it from there, as all others who join.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use crate::cache::store::{Filling, FlightLead, Object, ObjectBody};
use crate::message::Cause;
use crate::net::now;
use crate::proxy::WorkerCtx;
use crate::proxy::http::answer_body::AnswerBody;
use crate::proxy::http::body::BodySource as _;

/// Pieces of a backend's answer that are read before others have their turn.
const AT_ONCE: usize = 8;

/// An answer on its way into the store.
pub(super) struct Fill {
    /// Whose worker reads it.
    pub ctx: Rc<WorkerCtx>,
    /// What is left of it.
    pub source: AnswerBody,
    /// What has come of it.
    pub filling: Arc<Filling>,
    /// Who asked for it; `None` once it is too large to be kept.
    pub lead: Option<FlightLead>,
    /// The object that it will be.
    pub object: Arc<Object>,
    /// It is read to its end though nobody reads it.
    pub to_the_end: bool,
}

/// Fills it, and keeps it in the end.
pub(super) async fn fill(fill: Fill) {
    let Fill { ctx, mut source, filling, mut lead, object, to_the_end } = fill;
    let _unfinished = Unfinished(&filling);
    let goes_on = || {
        if let Some(why) = filling.outgrown()
            && let Some(lead) = lead.take()
        {
            lead.alone(object.key(), (!why.is_of_the_moment()).then(now));
        }
        to_the_end && lead.is_some() && !ctx.is_draining()
    };
    if !pour(&mut source, &filling, AT_ONCE, goes_on).await {
        return;
    }
    if let (Some(body), Some(lead)) = (filling.body(), lead) {
        let (key, answer) = (object.key().clone(), Arc::clone(&object.answer));
        lead.keep(Arc::new(Object::new(key, answer, ObjectBody::Whole(body), object.purges())));
    }
    filling.finish();
}

/// Tells those who read it when the task goes before the body has ended.
struct Unfinished<'f>(&'f Filling);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // Nothing, where it has ended.
        self.0.break_off(Cause::Shutdown);
    }
}

/// Reads a body into what many read, so many pieces before others have their turn. What nobody reads any more is given up, unless it
/// `goes_on`. True: all of it has come, and its readers are still to be told that nothing more does.
pub async fn pour(
    source: &mut AnswerBody,
    filling: &Filling,
    at_once: usize,
    mut goes_on: impl FnMut() -> bool,
) -> bool {
    loop {
        for _ in 0..at_once {
            let has_more = poll_fn(|cx| {
                let goes_on = goes_on();
                if filling.poll_room(cx).is_pending() {
                    return Poll::Pending;
                }
                if !goes_on && filling.is_deserted(cx) {
                    return Poll::Ready(Ok(false));
                }
                source
                    .poll_piece(cx)
                    .map_ok(|piece| piece.inspect(|piece| filling.append(piece.data())).is_some())
            });
            match has_more.await {
                Ok(true) => {}
                Ok(false) => return source.is_done(),
                Err(cause) => {
                    filling.break_off(cause);
                    return false;
                }
            }
        }
        tokio::task::yield_now().await;
    }
}
