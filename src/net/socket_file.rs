//! The file of a unix socket that somebody has bound.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Removed on drop, also when a start or a reload fails half-way; never that of another process.
#[derive(Debug)]
pub struct SocketFile(PathBuf, Option<FileIdentity>);

/// Which file stands at a path: device, number, and the time it was made, since numbers are used again. A
/// change of owner or mode changes none of them.
type FileIdentity = (u64, u64, i64, i64);

fn identify(path: &Path) -> io::Result<FileIdentity> {
    let file = std::fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino(), file.mtime(), file.mtime_nsec()))
}

impl SocketFile {
    /// Of the socket that was bound to `path` just now.
    ///
    /// # Errors
    /// What the system reports: it is gone already.
    pub fn of(path: &Path) -> io::Result<SocketFile> {
        Ok(SocketFile(path.to_owned(), Some(identify(path)?)))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Of a socket that another process has bound, and may go on with: it stays where it is until this one [claims](SocketFile::claim) it.
    #[must_use]
    pub fn of_another(path: &Path) -> SocketFile {
        SocketFile(path.to_owned(), None)
    }

    /// It is this process's own from now on.
    pub fn claim(&mut self) {
        self.1 = identify(&self.0).ok();
    }

    /// Leaves it where it is: another process has the socket.
    pub fn leave(&mut self) {
        self.1 = None;
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let SocketFile(path, ours) = self;
        // While we drained a successor may have put its own there.
        if let Some(ours) = ours
            && identify(path).is_ok_and(|found| found == *ours)
        {
            // Somebody may have removed it in between.
            let _ = std::fs::remove_file(path);
        }
    }
}
