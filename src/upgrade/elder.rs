//! A process that drains, as the one in its place sees it.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::words::{NewSays, RunningSays, hear, say};

/// How long one that has begun to say something may take for each of its words.
const PATIENCE: Duration = Duration::from_secs(1);

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

/// What there is of news from a process that drains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElderSays {
    /// Nothing.
    Nothing,
    /// What is known only now, by part.
    Rest(BTreeMap<String, String>),
    /// It has ended.
    Gone,
}

impl Elder {
    /// What it says, if it does. Who has begun to say something is heard to its end.
    #[must_use]
    pub fn listen(&self) -> ElderSays {
        let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
        if !poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0) {
            return ElderSays::Nothing;
        }
        // Whoever stops in the middle of a word is not waited for.
        let _ = self.socket.set_read_timeout(Some(PATIENCE));
        let mut rest = BTreeMap::<String, String>::new();
        loop {
            match hear::<RunningSays>(&self.socket) {
                Ok((RunningSays::State { part, text }, _)) => rest.entry(part).or_default().push_str(&text),
                Ok((RunningSays::Given, _)) => return ElderSays::Rest(rest),
                Ok(_) => {}
                Err(_) => return ElderSays::Gone,
            }
        }
    }

    /// Has it cut what is still under way there.
    ///
    /// # Errors
    /// It has ended.
    pub fn cut(&self) -> io::Result<()> {
        say(&self.socket, &NewSays::Cut, &[])
    }
}
