//! A process that drains, as the one in its place sees it.

use std::io;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::words::{NewSays, say};

/// A process that was the running one once, and drains.
#[derive(Debug)]
pub struct Elder {
    /// Its number.
    pub process: u32,
    /// Since when it drains, in milliseconds since 1970.
    pub since_ms: u64,
    /// By which it is spoken to; it closes with that process.
    pub socket: UnixStream,
}

impl Elder {
    /// Whether it has ended.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        // It says nothing any more: what can be read is its end.
        let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Has it cut what is still under way there.
    ///
    /// # Errors
    /// It has ended.
    pub fn cut(&self) -> io::Result<()> {
        say(&self.socket, &NewSays::Cut, &[])
    }
}
