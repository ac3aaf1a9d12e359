//! Answers that go on for as long as those who get them may have them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame};
use tokio::sync::watch;

use crate::admin::exchange::answers::{AdminAnswer, AdminBody, InPieces};
use crate::config::model::AdminAccess;

/// What another config says of who may come.
pub type AccessChanges = watch::Receiver<Option<Arc<AdminAccess>>>;

/// A stream that ends when it is said anew who may come: its client has to ask again, and is judged again. Any other answer stays as
/// it is, also one in pieces: cut, it would look whole.
pub fn revocable(answer: AdminAnswer, mut changes: AccessChanges) -> AdminAnswer {
    if answer.body().size_hint().exact().is_some() || answer.extensions().get::<InPieces>().is_some() {
        return answer;
    }
    let changed = Box::pin(async move {
        // The process ends.
        let _ = changes.changed().await;
    });
    answer.map(|body| UntilChanged { body, changed }.boxed_unsync())
}

struct UntilChanged {
    body: AdminBody,
    changed: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Body for UntilChanged {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.changed.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;
    use crate::admin::exchange::answers::{ok, stream};

    /// A stream of nothing that never ends.
    struct Silent(Pin<Box<dyn Future<Output = ()> + Send>>);

    impl Body for Silent {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.as_mut().poll(context).map(|()| None)
        }
    }

    #[test]
    fn a_stream_ends_with_the_rights_that_it_was_begun_with() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (tell, changes) = watch::channel(None);
            let mut answer =
                revocable(stream("text/event-stream", Silent(Box::pin(pending()))), changes.clone());
            let whole = revocable(ok(&1), changes);
            let mut next = Box::pin(answer.body_mut().frame());
            let is_waiting =
                std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_pending()));
            assert!(is_waiting.await);
            tell.send_replace(None);
            assert!(next.await.is_none());
            assert_eq!(whole.into_body().collect().await.expect("whole").to_bytes(), "1\n");
        });
    }
}
