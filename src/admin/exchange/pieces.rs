//! Bodies that are made piece by piece: the next one when the one before has gone.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame};

/// A piece to come, with what is left behind it.
type NextPiece<T> = Pin<Box<dyn Future<Output = Option<(Bytes, T)>> + Send>>;

struct Pieces<T, N> {
    piece: NextPiece<T>,
    next: N,
}

/// The body whose pieces `next` makes from what is left of it, until it gives none.
pub fn pieces<T, N, F>(all: T, next: N) -> impl Body<Data = Bytes, Error = Infallible> + Send + 'static
where
    T: Send + 'static,
    N: Fn(T) -> F + Unpin + Send + 'static,
    F: Future<Output = Option<(Bytes, T)>> + Send + 'static,
{
    let piece = Box::pin(next(all));
    Pieces { piece, next: move |rest| -> NextPiece<T> { Box::pin(next(rest)) } }
}

impl<T, N: Fn(T) -> NextPiece<T> + Unpin> Body for Pieces<T, N> {
    type Data = Bytes;
    type Error = Infallible;

    /// Not called again once it has said that it has ended.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let made = ready!(self.piece.as_mut().poll(context));
        Poll::Ready(made.map(|(piece, rest)| {
            self.piece = (self.next)(rest);
            Ok(Frame::data(piece))
        }))
    }
}
