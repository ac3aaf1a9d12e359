//! Taking a body off a connection: from what was read beyond the head, then from the socket.
//!
//! One decoder serves request bodies and answers' bodies. It owns no buffer while it waits.

use std::io;
use std::task::{Context, Poll, ready};

use crate::message::Framing;
use crate::net::splice::{self, Run};
use crate::net::{Buffer, FreeList, Piece, Pipe, Stream};

use super::chunk::Chunks;

/// Why a body can't be read on.
#[derive(Debug)]
pub enum BodyBroken {
    /// The bytes break the framing.
    Malformed,
    /// The connection ended or failed before the body did.
    Cut,
}

enum Coding {
    Length(u64),
    Chunked(Chunks),
    UntilClose,
    Done,
    /// Malformed: nothing behind that point is ever looked at again.
    Broken,
}

/// A body on its way in.
pub struct Decoder {
    coding: Coding,
    raw: bool,
    /// Pieces may come in pipes.
    pipes: bool,
    run: Run,
    plain: u64,
    extra: u64,
    trailers: Vec<u8>,
}

impl Decoder {
    /// A decoder for a body framed like this.
    #[must_use]
    pub fn new(framing: Framing) -> Decoder {
        let coding = match framing {
            Framing::None | Framing::Length(0) => Coding::Done,
            Framing::Length(length) => Coding::Length(length),
            Framing::Chunked => Coding::Chunked(Chunks::default()),
            Framing::UntilClose => Coding::UntilClose,
        };
        Decoder {
            coding,
            raw: false,
            pipes: false,
            run: Run::announced(),
            plain: 0,
            extra: 0,
            trailers: Vec::new(),
        }
    }

    /// Asks for chunks as they came instead of their content. True when that is what will come.
    pub fn set_raw(&mut self) -> bool {
        self.raw = matches!(self.coding, Coding::Chunked(_));
        self.raw
    }

    /// Whether pieces may come in pipes: much is left of a known length, and comes fast.
    pub fn set_pipes(&mut self, allowed: bool) {
        self.pipes = allowed;
    }

    /// True when the whole body was taken.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.coding, Coding::Done)
    }

    /// True when the end of the body is the end of the connection.
    #[must_use]
    pub fn is_until_close(&self) -> bool {
        matches!(self.coding, Coding::UntilClose)
    }

    /// Bytes of content so far.
    #[must_use]
    pub fn content(&self) -> u64 {
        match &self.coding {
            Coding::Chunked(chunks) => chunks.content,
            Coding::Length(_) | Coding::UntilClose | Coding::Done | Coding::Broken => self.plain,
        }
    }

    /// What a limit on the body counts: content, and what chunk lines hold beside a size (see [`Chunks::extra`]).
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.content() + self.extra
    }

    /// Trailer lines with their CRLFs; empty until the body is done.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// The next piece of the body; `None` at its end. `held` is what was read already and may belong to this
    /// body, or to the next message.
    ///
    /// # Errors
    /// See [`BodyBroken`].
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        held: &mut Option<Buffer>,
        buffers: &FreeList,
    ) -> Poll<Result<Option<Piece>, BodyBroken>> {
        loop {
            if self.is_done() {
                return Poll::Ready(Ok(None));
            }
            if matches!(self.coding, Coding::Broken) {
                return Poll::Ready(Err(BodyBroken::Malformed));
            }
            if let Some(piece) = self.take(held)? {
                return Poll::Ready(Ok(Some(Piece::Buffer(piece))));
            }
            if self.is_done() {
                continue;
            }
            if held.is_none() {
                if let Some(pipe) = ready!(self.poll_pipe(cx, stream, buffers))? {
                    return Poll::Ready(Ok(Some(Piece::Pipe(pipe))));
                }
                match ready!(stream.poll_readable(cx)) {
                    Ok(()) => {}
                    Err(_) => return Poll::Ready(Err(BodyBroken::Cut)),
                }
            }
            let mut buffer = held.take().unwrap_or_else(|| buffers.take());
            let outcome = buffer.poll_fill(cx, stream);
            if !buffer.is_empty() {
                *held = Some(buffer);
            }
            match ready!(outcome) {
                Ok(0) if self.is_until_close() => self.finish(),
                // A body that only the close ends must not look complete after a reset.
                Ok(0) | Err(_) => return Poll::Ready(Err(BodyBroken::Cut)),
                Ok(_) => {}
            }
        }
    }

    /// Appends what is left of the body to `out`, if that is at most `most` bytes of known length and all in `held`. False:
    /// nothing was done.
    pub fn append_rest(&mut self, held: &mut Option<Buffer>, out: &mut Vec<u8>, most: usize) -> bool {
        let left = match self.coding {
            Coding::Done => return true,
            Coding::Length(left) => usize::try_from(left).unwrap_or(usize::MAX),
            Coding::Chunked(_) | Coding::UntilClose | Coding::Broken => return false,
        };
        let Some(buffer) = held else { return false };
        let Some(rest) = buffer.data().get(..left).filter(|_| left <= most) else { return false };
        out.extend_from_slice(rest);
        buffer.consume(left);
        if buffer.is_empty() {
            *held = None;
        }
        self.plain += left as u64;
        self.finish();
        true
    }

    /// The next piece in a pipe, exactly of this body. `None`: it is to be read.
    fn poll_pipe(
        &mut self,
        cx: &mut Context<'_>,
        stream: &Stream,
        buffers: &FreeList,
    ) -> Poll<Result<Option<Pipe>, BodyBroken>> {
        let Coding::Length(left) = &mut self.coding else { return Poll::Ready(Ok(None)) };
        let most = usize::try_from(*left).unwrap_or(usize::MAX);
        if !self.pipes || !self.run.is_long() || most < splice::SHORT || !stream.is_plain() {
            return Poll::Ready(Ok(None));
        }
        let Some(mut pipe) = buffers.pipes().take() else { return Poll::Ready(Ok(None)) };
        match ready!(pipe.poll_fill(cx, stream, most)) {
            Ok(count) => {
                self.run.spliced(count);
                *left -= count as u64;
                self.plain += count as u64;
                if *left == 0 {
                    self.finish();
                }
                Poll::Ready(Ok(Some(pipe).filter(|pipe| !pipe.is_empty())))
            }
            Err(error) if splice::is_unsupported(&error) => {
                self.run.end();
                Poll::Ready(Ok(None))
            }
            Err(_) => Poll::Ready(Err(BodyBroken::Cut)),
        }
    }

    /// Takes the next piece out of `held`, if a complete one is there.
    fn take(&mut self, held: &mut Option<Buffer>) -> Result<Option<Buffer>, BodyBroken> {
        let Some(mut buffer) = held.take() else { return Ok(None) };
        match &mut self.coding {
            Coding::Done => *held = Some(buffer),
            Coding::Broken => return Err(BodyBroken::Malformed),
            Coding::UntilClose => {
                self.plain += buffer.len() as u64;
                return Ok(Some(buffer));
            }
            Coding::Length(left) => {
                self.run.read(buffer.is_filled());
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
                *held = buffer.split_off(count);
                *left -= count as u64;
                self.plain += count as u64;
                if *left == 0 {
                    self.finish();
                }
                return Ok(Some(buffer));
            }
            Coding::Chunked(chunks) => {
                let Ok(found) = chunks.scan(buffer.data_mut(), self.raw) else {
                    self.plain = chunks.content;
                    self.coding = Coding::Broken;
                    return Err(BodyBroken::Malformed);
                };
                let done = chunks.is_done();
                self.extra = chunks.extra;
                if found.consumed == 0 {
                    *held = Some(buffer);
                    return Ok(None);
                }
                let rest = buffer.split_off(found.consumed);
                buffer.truncate(found.end);
                buffer.consume(found.start);
                if done {
                    self.plain = chunks.content;
                    self.trailers = chunks.trailers().to_vec();
                    self.finish();
                }
                *held = rest;
                return Ok(Some(buffer).filter(|buffer| !buffer.is_empty()));
            }
        }
        Ok(None)
    }

    fn finish(&mut self) {
        self.coding = Coding::Done;
    }
}

impl From<BodyBroken> for io::Error {
    fn from(broken: BodyBroken) -> io::Error {
        match broken {
            BodyBroken::Malformed => io::ErrorKind::InvalidData.into(),
            BodyBroken::Cut => io::ErrorKind::UnexpectedEof.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixStream;

    use super::*;

    /// Takes a long body off a connection on which the next message follows at once: its bytes, whether a pipe was
    /// used, and what of the next message was read.
    async fn take_off(framing: Framing, sent: &'static [u8], pipes: bool) -> (Vec<u8>, bool, Vec<u8>) {
        let (near, mut far) = UnixStream::pair().expect("a pair of sockets");
        let (sink, mut sink_end) = UnixStream::pair().expect("a pair of sockets");
        let (mut near, sink) = (Stream::from(near), Stream::from(sink));
        let send = async move {
            far.write_all(sent).await.expect("writes");
            drop(far);
        };
        let take = async move {
            let (mut decoder, buffers) = (Decoder::new(framing), FreeList::new());
            decoder.set_pipes(pipes);
            let (mut held, mut came, mut piped) = (None, Vec::new(), false);
            loop {
                match poll_fn(|cx| decoder.poll(cx, &mut near, &mut held, &buffers))
                    .await
                    .expect("well-formed")
                {
                    None => break,
                    Some(piece @ (Piece::Buffer(_) | Piece::Shared(_))) => {
                        came.extend_from_slice(piece.data())
                    }
                    Some(Piece::Pipe(mut pipe)) => {
                        piped = true;
                        while !pipe.is_empty() {
                            let count = poll_fn(|cx| pipe.poll_drain(cx, &sink)).await.expect("moves");
                            let at = came.len();
                            came.resize(at + count, 0);
                            sink_end.read_exact(&mut came[at..]).await.expect("reads");
                        }
                    }
                }
            }
            let mut next = held.take().map_or_else(Vec::new, |buffer| buffer.data().to_vec());
            loop {
                let mut buffer = buffers.take();
                match poll_fn(|cx| buffer.poll_fill(cx, &mut near)).await.expect("reads") {
                    0 => return (came, piped, next),
                    _ => next.extend_from_slice(buffer.data()),
                }
            }
        };
        tokio::join!(send, take).1
    }

    #[test]
    fn the_rest_of_a_body_is_appended_only_when_it_is_short_and_all_here() {
        let buffers = FreeList::new();
        let rest = |framing, here: &[u8], most| {
            let mut decoder = Decoder::new(framing);
            let mut held = Some(buffers.filled(here)).filter(|buffer| !buffer.is_empty());
            let mut out = b"head ".to_vec();
            let whole = decoder.append_rest(&mut held, &mut out, most);
            assert_eq!(whole, decoder.is_done());
            let left = held.map_or_else(Vec::new, |buffer| buffer.data().to_vec());
            (whole, String::from_utf8(out).expect("text"), left, decoder.content())
        };
        let whole = |out: &str, left: &[u8], content| (true, out.to_owned(), left.to_vec(), content);
        let nothing = |here: &[u8]| (false, "head ".to_owned(), here.to_vec(), 0);
        assert_eq!(rest(Framing::Length(4), b"body", 4), whole("head body", b"", 4));
        assert_eq!(rest(Framing::Length(4), b"bodyX", 4), whole("head body", b"X", 4));
        assert_eq!(rest(Framing::None, b"X", 4), whole("head ", b"X", 0));
        assert_eq!(rest(Framing::Length(4), b"body", 3), nothing(b"body"));
        assert_eq!(rest(Framing::Length(4), b"bod", 4), nothing(b"bod"));
        assert_eq!(rest(Framing::Length(u64::MAX), b"body", usize::MAX), nothing(b"body"));
        assert_eq!(rest(Framing::UntilClose, b"body", 9), nothing(b"body"));
        let mut chunked = Decoder::new(Framing::Chunked);
        let mut held = Some(buffers.filled(b"0\r\n\r\n"));
        assert!(!chunked.append_rest(&mut held, &mut Vec::new(), 9) && held.is_some());
    }

    #[tokio::test]
    async fn a_long_body_goes_through_pipes_to_its_last_byte_and_no_further() {
        const LENGTH: usize = 1_500_000;
        let mut sent: Vec<u8> = (0..LENGTH).map(|at| (at % 251) as u8).collect();
        let body = sent.clone();
        sent.extend_from_slice(b"GET / HTTP/1.1\r\n");
        let sent: &'static [u8] = sent.leak();
        for pipes in [true, false] {
            let (came, piped, next) = take_off(Framing::Length(LENGTH as u64), sent, pipes).await;
            assert!(came == body, "{} bytes", came.len());
            assert_eq!((piped, next.as_slice()), (pipes, &b"GET / HTTP/1.1\r\n"[..]));
        }
        let (came, piped, _) = take_off(Framing::UntilClose, sent, true).await;
        assert!(came == sent && !piped, "only what has a length");
    }
}
