//! A byte stream that is no socket: a part of somebody else's connection.

use std::io;
use std::task::{Context, Poll};

/// One that others share a connection with, such as a stream of HTTP/2. What it does is its owner's business; here it looks like a socket.
pub trait Carried {
    /// Reads once: how many bytes; 0 is the end.
    ///
    /// # Errors
    /// It was cut.
    fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Ready when a read would not wait.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// The same without being woken.
    fn is_readable(&self) -> bool;

    /// Writes once: how many bytes.
    ///
    /// # Errors
    /// It was cut.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Says that we have sent our last byte.
    ///
    /// # Errors
    /// It was cut.
    fn shutdown(&mut self) -> io::Result<()>;

    /// Makes its end look like a cut.
    fn reset_on_close(&self);

    /// True when it was cut.
    fn is_cut(&self) -> bool;
}
