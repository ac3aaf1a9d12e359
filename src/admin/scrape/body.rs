//! A scrape as the body of an answer: between any two pieces others have their turn.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame};

use crate::metrics::{BeingTold, Scrape};

/// What is left of it.
pub(super) struct ScrapeBody {
    scrape: Scrape,
    _told: BeingTold,
    /// Others had their turn since the last piece.
    has_rested: bool,
}

impl ScrapeBody {
    pub(super) fn new(scrape: Scrape, told: BeingTold) -> ScrapeBody {
        ScrapeBody { scrape, _told: told, has_rested: true }
    }
}

impl Body for ScrapeBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.has_rested {
            self.has_rested = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.has_rested = false;
        Poll::Ready(self.scrape.piece().map(|piece| Ok(Frame::data(piece.into()))))
    }
}
