//! Tells a guest's place what its connection shows: that bytes come, that a request is there whole, that an answer was taken.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::guest_list::{Arriving, GuestPlace};

/// A stream whose guest's place is told what passes.
pub struct GuestStream<'a, S> {
    inner: S,
    place: &'a GuestPlace,
}

impl<S> GuestStream<'_, S> {
    /// Of the guest of this place.
    pub fn new(inner: S, place: &GuestPlace) -> GuestStream<'_, S> {
        GuestStream { inner, place }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuestStream<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.place.hears();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuestStream<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    /// Called when all that was made of an answer has been written.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_flush(context))?;
        self.place.has_taken();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// A request's body, which is arriving until its end has come.
pub struct ArrivingBody<B> {
    body: B,
    arriving: Option<Arriving>,
}

impl<B: Body> ArrivingBody<B> {
    /// One that may have no bytes at all.
    pub fn new(body: B, arriving: Arriving) -> ArrivingBody<B> {
        let arriving = (!body.is_end_stream()).then_some(arriving);
        ArrivingBody { body, arriving }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for ArrivingBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) || self.body.is_end_stream() {
            self.arriving = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
