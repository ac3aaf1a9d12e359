//! The admin socket: bound for this user and root only, and served as long as the process does not drain.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::api::Api;
use super::door::conversation::converse;
use super::door::guest_list::{GuestList, GuestPlace};
use super::exchange::caller::Caller;
use crate::events;
use crate::instance::{SocketPlace, StateFolder, UsualFolders, Whereabouts, make_private};
use crate::net::socket;
use crate::net::socket_file::SocketFile;

/// Connections at once; when one more comes, another one makes room ([`GuestList`]).
const CONNECTIONS: usize = 64;
/// Those beside them that are being closed.
const LEAVING: usize = 16;
/// Until the next try to accept.
const PAUSE: Duration = Duration::from_millis(100);

/// Why there is no admin socket.
#[derive(Debug, Error)]
#[error("admin socket {}: {error}{}", .path.display(), hint(.error))]
pub struct Unopened {
    /// Where it would be.
    pub path: PathBuf,
    /// What the system said.
    pub error: io::Error,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "\n  held by: another process, perhaps another evenkeel\n  hint: end it, or write another path"
        }
        io::ErrorKind::PermissionDenied => {
            "\n  hint: let the user that runs evenkeel write to the folder of the socket"
        }
        // The system's kinds are an open list, and its own text says the rest.
        _ => "",
    }
}

/// A bound admin socket. Its file goes with it.
#[derive(Debug)]
pub struct AdminListener {
    /// `None`: it was given up.
    bound: Mutex<Option<OpenSocket>>,
    /// Where the socket is.
    path: PathBuf,
}

#[derive(Debug)]
struct OpenSocket {
    listener: UnixListener,
    file: SocketFile,
    /// A link that leads to it.
    _way: Option<StateFolder>,
    /// The socket may be in there, so it goes after it.
    state: StateFolder,
}

impl AdminListener {
    /// Binds the socket of this process, unless the process before has `left` it bound at a place that will do; `None`: it has none, because none is wanted, or because no usual place will do, which
    /// is told.
    ///
    /// # Errors
    /// It can't be bound to the path that is written.
    pub fn open(
        whereabouts: Whereabouts,
        folders: &UsualFolders,
        mut left: Option<(PathBuf, UnixListener)>,
    ) -> Result<Option<AdminListener>, Unopened> {
        let Whereabouts { socket, state, .. } = whereabouts;
        let mut failed = None;
        for path in socket.paths() {
            let bound = match left.take_if(|(bound, _)| bound == path) {
                Some((_, listener)) => Ok((listener, SocketFile::of_another(path))),
                None => bind(path),
            };
            match bound {
                Ok((listener, file)) => {
                    let path = path.clone();
                    let bound =
                        Mutex::new(Some(OpenSocket { listener, file, _way: folders.lead_to(&path), state }));
                    return Ok(Some(AdminListener { bound, path }));
                }
                Err(error) => {
                    let is_taken = error.kind() == io::ErrorKind::AddrInUse;
                    failed.get_or_insert(Unopened { path: path.clone(), error });
                    // Whoever answers there has this name: the next place would hide one of the two.
                    if is_taken {
                        break;
                    }
                }
            }
        }
        match (socket, failed) {
            (SocketPlace::Off, _) => {}
            (SocketPlace::Chosen(_), Some(failed)) => return Err(failed),
            (SocketPlace::Chosen(_) | SocketPlace::Usual(_), None) => {
                events::no_admin_socket("every usual path is longer than 107 bytes");
            }
            (SocketPlace::Usual(_), Some(failed)) => {
                let Unopened { path, error } = failed;
                events::no_admin_socket(&format!("{}: {error}", path.display()));
            }
        }
        Ok(None)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives up the socket and its file. What is being answered is finished.
    pub fn close(&self) {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Another descriptor of the socket; `None`: it was given up.
    ///
    /// # Errors
    /// What the system reports.
    pub fn copy(&self) -> io::Result<Option<UnixListener>> {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        bound.as_ref().map(|bound| bound.listener.try_clone()).transpose()
    }

    /// What the process before has left is this one's own from now on.
    pub fn claim(&self) {
        if let Some(bound) = self.bound.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            bound.file.claim();
            bound.state.claim();
        }
    }

    /// Leaves the file, and the folder of state, where they are: another process has the socket.
    pub fn leave(&self) {
        if let Some(bound) = self.bound.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            bound.file.leave();
            bound.state.leave();
        }
    }

    fn listener(&self) -> io::Result<Option<tokio::net::UnixListener>> {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bound) = bound.as_ref() else { return Ok(None) };
        tokio::net::UnixListener::from_std(bound.listener.try_clone()?).map(Some)
    }

    /// Answers requests until `ends`, then [closes](AdminListener::close): a successor may have the path while this process
    /// drains. Called inside of the control runtime.
    pub async fn serve(&self, api: &Arc<Api>, ends: &CancellationToken) {
        let listener = match self.listener() {
            Ok(Some(listener)) => listener,
            Ok(None) => return,
            Err(error) => return events::no_admin_socket(&error.to_string()),
        };
        let guests = GuestList::new(CONNECTIONS);
        let room = Arc::new(Semaphore::new(CONNECTIONS + LEAVING));
        let own = rustix::process::geteuid().as_raw();
        let accept = async || {
            // It is never closed.
            let permit = Arc::clone(&room).acquire_owned().await.ok()?;
            match listener.accept().await {
                Ok((stream, _)) => Some((stream, permit)),
                Err(_) => {
                    // For want of descriptors, most likely.
                    sleep(PAUSE).await;
                    None
                }
            }
        };
        loop {
            let accepted = tokio::select! {
                accepted = accept() => accepted,
                () = ends.cancelled() => break,
            };
            let Some((stream, permit)) = accepted else { continue };
            if let Ok(peer) = stream.peer_cred()
                && may(own, peer.uid())
            {
                // Whoever comes while the requests of all are worked on is closed.
                let Some(place) = guests.admit() else { continue };
                tokio::spawn(answer_one(stream, place, permit, Arc::clone(api), Caller::user(peer.uid())));
            }
        }
        self.close();
    }
}

/// Whether the user `peer` may tell a process of the user `own` things.
fn may(own: u32, peer: u32) -> bool {
    peer == own || peer == 0
}

fn bind(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
        make_private(folder)?;
    }
    let listener = socket::listen_unix_private(path)?;
    Ok((listener, SocketFile::of(path)?))
}

/// One request and its answer.
async fn answer_one(
    stream: UnixStream,
    place: GuestPlace,
    _room: OwnedSemaphorePermit,
    api: Arc<Api>,
    caller: Caller,
) {
    let respond = |request| {
        let (api, caller) = (Arc::clone(&api), caller.clone());
        async move { api.answer(request, caller).await }
    };
    // A drain cuts no request short, and there is no second one.
    converse(stream, &place, false, &CancellationToken::new(), respond).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_user_and_root_may() {
        assert!(may(1000, 1000) && may(1000, 0) && may(0, 0));
        assert!(!may(1000, 1001) && !may(0, 1000));
    }
}
