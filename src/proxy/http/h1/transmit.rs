//! Sending a message: head, then the body as it comes from its source, then what ends it.
//!
//! Requests to backends and answers to clients go out through the same code. Little is held: one piece of the
//! body at a time, and the source is asked for the next only when that is gone, which is the back-pressure. A
//! short body leaves together with the head in one system call.

use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use crate::message::{Cause, Framing};
use crate::net::{Piece, Pipe, Stream};
use crate::proxy::head_buffers::HeadBuffer;
use crate::proxy::http::body::BodySource;

/// Pieces up to this size are copied behind the head instead of being written as a part of their own.
pub const SMALL: usize = 2048;

/// Which side a transmission failed on.
#[derive(Debug)]
pub enum TransmitFailed {
    /// The body could not be read on.
    Source(Cause),
    /// The socket did not take the bytes.
    Sink(io::Error),
}

/// What a message has for its socket next.
pub enum Out<'a, 'b> {
    /// Bytes, in one or several parts.
    Parts(&'a [IoSlice<'b>]),
    /// What is in a pipe.
    Pipe(&'a mut Pipe),
}

impl Out<'_, '_> {
    /// Writes once.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_write(self, cx: &mut Context<'_>, stream: &mut Stream) -> Poll<io::Result<usize>> {
        match self {
            Out::Parts([one]) => stream.poll_write(cx, one),
            Out::Parts(parts) => stream.poll_write_vectored(cx, parts),
            Out::Pipe(pipe) => pipe.poll_drain(cx, stream),
        }
    }
}

/// A message on its way out.
pub struct Transmit {
    /// Head, chunk lines and short pieces.
    front: HeadBuffer,
    front_sent: usize,
    piece: Option<Piece>,
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
    pub fn new(head: HeadBuffer, framing: Framing, body: &mut impl BodySource, raw: bool) -> Transmit {
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

    /// The socket has already taken the first `count` bytes of the head.
    pub fn skip(&mut self, count: usize) {
        self.front_sent += count;
        self.written += count as u64;
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
    /// See [`TransmitFailed`]. Nothing was sent yet if [`Transmit::written`] is 0.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut impl BodySource,
        mut write: impl FnMut(&mut Context<'_>, Out<'_, '_>) -> Poll<io::Result<usize>>,
    ) -> Poll<Result<(), TransmitFailed>> {
        // An answer's body carries the rest of the request with it: that must go on even while we can't write.
        body.drive(cx);
        loop {
            let mut starved = false;
            if !self.ended && self.wants_more() {
                match body.poll_piece(cx) {
                    Poll::Ready(Ok(piece)) => self.stage(piece, body),
                    Poll::Ready(Err(cause)) => return Poll::Ready(Err(TransmitFailed::Source(cause))),
                    Poll::Pending => starved = true,
                }
            }
            while self.is_blocked() {
                match self.poll_write(cx, &mut write) {
                    Poll::Ready(Ok(0)) => {
                        return Poll::Ready(Err(TransmitFailed::Sink(io::ErrorKind::WriteZero.into())));
                    }
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(TransmitFailed::Sink(error))),
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

    /// Writes once of what waits.
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        write: &mut impl FnMut(&mut Context<'_>, Out<'_, '_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if self.front_sent == self.front.len()
            && let Some(Piece::Pipe(pipe)) = &mut self.piece
        {
            let count = ready!(write(cx, Out::Pipe(pipe)))?;
            self.written += count as u64;
            if pipe.is_empty() {
                self.piece = None;
            }
            return Poll::Ready(Ok(count));
        }
        let (piece, behind) = match &self.piece {
            // What is in a pipe goes out by itself, between the parts.
            Some(Piece::Pipe(_)) => (&[][..], self.tail.len()),
            Some(piece) => (piece.data(), self.tail_sent),
            None => (&[][..], self.tail_sent),
        };
        let parts = [
            IoSlice::new(&self.front[self.front_sent..]),
            IoSlice::new(piece),
            IoSlice::new(&self.tail[behind..]),
        ];
        let first = usize::from(parts[0].is_empty());
        let last = if !parts[2].is_empty() { 3 } else { 1 + usize::from(!piece.is_empty()) };
        let count = ready!(write(cx, Out::Parts(&parts[first.min(last - 1)..last])))?;
        self.sent(count);
        Poll::Ready(Ok(count))
    }

    /// True when the next piece may be put in line: the first one joins the head, each other one waits until
    /// everything before it is out. Small pieces would pile up otherwise.
    fn wants_more(&self) -> bool {
        !self.begun || !self.is_blocked()
    }

    /// Puts the next piece, or the end, in line.
    fn stage(&mut self, piece: Option<Piece>, body: &impl BodySource) {
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
            match piece {
                piece @ (Piece::Buffer(_) | Piece::Shared(_)) if piece.len() <= SMALL => {
                    self.front.extend_from_slice(piece.data());
                    self.front.append(&mut self.tail);
                }
                piece => self.piece = Some(piece),
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
        if let Some(piece @ (Piece::Buffer(_) | Piece::Shared(_))) = &mut self.piece {
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
    use crate::proxy::head_buffers::HeadBuffers;
    use crate::proxy::http::body::Memory;

    #[test]
    fn what_the_socket_has_taken_before_is_not_sent_again() {
        let mut head = HeadBuffers::default().take();
        head.extend_from_slice(b"HEAD");
        let mut nothing = Memory::whole(Vec::new(), FreeList::new());
        let mut transmit = Transmit::new(head, Framing::None, &mut nothing, false);
        transmit.skip(3);
        let mut out = Vec::new();
        let outcome = transmit.poll(&mut Context::from_waker(Waker::noop()), &mut nothing, |_, out_of| {
            let Out::Parts(parts) = out_of else { panic!("a head has no pipes") };
            out.extend_from_slice(&parts[0]);
            Poll::Ready(Ok(parts[0].len()))
        });
        assert!(matches!(outcome, Poll::Ready(Ok(()))));
        assert_eq!((out.as_slice(), transmit.written()), (&b"D"[..], 4));
    }

    #[test]
    fn small_pieces_do_not_pile_up_while_the_socket_takes_nothing() {
        const PIECES: usize = 100;
        let pieces: VecDeque<_> = (0..PIECES).map(|_| vec![b'x'; 10]).collect();
        let mut body =
            Memory { pieces, trailers: Vec::new(), framing: Framing::Chunked, buffers: FreeList::new() };
        let mut head = HeadBuffers::default().take();
        head.extend_from_slice(b"HEAD");
        let mut transmit = Transmit::new(head, Framing::Chunked, &mut body, false);
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..PIECES {
            assert!(transmit.poll(&mut cx, &mut body, |_, _| Poll::Pending).is_pending());
        }
        let memory = &body;
        assert_eq!(
            memory.pieces.len(),
            PIECES - 1,
            "one went out with the head; the others stay where they are"
        );

        let mut out = Vec::new();
        let outcome = transmit.poll(&mut cx, &mut body, |_, out_of| {
            let Out::Parts(parts) = out_of else { panic!("a body in memory has no pipes") };
            // One byte at a time: the worst that a socket does.
            out.push(parts[0][0]);
            Poll::Ready(Ok(1))
        });
        assert!(matches!(outcome, Poll::Ready(Ok(()))));
        let expected = format!("HEAD{}0\r\n\r\n", "a\r\nxxxxxxxxxx\r\n".repeat(PIECES));
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}
