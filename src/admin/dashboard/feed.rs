//! The stream that a page reads: a whole frame, then what changes each second. Nothing waits for a page: each piece is made when the
//! one before has gone, out of the latest frame.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::{Body, Bytes};
use hyper::header::HeaderName;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::frame::{Frame, place};
use super::keeper::STEP;
use super::latest::latest;
use crate::admin::api::Api;
use crate::admin::exchange::pieces::pieces;
use crate::admin::exchange::question::Question;
use crate::net::now;

/// The last frame that a page has got, of one that comes again.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How long, in milliseconds, a page that has lost its stream waits before it comes again.
const RETRY: u64 = 1000;

/// What is left of a stream.
pub(super) struct DashboardFeed {
    api: Arc<Api>,
    drains: CancellationToken,
    /// The frame that is sent next, if there is one already.
    next: Option<Arc<Frame>>,
    /// The number of the one that was sent last; 0: none was.
    sent: u64,
    has_begun: bool,
    /// Whether the other nodes are to say what they have to do.
    wants_nodes: bool,
}

impl DashboardFeed {
    /// Begins with `frame`, until the process drains.
    pub(super) fn new(
        api: &Arc<Api>,
        frame: Arc<Frame>,
        asked: &Question,
        wants_nodes: bool,
    ) -> DashboardFeed {
        let resumes = asked.headers.get(LAST_EVENT_ID).and_then(|name| name.to_str().ok());
        let before = frame.number.saturating_sub(1);
        let has_before = before > 0 && resumes == Some(&*place(api.frames.born(), before));
        DashboardFeed {
            api: Arc::clone(api),
            drains: api.running.reloader.draining(),
            next: Some(frame),
            sent: if has_before { before } else { 0 },
            has_begun: false,
            wants_nodes,
        }
    }

    /// The same as the body of an answer.
    pub(super) fn body(self) -> impl Body<Data = Bytes, Error = Infallible> + Send + 'static {
        pieces(self, DashboardFeed::next)
    }

    /// The next piece, and the rest; `None`: it has ended.
    async fn next(mut self) -> Option<(Bytes, DashboardFeed)> {
        if !self.has_begun {
            self.has_begun = true;
            return Some((format!("retry: {RETRY}\n\n").into(), self));
        }
        let frame = match self.next.take() {
            Some(frame) => frame,
            None => {
                let drains = self.drains.clone();
                tokio::select! {
                    biased;
                    () = drains.cancelled() => return None,
                    frame = self.newer() => frame?,
                }
            }
        };
        let is_next = self.sent > 0 && frame.number == self.sent + 1;
        let piece = if is_next { frame.changes() } else { frame.whole() };
        self.sent = frame.number;
        Some((piece, self))
    }

    /// The first frame behind the one that was sent; `None`: nothing is in force any more.
    async fn newer(&self) -> Option<Arc<Frame>> {
        loop {
            if self.wants_nodes {
                self.api.frames.want_nodes();
            }
            let frame = latest(&self.api).await?;
            if frame.number != self.sent {
                return Some(frame);
            }
            // All who look wake at once, and the first makes it for all.
            sleep(STEP.saturating_sub(now().since(frame.time.at))).await;
        }
    }
}
