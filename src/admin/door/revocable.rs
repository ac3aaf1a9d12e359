//! Answers that go on for as long as those who get them may have them.

use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::admin::exchange::answers::{AdminAnswer, AdminBody, InPieces};
use crate::config::model::AdminAccess;

/// What another config says of who may come.
pub type AccessChanges = watch::Receiver<Option<Arc<AdminAccess>>>;

/// A stream that ends when it is said anew who may come, when somebody logs out, and when the session is over of which so much is `left`:
/// its client has to ask again, and is judged again. Any other answer stays as
/// it is, also one in pieces: cut, it would look whole.
pub fn revocable(
    answer: AdminAnswer,
    mut changes: AccessChanges,
    mut logouts: watch::Receiver<u64>,
    left: Option<Duration>,
) -> AdminAnswer {
    if answer.body().size_hint().exact().is_some() || answer.extensions().get::<InPieces>().is_some() {
        return answer;
    }
    let changed = Box::pin(async move {
        let until_end = async {
            match left {
                Some(left) => sleep(left).await,
                None => pending().await,
            }
        };
        tokio::select! {
            // Or the process ends.
            _ = changes.changed() => {}
            _ = logouts.changed() => {}
            () = until_end => {}
        }
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

    /// Whether a stream whose session has this much `left` ends when `what` happens.
    fn ends(
        left: Option<Duration>,
        what: impl AsyncFnOnce(watch::Sender<Option<Arc<AdminAccess>>>, watch::Sender<u64>),
    ) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let ((access, changes), (out, logouts)) = (watch::channel(None), watch::channel(0));
            let silent = stream("text/event-stream", Silent(Box::pin(pending())));
            let mut answer = revocable(silent, changes.clone(), logouts.clone(), left);
            let whole = revocable(ok(&1), changes, logouts, left);
            let mut next = Box::pin(answer.body_mut().frame());
            let is_waiting =
                std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_pending()));
            assert!(is_waiting.await);
            // Whoever could change something is there for as long as it takes.
            let _kept = (access.clone(), out.clone());
            what(access, out).await;
            let has_ended =
                std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_ready())).await;
            assert_eq!(whole.into_body().collect().await.expect("whole").to_bytes(), "1\n");
            has_ended
        })
    }

    #[test]
    fn a_stream_ends_with_the_rights_that_it_was_begun_with() {
        let hour = Duration::from_secs(3600);
        assert!(!ends(None, async |_, _| sleep(hour).await));
        assert!(ends(None, async |access, _| drop(access.send_replace(None))));
        assert!(ends(None, async |_, out| assert_eq!(out.send_replace(1), 0)));
        assert!(!ends(Some(hour), async |_, _| sleep(hour - Duration::from_secs(1)).await));
        assert!(ends(Some(hour), async |_, _| sleep(hour).await));
    }
}
