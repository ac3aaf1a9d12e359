//! Whole lines for a destination that may fail, or take nothing for a while.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, poll};

/// Takes lines.
pub type Sink = Box<dyn Write + Send>;

/// A destination of lines.
pub struct Lines {
    sink: Sink,
    /// The last write broke off inside a line.
    torn: bool,
}

impl Lines {
    /// Lines for `sink`, behind which there should be no buffer.
    #[must_use]
    pub fn new(sink: Sink) -> Lines {
        Lines { sink, torn: false }
    }

    /// Writes all of `bytes`, whole lines.
    ///
    /// # Errors
    /// What failed, and where the unwritten rest begins. A line that was torn is ended before the next one.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), (io::Error, usize)> {
        if self.torn && !bytes.is_empty() {
            self.sink.write_all(b"\n").map_err(|error| (error, 0))?;
            self.torn = false;
        }
        let mut done = 0;
        while done < bytes.len() {
            let result = match self.sink.write(&bytes[done..]) {
                Ok(0) => Err(io::Error::from(ErrorKind::WriteZero)),
                Ok(count) => Ok(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
                Err(error) => Err(error),
            };
            match result {
                Ok(count) => done += count,
                Err(error) => {
                    self.torn |= done > 0 && bytes[done - 1] != b'\n';
                    return Err((error, done));
                }
            }
        }
        Ok(())
    }

    /// Flushes the sink.
    ///
    /// # Errors
    /// What the sink says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Lines in `bytes`, each of which has one line feed.
#[must_use]
pub fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().map(|&byte| u64::from(byte == b'\n')).sum()
}

/// Standard output or standard error, without the lock and the buffer that Rust puts before them.
///
/// Whoever shares the descriptor may have made it non-blocking: a write waits also then.
#[derive(Debug)]
pub struct Descriptor(File);

impl Descriptor {
    /// A descriptor of our own for what `descriptor` stands for.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn of(descriptor: BorrowedFd<'_>) -> io::Result<Descriptor> {
        Ok(Descriptor(File::from(descriptor.try_clone_to_owned()?)))
    }
}

impl Write for Descriptor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // An error of its own: the next write says what it is about.
                    let _ = poll(&mut [PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::OUT)], None);
                }
                done => return done,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
