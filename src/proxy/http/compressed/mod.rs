//! Answers that are compressed on their way to the client.

use std::task::{Context, Poll};

use crate::compress::{Coder, CompressRules, Compression, negotiated, recode, vary};
use crate::config::model::cache::CompressPolicy;
use crate::message::{Cause, Framing, Head};
use crate::net::{FreeList, Piece};

use super::answer_body::AnswerBody;
use super::body::BodySource as _;

/// Bytes that are compressed before others have their turn.
const AT_ONCE: usize = 64 * 1024;

/// A body that is compressed as it comes.
pub struct CompressedBody {
    plain: AnswerBody,
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

/// Compresses an answer, if its client accepts that and it is worth it: its head is changed then.
#[must_use]
pub fn compressed(
    policy: &CompressPolicy,
    request: &Head,
    answer: &mut Head,
    body: AnswerBody,
    buffers: &FreeList,
) -> AnswerBody {
    let rules = CompressRules {
        codings: policy.codings.iter().map(|(coding, _)| *coding).collect(),
        at_least: policy.at_least,
        with_cookies: policy.cookies,
    };
    let length = match body.framing() {
        Framing::Length(length) => Some(length),
        Framing::None => {
            answer.named("content-length").and_then(|length| std::str::from_utf8(length).ok()?.parse().ok())
        }
        Framing::Chunked | Framing::UntilClose => None,
    };
    let Ok(compression) = Compression::of(request, answer, length, &rules) else { return body };
    vary(answer);
    let Some(coding) = negotiated(request, &rules.codings) else { return body };
    let level = policy.codings.iter().find(|(other, _)| *other == coding).map(|(_, level)| *level);
    // Where there is no memory for it the answer goes as it is.
    let Ok(coder) = Coder::new(coding, level.unwrap_or(coding.usual_level())) else { return body };
    recode(answer, coding);
    answer.remove(|name| name.eq_ignore_ascii_case(b"transfer-encoding"));
    if body.framing() == Framing::None {
        // The answer to HEAD: it says what the one to GET would say.
        return body;
    }
    AnswerBody::Compressed(Box::new(CompressedBody {
        plain: body,
        coder: Some(coder),
        piece: None,
        out: Vec::new(),
        holds: false,
        flushes_each: compression.flushes_each,
        buffers: buffers.clone(),
    }))
}

impl CompressedBody {
    /// Bytes of content that passed so far, before they were compressed.
    #[must_use]
    pub fn content(&self) -> u64 {
        self.plain.content()
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
        Poll::Ready(Ok(Some(Piece::Buffer(buffer))))
    }
}
