//! A stream whose peer is waited for only so long.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// For a peer to take some bytes more.
const STALL: Duration = Duration::from_secs(30);

/// A stream that fails when its peer takes nothing for 30 s.
pub struct Patient<S> {
    inner: S,
    stall: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    /// Of a stream that has not stalled yet.
    pub fn new(inner: S) -> Patient<S> {
        Patient { inner, stall: None }
    }

    fn judge<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stall = None;
            return outcome;
        }
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(STALL)));
        ready!(stall.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.judge(context, outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_flush(context);
        self.judge(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_shutdown(context);
        self.judge(context, outcome)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[test]
    fn a_peer_that_takes_nothing_is_given_up_and_a_slow_one_is_not() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let (ours, mut theirs) = tokio::io::duplex(8);
            let mut ours = Patient::new(ours);
            let slow = async {
                let mut some = [0; 8];
                for _ in 0..4 {
                    sleep(STALL - Duration::from_secs(1)).await;
                    theirs.read_exact(&mut some).await.expect("read");
                }
            };
            let (written, ()) = tokio::join!(ours.write_all(&[0; 40]), slow);
            written.expect("each byte was waited for anew");
            let error = ours.write_all(&[0; 40]).await.expect_err("nobody reads");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }
}
