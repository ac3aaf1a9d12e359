//! One request on one connection to a backend: sending it and reading the answer's head, both at once.
//!
//! A backend may answer before the request is complete, so reading never waits for writing. The deadline runs
//! only while it is the backend we wait for: not while the client is slow to send or to take.

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::message::{Cause, Field, Framing, Head, tokens};
use crate::net::{Buffer, Deadline, FreeList, Piece, Stream, now};
use crate::proxy::spare::Lent;
use crate::tick::Tick;

use super::Body;
use super::h1::decode::{Broken, Decoder};
use super::h1::framing;
use super::h1::parse::Search;
use super::h1::transmit::{Failed, Transmit};

/// 1xx heads that are passed on for one request; a backend that sends more is broken.
const INTERIM: u8 = 32;

/// Bytes of an answer's head, at most. They fit into one buffer.
const HEAD: usize = 64 * 1024;

/// How long a backend may take, in the two phases of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until the answer's head.
    pub first_byte: Duration,
    /// Between bytes.
    pub idle: Duration,
}

/// One request on one connection.
pub struct Call {
    stream: Stream,
    held: Option<Buffer>,
    buffers: FreeList,
    sending: Option<Sending>,
    /// The request could not be sent to its end; the answer may still come.
    unsendable: bool,
    search: Search,
    interims: u8,
    decoder: Decoder,
    framing: Framing,
    keeps_alive: bool,
    keep_for: Option<Duration>,
    deadline: Deadline,
    patience: Patience,
    written: u64,
    answered: bool,
    in_body: bool,
    /// The first byte of the request was taken by the socket.
    pub sent: Tick,
    /// The first byte of the answer came.
    pub first_byte: Tick,
}

struct Sending {
    transmit: Transmit,
    body: Body,
}

/// Why there is no answer.
pub struct Silence {
    /// The cause.
    pub cause: Cause,
    /// Not a byte of the request was taken by the socket.
    pub unsent: bool,
    /// A byte of an answer came.
    pub answered: bool,
    /// What the connection broke with, if it did.
    pub error: Option<io::Error>,
}

impl Call {
    /// A request on a connection that is silent and open.
    #[must_use]
    pub fn new(
        stream: Stream,
        head: Lent<Vec<u8>>,
        mut body: Body,
        raw: bool,
        buffers: FreeList,
        deadline: Deadline,
        patience: Patience,
    ) -> Call {
        body.set_pipes(raw && stream.is_plain());
        let transmit = Transmit::new(head, body.framing(), &mut body, raw);
        Call {
            stream,
            held: None,
            buffers,
            sending: Some(Sending { transmit, body }),
            unsendable: false,
            search: Search::default(),
            interims: 0,
            decoder: Decoder::new(Framing::None),
            framing: Framing::None,
            keeps_alive: false,
            keep_for: None,
            deadline,
            patience,
            written: 0,
            answered: false,
            in_body: false,
            sent: Tick::ZERO,
            first_byte: Tick::ZERO,
        }
    }

    /// Sends as much of the request as goes.
    ///
    /// # Errors
    /// The cause for which the *client's* side of it broke.
    pub fn drive(&mut self, cx: &mut Context<'_>) -> Result<(), Cause> {
        let Some(sending) = &mut self.sending else { return Ok(()) };
        let stream = &mut self.stream;
        let polled = sending.transmit.poll(cx, &mut sending.body, |cx, out| out.poll_write(cx, stream));
        if sending.transmit.written() != self.written {
            if self.written == 0 {
                self.sent = now();
            }
            self.written = sending.transmit.written();
            self.deadline.clear();
        }
        match polled {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(())) => {
                // The patience for the answer begins with the end of the request.
                self.deadline.clear();
                self.sending = None;
                Ok(())
            }
            Poll::Ready(Err(Failed::Source(cause))) => {
                self.unsendable = true;
                self.sending = None;
                Err(cause)
            }
            Poll::Ready(Err(Failed::Sink(_))) => {
                self.unsendable = true;
                self.sending = None;
                Ok(())
            }
        }
    }

    /// The head of the answer, final or 1xx; after a 1xx call it again.
    ///
    /// # Errors
    /// See [`Silence`].
    pub fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Head,
        to_head: bool,
    ) -> Poll<Result<(), Silence>> {
        if let Err(cause) = self.drive(cx) {
            return Poll::Ready(Err(self.silence(cause)));
        }
        loop {
            if let Some(buffer) = &mut self.held {
                match self.search.answer(buffer.data(), HEAD, head) {
                    Ok(None) => {}
                    Ok(Some(length)) => {
                        self.search = Search::default();
                        buffer.consume(length);
                        if buffer.is_empty() {
                            self.held = None;
                        }
                        let judged = self.judge(head, to_head);
                        return Poll::Ready(judged.map_err(|cause| self.silence(cause)));
                    }
                    Err(cause) => return Poll::Ready(Err(self.silence(cause))),
                }
            }
            match self.buffers.poll_fill(&mut self.held, cx, &mut self.stream) {
                Poll::Ready(Ok(count)) if count > 0 => {
                    if !self.answered {
                        self.answered = true;
                        self.first_byte = now();
                    }
                }
                Poll::Ready(outcome) => return Poll::Ready(Err(self.closed(outcome.err()))),
                Poll::Pending => return self.poll_patience(cx).map(|cause| Err(self.silence(cause))),
            }
        }
    }

    /// What a well-formed head means for the connection.
    fn judge(&mut self, head: &Head, to_head: bool) -> Result<(), Cause> {
        if head.status < 200 && head.status != 101 {
            self.interims += 1;
            return if self.interims > INTERIM { Err(Cause::BadAnswer) } else { Ok(()) };
        }
        self.deadline.clear();
        self.in_body = true;
        self.framing = framing::answer(head, to_head)?;
        self.decoder = Decoder::new(self.framing);
        self.keeps_alive =
            framing::keeps_alive(head) && self.framing != Framing::UntilClose && head.status != 101;
        self.keep_for = keep_alive_timeout(head);
        Ok(())
    }

    /// The next piece of the answer's body; `None` at its end.
    ///
    /// # Errors
    /// Why it can't be read on.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Cause>> {
        match self.decoder.poll(cx, &mut self.stream, &mut self.held, &self.buffers) {
            Poll::Ready(outcome) => {
                self.deadline.clear();
                Poll::Ready(outcome.map_err(|broken| match broken {
                    Broken::Malformed => Cause::BadAnswerBody,
                    Broken::Cut => Cause::AnswerCut,
                }))
            }
            Poll::Pending => self.poll_patience(cx).map(Err),
        }
    }

    /// Ready with a cause when the backend, and nobody else, has kept us waiting for too long.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<Cause> {
        let sending = self.sending.as_ref();
        if sending.is_some_and(|sending| !sending.transmit.is_blocked()) {
            // The client has not sent the rest of its request.
            self.deadline.clear();
            return Poll::Pending;
        }
        let span = match (self.in_body, sending.is_some()) {
            (false, false) => self.patience.first_byte,
            (true, _) | (_, true) => self.patience.idle,
        };
        self.deadline.set_if_clear(span);
        self.deadline
            .poll(cx)
            .map(|()| if self.in_body { Cause::AnswerStalled } else { Cause::FirstByteTimeout })
    }

    /// That there is no answer, for this cause.
    #[must_use]
    pub fn silence(&self, cause: Cause) -> Silence {
        let unsent = self.written == 0 && !self.stream.is_writing();
        Silence { cause, unsent, answered: self.answered, error: None }
    }

    fn closed(&self, error: Option<io::Error>) -> Silence {
        Silence { error, ..self.silence(Cause::BackendClosed) }
    }

    /// The body's framing, once the head is there.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// The body, once the head is there.
    #[must_use]
    pub fn body(&self) -> &Decoder {
        &self.decoder
    }

    /// True when the last byte of the request was taken by the socket.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        self.sending.is_none() && !self.unsendable
    }

    /// See [`Decoder::set_raw`].
    pub fn set_raw(&mut self) -> bool {
        self.decoder.set_raw()
    }

    /// See [`Decoder::set_pipes`].
    pub fn set_pipes(&mut self, allowed: bool) {
        self.decoder.set_pipes(allowed);
    }

    /// The connection and for how long the backend keeps it open, if it may serve another request: request and
    /// answer are complete, both want it, and not a byte is left over (RFC 9112 §9.3).
    pub fn into_idle(self: Box<Self>) -> Option<(Stream, Option<Duration>)> {
        let sent = self.is_sent();
        let clean = sent && self.held.is_none() && !self.stream.has_leftover() && self.decoder.is_done();
        (clean && self.keeps_alive).then_some((self.stream, self.keep_for))
    }

    /// The connection and what was read beyond the head, for a tunnel.
    #[must_use]
    pub fn into_tunnel(self: Box<Self>) -> (Stream, Option<Buffer>) {
        (self.stream, self.held)
    }
}

/// `Keep-Alive: timeout=N` of an answer, in whole seconds.
fn keep_alive_timeout(head: &Head) -> Option<Duration> {
    if !head.has_hop_by_hop() {
        return None;
    }
    let parameter = head.values(Field::KeepAlive).flat_map(tokens).find_map(|item| {
        let text = std::str::from_utf8(item).ok()?;
        let (name, value) = text.split_once('=')?;
        name.trim().eq_ignore_ascii_case("timeout").then(|| value.trim().parse::<u32>().ok())?
    });
    parameter.map(|seconds| Duration::from_secs(u64::from(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keep_alive_field_is_read_for_its_timeout() {
        let mut head = Head::answer(200);
        assert_eq!(keep_alive_timeout(&head), None);
        head.push(b"Keep-Alive", b"max=100, Timeout = 5");
        assert_eq!(keep_alive_timeout(&head), Some(Duration::from_secs(5)));
        let mut odd = Head::answer(200);
        odd.push(b"Keep-Alive", b"timeout=-1");
        assert_eq!(keep_alive_timeout(&odd), None);
    }
}
