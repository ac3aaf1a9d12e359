//! What is stored of answers, from one process to the next: as a file that has no name, and then what is purged meanwhile.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek as _, Write as _};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::cache::store::{CacheStore, PurgeKind, PurgeOf, ToldPurge};

/// The part of the state that was purged since the file was written.
pub(super) const PURGES: &str = "purges";
/// Bytes that are given: some hundredths of a second.
const MOST: u64 = 64 << 20;

/// All that is stored, as far as there is room for it; `None`: nothing. From its beginning on purges are watched. Blocks the thread.
///
/// # Errors
/// There is no memory for it.
pub(super) fn write_down(store: &CacheStore) -> io::Result<Option<OwnedFd>> {
    if !store.is_used() {
        return Ok(None);
    }
    store.watch_purges();
    let mut file = BufWriter::with_capacity(1 << 16, File::from(nameless()?));
    store.tell(MOST, &mut file)?;
    file.flush()?;
    let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(Some(file.into()))
}

/// A file in memory that has no name. Some machines have none that might be run; old ones know no others.
fn nameless() -> io::Result<OwnedFd> {
    let make = |flags| memfd_create("evenkeel-stored", MemfdFlags::CLOEXEC | flags);
    Ok(make(MemfdFlags::NOEXEC_SEAL).or_else(|_| make(MemfdFlags::empty()))?)
}

/// Stores what the process before has written down. What is not understood is asked for anew.
pub(super) fn take_over(store: &CacheStore, file: OwnedFd) {
    let _ = store.take_over(&mut BufReader::with_capacity(1 << 16, File::from(file)));
}

/// What was purged since this was asked the last time; `None`: nothing.
#[must_use]
pub(super) fn purged(store: &CacheStore) -> Option<String> {
    let seen = store.purges_seen();
    if seen.is_empty() { None } else { serde_json::to_string(&seen).ok() }
}

/// Purges what another process has.
pub(super) fn purge_as(store: &CacheStore, told: &str) {
    match serde_json::from_str::<Vec<ToldPurge>>(told) {
        Ok(all) => all.into_iter().for_each(|purge| store.purge_as(purge)),
        // Of a later version: it may be anything.
        Err(_) => store.purge(PurgeOf::All, PurgeKind::Hard),
    }
}
