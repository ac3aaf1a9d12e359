//! What the kernel says of folders (inotify): that something in them has changed, and no more.
//!
//! `rustix` is here already and has the three calls. A crate of its own would bring a thread and a table of kinds of events that
//! nobody asks about: what differs is found by looking.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io;
use std::path::PathBuf;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::net::unix::pipe;

/// Bytes of events that are taken at once.
const BUFFER: usize = 4096;
/// Most times that some are taken before somebody looks what has come of them.
const TAKES_MAX: usize = 100;

/// Everything by which a file becomes another one. Whoever writes is done when it closes: until then a log would wake us with
/// each line.
const WANTED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// Folders that the kernel watches for us.
pub(super) struct Notices {
    /// To tokio it is what it looks like: something from which bytes come now and then.
    queue: pipe::Receiver,
    watches: HashSet<i32>,
}

impl Notices {
    /// None yet. Called inside of a runtime.
    ///
    /// # Errors
    /// The system has no more of these queues, or of descriptors.
    pub(super) fn new() -> io::Result<Notices> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let queue = pipe::Receiver::from_file_unchecked(File::from(queue))?;
        Ok(Notices { queue, watches: HashSet::new() })
    }

    /// Watches exactly these folders, and those that stand under their names now.
    ///
    /// # Errors
    /// The first folder that can't be watched; the others are.
    pub(super) fn follow(&mut self, folders: &BTreeSet<PathBuf>) -> Result<(), (PathBuf, io::Error)> {
        let queue = &self.queue;
        let mut failed = None;
        let mut watches = HashSet::with_capacity(folders.len());
        for folder in folders {
            match inotify::add_watch(queue, folder, WANTED) {
                Ok(watch) => {
                    watches.insert(watch);
                }
                Err(error) => {
                    failed.get_or_insert((folder.clone(), error.into()));
                }
            }
        }
        for gone in self.watches.difference(&watches) {
            // The kernel has dropped it itself where the folder is gone.
            let _ = inotify::remove_watch(queue, *gone);
        }
        self.watches = watches;
        failed.map_or(Ok(()), Err)
    }

    /// Waits until something has happened, and takes all that has.
    ///
    /// # Errors
    /// The system's.
    pub(super) async fn wait(&self) -> io::Result<()> {
        loop {
            self.queue.readable().await?;
            if self.take()? {
                return Ok(());
            }
        }
    }

    /// Whether there was anything. What it was does not matter.
    fn take(&self) -> io::Result<bool> {
        let mut buffer = [0; BUFFER];
        for taken in 0..TAKES_MAX {
            match self.queue.try_read(&mut buffer) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(taken > 0),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_happens_in_a_folder_is_noticed_and_what_is_let_go_of_is_not() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = |folder: &tempfile::TempDir| folder.path().to_owned();
        let mut notices = Notices::new().unwrap();
        notices.follow(&BTreeSet::from([path(&one), path(&other)])).unwrap();
        assert_eq!(notices.watches.len(), 2);
        std::fs::write(one.path().join("a"), "").unwrap();
        notices.wait().await.unwrap();
        notices.follow(&BTreeSet::from([path(&other)])).unwrap();
        // The kernel says that it has let go.
        notices.wait().await.unwrap();
        std::fs::write(one.path().join("a"), "").unwrap();
        assert!(!notices.take().unwrap());
        std::fs::rename(one.path().join("a"), other.path().join("b")).unwrap();
        notices.wait().await.unwrap();
    }

    #[tokio::test]
    async fn a_folder_that_is_not_there_is_told_and_the_others_are_watched() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none");
        let mut notices = Notices::new().unwrap();
        let (path, error) =
            notices.follow(&BTreeSet::from([none.clone(), folder.path().to_owned()])).unwrap_err();
        assert_eq!((path, error.kind()), (none.clone(), io::ErrorKind::NotFound));
        std::fs::create_dir(&none).unwrap();
        notices.wait().await.unwrap();
    }
}
