//! Answers that are compressed on their way to the client.

pub mod answer;
mod kept;

use std::task::{Context, Poll};

use crate::compress::Coder;
use crate::message::Cause;
use crate::net::{FreeList, Piece};

use super::body::BodySource;

/// Bytes that are compressed before others have their turn.
const AT_ONCE: usize = 64 * 1024;

/// A body that is compressed as it comes.
pub struct CompressedBody<B> {
    plain: B,
    content: u64,
    /// `None` once it has ended.
    coder: Option<Coder>,
    /// What of a piece waits for its turn.
    piece: Option<Piece>,
    out: Vec<u8>,
    /// Something went in that may not have come out.
    holds: bool,
    flushes_each: bool,
    buffers: FreeList,
}

impl<B: BodySource> CompressedBody<B> {
    /// That of this one. `flushes_each`: each piece goes out at once, whatever that costs in length.
    #[must_use]
    pub fn new(plain: B, coder: Coder, flushes_each: bool, buffers: &FreeList) -> CompressedBody<B> {
        CompressedBody {
            plain,
            content: 0,
            coder: Some(coder),
            piece: None,
            out: Vec::new(),
            holds: false,
            flushes_each,
            buffers: buffers.clone(),
        }
    }

    /// Bytes of content that passed so far, as they go out.
    #[must_use]
    pub fn content(&self) -> u64 {
        self.content
    }

    /// True when nothing is left.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.coder.is_none() && self.out.is_empty()
    }

    /// Trailer lines.
    #[must_use]
    pub fn trailers(&self) -> Vec<u8> {
        self.plain.trailers()
    }

    /// Goes on with whatever must go on beside the body.
    pub fn drive(&mut self, cx: &mut Context<'_>) {
        self.plain.drive(cx);
    }

    /// The next piece, never an empty one; `None` at the end.
    ///
    /// # Errors
    /// Why the body can't be read on.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Cause>> {
        let mut left = AT_ONCE;
        while self.out.is_empty() {
            let Some(coder) = &mut self.coder else { return Poll::Ready(Ok(None)) };
            if left == 0 {
                // It goes on when others have had their turn.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.piece.is_none() {
                match self.plain.poll_piece(cx) {
                    Poll::Ready(Ok(Some(piece))) => self.piece = Some(piece),
                    Poll::Ready(Ok(None)) => {
                        let Some(coder) = self.coder.take() else { continue };
                        coder.end(&mut self.out).map_err(|_| Cause::Internal)?;
                        continue;
                    }
                    Poll::Ready(Err(cause)) => return Poll::Ready(Err(cause)),
                    // Nothing more comes for now: what there is goes out.
                    Poll::Pending if self.holds => {
                        coder.flush(&mut self.out).map_err(|_| Cause::Internal)?;
                        self.holds = false;
                        continue;
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
            let Some(piece) = &mut self.piece else { continue };
            let count = piece.len().min(left);
            coder.push(&piece.data()[..count], &mut self.out).map_err(|_| Cause::Internal)?;
            (left, self.holds) = (left - count, true);
            piece.consume(count);
            if piece.is_empty() {
                self.piece = None;
                if self.flushes_each {
                    coder.flush(&mut self.out).map_err(|_| Cause::Internal)?;
                    self.holds = false;
                }
            }
        }
        let buffer = self.buffers.filled(&self.out);
        self.out.drain(..buffer.len());
        self.content += buffer.len() as u64;
        Poll::Ready(Ok(Some(Piece::Buffer(buffer))))
    }
}
