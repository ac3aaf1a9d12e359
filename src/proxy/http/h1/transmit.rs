//! Sending a message: head, then the body as it comes from its source, then what ends it.
//!
//! Requests to backends and answers to clients go out through the same code. Little is held: one piece of the
//! body at a time, and the source is asked for the next only when that is gone, which is the back-pressure. A
//! short body leaves together with the head in one system call.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use crate::message::{Cause, Framing};
use crate::net::Buffer;
use crate::proxy::http::Body;
use crate::proxy::spare::Lent;

/// Pieces up to this size are copied behind the head instead of being written as a part of their own.
const SMALL: usize = 2048;

/// Which side a transmission failed on.
#[derive(Debug)]
pub enum Failed {
    /// The body could not be read on.
    Source(Cause),
    /// The socket did not take the bytes.
    Sink(io::Error),
}

/// A message on its way out.
pub struct Transmit {
    /// Head, chunk lines and short pieces.
    front: Lent<Vec<u8>>,
    front_sent: usize,
    piece: Option<Buffer>,
    /// What follows the piece: the end of its chunk, the end of the body.
    tail: Vec<u8>,
    tail_sent: usize,
    framing: Framing,
    raw: bool,
    /// The source was asked and has answered.
    begun: bool,
    ended: bool,
    written: u64,
}

impl Transmit {
    /// A message that starts with `head`. With `raw` the body's own chunk lines are passed on if it has any.
    #[must_use]
    pub fn new(head: Lent<Vec<u8>>, framing: Framing, body: &mut Body, raw: bool) -> Transmit {
        let raw = framing == Framing::Chunked && raw && body.set_raw();
        Transmit {
            front: head,
            front_sent: 0,
            piece: None,
            tail: Vec::new(),
            tail_sent: 0,
            framing,
            raw,
            begun: false,
            // Even without content the source is asked once: an answer's body does at its end what ends with it.
            ended: false,
            written: 0,
        }
    }

    /// Bytes that the socket took.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// True while bytes wait for the socket: it is the reader of this message who is slow.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.front_sent < self.front.len() || self.piece.is_some() || self.tail_sent < self.tail.len()
    }

    /// Sends as much as source and socket allow; ready when the last byte was taken.
    ///
    /// # Errors
    /// See [`Failed`]. Nothing was sent yet if [`Transmit::written`] is 0.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Body,
        mut write: impl FnMut(&mut Context<'_>, &[IoSlice<'_>]) -> Poll<io::Result<usize>>,
    ) -> Poll<Result<(), Failed>> {
        // An answer's body carries the rest of the request with it: that must go on even while we can't write.
        body.drive(cx);
        loop {
            let mut starved = false;
            if !self.ended && self.wants_more() {
                match body.poll_piece(cx) {
                    Poll::Ready(Ok(piece)) => self.stage(piece, body),
                    Poll::Ready(Err(cause)) => return Poll::Ready(Err(Failed::Source(cause))),
                    Poll::Pending => starved = true,
                }
            }
            while self.is_blocked() {
                let piece = self.piece.as_ref().map_or(&[][..], Buffer::data);
                let parts = [
                    IoSlice::new(&self.front[self.front_sent..]),
                    IoSlice::new(piece),
                    IoSlice::new(&self.tail[self.tail_sent..]),
                ];
                let first = usize::from(parts[0].is_empty());
                let last = if !parts[2].is_empty() { 3 } else { 1 + usize::from(!piece.is_empty()) };
                match write(cx, &parts[first.min(last - 1)..last]) {
                    Poll::Ready(Ok(0)) => {
                        return Poll::Ready(Err(Failed::Sink(io::ErrorKind::WriteZero.into())));
                    }
                    Poll::Ready(Ok(count)) => self.sent(count),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(Failed::Sink(error))),
                    Poll::Pending => return Poll::Pending,
                }
            }
            if self.ended {
                return Poll::Ready(Ok(()));
            }
            if starved {
                return Poll::Pending;
            }
        }
    }

    /// True when the next piece may be put in line: the first one joins the head, each other one waits until
    /// everything before it is out. Small pieces would pile up otherwise.
    fn wants_more(&self) -> bool {
        !self.begun || !self.is_blocked()
    }

    /// Puts the next piece, or the end, in line.
    fn stage(&mut self, piece: Option<Buffer>, body: &Body) {
        self.begun = true;
        self.tail.clear();
        self.tail_sent = 0;
        let chunked = self.framing == Framing::Chunked;
        if self.front_sent == self.front.len() {
            self.front.clear();
            self.front_sent = 0;
        }
        self.ended = piece.is_none() || body.is_done();
        if let Some(piece) = piece {
            if chunked && !self.raw {
                self.front.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                self.tail.extend_from_slice(b"\r\n");
            }
            if piece.len() <= SMALL {
                self.front.extend_from_slice(piece.data());
                self.front.append(&mut self.tail);
            } else {
                self.piece = Some(piece);
            }
        }
        if self.ended && chunked {
            let end = if self.piece.is_some() { &mut self.tail } else { &mut *self.front };
            end.extend_from_slice(b"0\r\n");
            end.extend_from_slice(&body.trailers());
            end.extend_from_slice(b"\r\n");
        }
    }

    fn sent(&mut self, count: usize) {
        self.written += count as u64;
        let front = count.min(self.front.len() - self.front_sent);
        self.front_sent += front;
        let mut rest = count - front;
        if let Some(piece) = &mut self.piece {
            let taken = rest.min(piece.len());
            piece.consume(taken);
            rest -= taken;
            if piece.is_empty() {
                self.piece = None;
            }
        }
        self.tail_sent += rest;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::task::Waker;

    use super::*;
    use crate::net::FreeList;
    use crate::proxy::http::body::Memory;
    use crate::proxy::spare::Shelf;

    #[test]
    fn small_pieces_do_not_pile_up_while_the_socket_takes_nothing() {
        const PIECES: usize = 100;
        let pieces: VecDeque<_> = (0..PIECES).map(|_| vec![b'x'; 10]).collect();
        let memory =
            Memory { pieces, trailers: Vec::new(), framing: Framing::Chunked, buffers: FreeList::new() };
        let mut body = Body::Memory(Box::new(memory));
        let mut head: Lent<Vec<u8>> = Shelf::default().take();
        head.extend_from_slice(b"HEAD");
        let mut transmit = Transmit::new(head, Framing::Chunked, &mut body, false);
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..PIECES {
            assert!(transmit.poll(&mut cx, &mut body, |_, _| Poll::Pending).is_pending());
        }
        let Body::Memory(memory) = &body else { panic!("a body in memory") };
        assert_eq!(
            memory.pieces.len(),
            PIECES - 1,
            "one went out with the head; the others stay where they are"
        );

        let mut out = Vec::new();
        let outcome = transmit.poll(&mut cx, &mut body, |_, parts| {
            // One byte at a time: the worst that a socket does.
            out.push(parts[0][0]);
            Poll::Ready(Ok(1))
        });
        assert!(matches!(outcome, Poll::Ready(Ok(()))));
        let expected = format!("HEAD{}0\r\n\r\n", "a\r\nxxxxxxxxxx\r\n".repeat(PIECES));
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}
