//! A journal in a folder of this machine.
//!
//! Invariants:
//!
//! 1. One process has the folder: it holds a lock on the file `lock` in it, which the system lets go with the process. What is
//!    written there, name and number, is for messages only.
//! 2. The journal is a row of whole lines, of which the last may be torn; `end` is where the lines that count end. What is behind it
//!    was never said to be kept, and is cut off before the next line is written.
//! 3. A line counts when `fsync` has returned. If that fails nobody knows what is on the disk, so the journal is written anew, from
//!    what counts, before the next line.
//! 4. Another journal takes the place of the first by a rename, after its own `fsync` and before one of the folder: at any
//!    moment one of the two is there as a whole.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use thiserror::Error;

use super::journal::{self, HEAD, JournalText};
use super::{Kept, Store, StoreRecord};
use crate::instance::make_private;

/// Behind the name of a journal that is about to take its place.
const NEXT: &str = ".new";
/// Behind the name of one that is kept aside.
const DAMAGED: &str = ".damaged";
const LOCK: &str = "lock";
/// What the folder is known by to others.
const IDENTITY: &str = "node.id";
/// A journal is rewritten long before.
const SIZE_MAX: u64 = 256 * 1024 * 1024;

/// Why a folder can't be had.
#[derive(Debug, Error)]
pub enum Unlocked {
    /// Somebody else has it.
    #[error("state_dir {} is in use by {holder}", .folder.display())]
    Held {
        /// The folder.
        folder: PathBuf,
        /// Who has it, as far as it says: `edge-1 (process 123)`.
        holder: String,
    },
    /// Nothing can be written there.
    #[error("state_dir {}: {error}", .folder.display())]
    Unwritable {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// A folder that this process has for itself, until it is dropped.
#[derive(Debug)]
pub struct LockedFolder {
    path: PathBuf,
    lock: File,
}

impl LockedFolder {
    /// Takes `folder`, which is made if it is not there. `name`: whom others are told of.
    ///
    /// # Errors
    /// See [`Unlocked`].
    pub fn take(folder: &Path, name: &str) -> Result<LockedFolder, Unlocked> {
        let unwritable = |error| Unlocked::Unwritable { folder: folder.to_owned(), error };
        make_private(folder).map_err(unwritable)?;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(folder.join(LOCK)).map_err(unwritable)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                let _ = (&lock).take(1024).read_to_string(&mut holder);
                let holder = match holder.trim() {
                    "" => "another process".to_owned(),
                    known => known.chars().filter(|c| !c.is_control()).collect(),
                };
                return Err(Unlocked::Held { folder: folder.to_owned(), holder });
            }
            Err(error) => return Err(unwritable(error.into())),
        }
        tell(&lock, name);
        Ok(LockedFolder { path: folder.to_owned(), lock })
    }

    /// Takes `folder` together with a process that has it, and gives its `lock`; if that is the lock of another folder, for itself. From then on both have it,
    /// and it is free when both have let go of it: who writes there they have to agree on.
    ///
    /// # Errors
    /// See [`Unlocked`].
    pub fn share(folder: &Path, name: &str, lock: OwnedFd) -> Result<LockedFolder, Unlocked> {
        let lock = File::from(lock);
        let identity = |facts: std::fs::Metadata| (facts.dev(), facts.ino());
        let theirs = lock.metadata().map(identity).ok();
        let own = std::fs::metadata(folder.join(LOCK)).map(identity).ok();
        if own.is_none() || own != theirs {
            return LockedFolder::take(folder, name);
        }
        tell(&lock, name);
        Ok(LockedFolder { path: folder.to_owned(), lock })
    }

    /// What a process holds by which this one is [shared](LockedFolder::share).
    ///
    /// # Errors
    /// What the system reports.
    pub fn copy_of_lock(&self) -> io::Result<OwnedFd> {
        self.lock.try_clone().map(OwnedFd::from)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What this folder is known by: made when it is first asked for. `None`: it can't be kept.
    #[must_use]
    pub fn identity(&self, fresh: u128) -> Option<String> {
        let path = self.path.join(IDENTITY);
        let known = std::fs::read_to_string(&path).ok().map(|text| text.trim().to_owned());
        if let Some(known) = known.filter(|known| known.len() == 32) {
            return Some(known);
        }
        let made = format!("{fresh:032x}");
        std::fs::write(&path, &made).ok()?;
        Some(made)
    }

    /// Whether it has a journal of this name.
    #[must_use]
    pub fn has(&self, journal: &str) -> bool {
        self.path.join(journal).exists()
    }
}

/// Says in the file whose it is. It serves messages only; a disk that has no room for it may have some later.
fn tell(mut lock: &File, name: &str) {
    let _ = lock.set_len(0);
    let _ = lock.rewind();
    let _ = writeln!(lock, "{name} (process {})", std::process::id());
}

/// Keeps records in a journal there.
#[derive(Debug)]
pub struct LocalStore {
    folder: Arc<LockedFolder>,
    journal: &'static str,
    file: Option<File>,
    /// Bytes that count.
    end: u64,
    /// More may be in the file than counts.
    is_dirty: bool,
    /// The lines that count may not be on the disk.
    is_doubtful: bool,
}

impl LocalStore {
    /// The journal of changes by hand.
    pub const OVERLAY: &str = "overlay.journal";
    /// The journal of what authorities were asked for.
    pub const ACME: &str = "acme.journal";
    /// The journal of what a cluster of one shares with itself.
    pub const CLUSTER: &str = "cluster.journal";
    /// The journal of messages to webhooks.
    pub const WEBHOOKS: &str = "webhooks.journal";

    /// In this folder, which several journals share, in the file of this name.
    #[must_use]
    pub fn new(folder: &Arc<LockedFolder>, journal: &'static str) -> LocalStore {
        let folder = Arc::clone(folder);
        LocalStore { folder, journal, file: None, end: 0, is_dirty: false, is_doubtful: false }
    }

    /// Of the journal, or one with this behind its name.
    fn path(&self, suffix: &str) -> PathBuf {
        self.folder.path.join(format!("{}{suffix}", self.journal))
    }

    fn open(&self, suffix: &str, is_new: bool) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(is_new).mode(0o600).open(self.path(suffix))
    }

    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.folder.path)?.sync_all()
    }

    /// A journal with these bytes in the place of what is there.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut next = self.open(NEXT, true)?;
        let done = next.write_all(bytes).and_then(|()| next.sync_all());
        let done = done.and_then(|()| std::fs::rename(self.path(NEXT), self.path("")));
        if let Err(error) = done {
            let _ = std::fs::remove_file(self.path(NEXT));
            return Err(error);
        }
        (self.file, self.end, self.is_dirty) = (Some(next), bytes.len() as u64, false);
        // Until this has worked the name may lead to the old one after a crash.
        self.is_doubtful = true;
        self.sync_folder()?;
        self.is_doubtful = false;
        Ok(())
    }

    /// All that counts, read again from the file.
    fn counting(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(file) = &mut self.file {
            file.seek(SeekFrom::Start(0))?;
            file.take(self.end).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }
}

impl LocalStore {
    /// All that was kept, of a journal that another process may write: nothing is mended.
    ///
    /// # Errors
    /// It can't be read.
    pub fn look(&self) -> io::Result<Kept> {
        match File::open(self.path("")) {
            Ok(file) => Ok(self.read(&file)?.0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kept::default()),
            Err(error) => Err(error),
        }
    }

    /// What is in it, and where the lines that count end.
    fn read(&self, mut file: &File) -> io::Result<(Kept, usize)> {
        let refused = |why: String| Err(io::Error::other(format!("{}{why}", self.path("").display())));
        if file.metadata()?.len() > SIZE_MAX {
            return refused(" is larger than 256MiB".to_owned());
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        match journal::read(&bytes) {
            JournalText::Known { kept, whole } => Ok((kept, whole)),
            JournalText::Foreign => refused(" was written by a later version of evenkeel".to_owned()),
            JournalText::Doubled(line) => {
                let before = line - 1;
                refused(format!(
                    ":{line}: another journal begins here, so two were put together; end evenkeel, keep the lines up to {before} \
                     or those from {line} on, and start it again"
                ))
            }
        }
    }
}

impl Store for LocalStore {
    fn load(&mut self) -> io::Result<Kept> {
        let file = self.open("", false)?;
        let (kept, whole) = self.read(&file)?;
        self.file = Some(file);
        self.end = whole as u64;
        self.is_dirty = kept.torn > 0;
        if kept.damaged > 0 {
            std::fs::copy(self.path(""), self.path(DAMAGED))?;
            self.replace(&journal::write(&kept.records))?;
        } else if whole == 0 {
            self.replace(&journal::line(HEAD))?;
        }
        Ok(kept)
    }

    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        if record.contains(&b'\n') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a record is one line"));
        }
        if self.is_doubtful {
            let bytes = self.counting()?;
            self.replace(&bytes)?;
        }
        let end = self.end;
        let Some(file) = &mut self.file else { return Err(io::Error::other("it could not be read")) };
        if file.metadata()?.nlink() == 0 {
            // What is written to it now would be gone with this process.
            return Err(io::Error::other(
                "its file was removed while this process runs; a restart makes another one",
            ));
        }
        if self.is_dirty {
            file.set_len(end)?;
            self.is_dirty = false;
        }
        let line = journal::line(record);
        file.seek(SeekFrom::Start(end))?;
        let written = file.write_all(&line);
        if let Err(error) = written {
            // Nobody was told that it is kept, so it may not come back.
            self.is_dirty = file.set_len(end).is_err();
            return Err(error);
        }
        if let Err(error) = file.sync_data() {
            self.is_dirty = file.set_len(end).is_err();
            self.is_doubtful = true;
            return Err(error);
        }
        self.end += line.len() as u64;
        Ok(())
    }

    fn compact(&mut self, records: &[StoreRecord]) -> io::Result<()> {
        self.replace(&journal::write(records))
    }

    fn size(&self) -> u64 {
        self.end
    }
}

#[cfg(test)]
mod tests;
