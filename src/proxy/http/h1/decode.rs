//! Taking a body off a connection: from what was read beyond the head, then from the socket.
//!
//! One decoder serves request bodies and answers' bodies. It owns no buffer while it waits.

use std::io;
use std::task::{Context, Poll, ready};

use crate::message::Framing;
use crate::net::{Buffer, FreeList, Stream};

use super::chunk::Chunks;

/// Why a body can't be read on.
#[derive(Debug)]
pub enum Broken {
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
    plain: u64,
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
        Decoder { coding, raw: false, plain: 0, trailers: Vec::new() }
    }

    /// Asks for chunks as they came instead of their content. True when that is what will come.
    pub fn set_raw(&mut self) -> bool {
        self.raw = matches!(self.coding, Coding::Chunked(_));
        self.raw
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

    /// Trailer lines with their CRLFs; empty until the body is done.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// The next piece of the body; `None` at its end. `held` is what was read already and may belong to this
    /// body, or to the next message.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        held: &mut Option<Buffer>,
        buffers: &FreeList,
    ) -> Poll<Result<Option<Buffer>, Broken>> {
        loop {
            if self.is_done() {
                return Poll::Ready(Ok(None));
            }
            if matches!(self.coding, Coding::Broken) {
                return Poll::Ready(Err(Broken::Malformed));
            }
            if let Some(piece) = self.take(held)? {
                return Poll::Ready(Ok(Some(piece)));
            }
            if self.is_done() {
                continue;
            }
            if held.is_none() {
                match ready!(stream.poll_readable(cx)) {
                    Ok(()) => {}
                    Err(_) => return Poll::Ready(Err(Broken::Cut)),
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
                Ok(0) | Err(_) => return Poll::Ready(Err(Broken::Cut)),
                Ok(_) => {}
            }
        }
    }

    /// Takes the next piece out of `held`, if a complete one is there.
    fn take(&mut self, held: &mut Option<Buffer>) -> Result<Option<Buffer>, Broken> {
        let Some(mut buffer) = held.take() else { return Ok(None) };
        match &mut self.coding {
            Coding::Done => *held = Some(buffer),
            Coding::Broken => return Err(Broken::Malformed),
            Coding::UntilClose => {
                self.plain += buffer.len() as u64;
                return Ok(Some(buffer));
            }
            Coding::Length(left) => {
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
                    return Err(Broken::Malformed);
                };
                let done = chunks.is_done();
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

impl From<Broken> for io::Error {
    fn from(broken: Broken) -> io::Error {
        match broken {
            Broken::Malformed => io::ErrorKind::InvalidData.into(),
            Broken::Cut => io::ErrorKind::UnexpectedEof.into(),
        }
    }
}
