//! The `h2` crate, without a network.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use evenkeel::proxy::http::h2::frame::{self, FrameHead};
use futures_core::Stream as _;
use fuzz_cases::Numbers;
use h2::Codec;
use h2::frame::{Frame, Headers};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Tally;
use super::lists::List;

/// Longest frame.
const FRAME: usize = 16_384;

/// The other side, as it reads from a socket and writes to it.
pub(crate) struct Theirs(pub(crate) Codec<Wire, &'static [u8]>);

impl Theirs {
    pub(crate) fn new() -> Theirs {
        Theirs(Codec::new(Wire::default()))
    }

    /// The block that they make of a list.
    pub(crate) fn encode(&mut self, list: &List, tally: &mut Tally) -> Vec<u8> {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(self.0.poll_ready(&mut cx).is_ready());
        let headers = Headers::new(1.into(), list.pseudo(), list.fields());
        self.0.buffer(headers.into()).expect("a frame");
        assert!(self.0.flush(&mut cx).is_ready());
        let (mut block, sent) = (Vec::new(), std::mem::take(&mut self.0.get_mut().sent));
        let mut rest = &sent[..];
        while let Some((head, behind)) = rest.split_first_chunk::<9>() {
            let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            let is_first = block.is_empty();
            assert_eq!(head[3], if is_first { frame::HEADERS } else { frame::CONTINUATION });
            tally.continued += usize::from(!is_first);
            block.extend_from_slice(&behind[..length]);
            rest = &behind[length..];
        }
        block
    }

    /// They make this list of a block, in however many frames it comes.
    pub(crate) fn decode(&mut self, block: &[u8], list: &List, numbers: &mut Numbers, tally: &mut Tally) {
        let piece = FRAME.min(1 + block.len() / (1 + numbers.next(3)));
        let mut pieces = block.chunks(piece).peekable();
        let mut kind = frame::HEADERS;
        // An empty block is one frame as well.
        let mut next = Some(pieces.next().unwrap_or_default());
        while let Some(payload) = next {
            next = pieces.next();
            let flags = if next.is_none() { frame::END_HEADERS } else { 0 };
            let coming = &mut self.0.get_mut().coming;
            FrameHead { length: payload.len(), kind, flags, stream: 1 }.write(coming);
            coming.extend_from_slice(payload);
            tally.continued += usize::from(kind == frame::CONTINUATION);
            kind = frame::CONTINUATION;
        }
        match Pin::new(&mut self.0).poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(Frame::Headers(headers)))) => {
                let (pseudo, fields) = headers.into_parts();
                let expected = (list.pseudo(), list.fields());
                assert_eq!((pseudo, fields), expected, "{}", block.escape_ascii());
            }
            other => panic!("{other:?}: {}", block.escape_ascii()),
        }
    }
}

/// A socket without anybody else.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    coming: Vec<u8>,
    sent: Vec<u8>,
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let count = space.remaining().min(self.coming.len());
        if count == 0 {
            return Poll::Pending;
        }
        space.put_slice(&self.coming[..count]);
        self.coming.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.sent.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
