//! Which process is meant: by its socket, by its config, or because there is no other one.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use hyper::{Method, StatusCode};
use tokio::net::UnixStream;

use super::ask::{AdminQuestion, ask};
use crate::admin::wire::ProcessFacts;
use crate::cli::args::running::ProcessOptions;
use crate::config;
use crate::instance::{UsualFolders, Whereabouts, absolute};

/// How long a process that may be meant may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(3);

/// What names a socket in the environment.
const VARIABLE: &str = "EVENKEEL_SOCKET";

/// A process that answers.
struct Live {
    socket: PathBuf,
    identity: ProcessFacts,
}

/// The socket of the process that is meant.
///
/// # Errors
/// There is none, or more than one.
pub(super) async fn socket(options: &ProcessOptions) -> anyhow::Result<PathBuf> {
    if let Some(socket) = &options.socket {
        return Ok(socket.clone());
    }
    if let Some(config) = &options.config {
        return of_config(config).await;
    }
    if let Some(socket) = std::env::var_os(VARIABLE).filter(|socket| !socket.is_empty()) {
        return Ok(socket.into());
    }
    let mut live = live(UsualFolders::here().sockets()).await;
    match live.len() {
        0 => bail!(
            "no evenkeel of this user runs, or none with an admin socket\n  \
             hint: name it with `--socket PATH` or `-c FILE`; the log of the process says `admin socket PATH`"
        ),
        1 => Ok(live.remove(0).socket),
        _ => bail!("{}", several(&live)),
    }
}

/// The one that serves this file: it has the socket that the file leads to, or it says so.
async fn of_config(file: &Path) -> anyhow::Result<PathBuf> {
    let instance = config::instance_in(file, &|name| std::env::var(name).ok());
    let whereabouts = Whereabouts::of(&instance, Some(file), &UsualFolders::here());
    let own = live(whereabouts.socket.paths().to_vec()).await;
    if let Some(found) = own.into_iter().next() {
        return Ok(found.socket);
    }
    let wanted = absolute(file).display().to_string();
    let others = live(UsualFolders::here().sockets()).await;
    let mut serving: Vec<Live> =
        others.into_iter().filter(|live| live.identity.config.as_deref() == Some(&*wanted)).collect();
    match serving.len() {
        0 => bail!(
            "no evenkeel serves {wanted}, or it has no admin socket\n  hint: name the socket with `--socket PATH`"
        ),
        1 => Ok(serving.remove(0).socket),
        _ => bail!("{}", several(&serving)),
    }
}

fn several(live: &[Live]) -> String {
    let mut text = format!("{} processes run; name one with `--socket PATH` or `-c FILE`:", live.len());
    for Live { socket, identity } in live {
        let config = identity.config.as_deref().unwrap_or("no config file");
        let socket = socket.canonicalize().unwrap_or_else(|_| socket.clone());
        let _ =
            write!(text, "\n  {} (process {}, {config}): {}", identity.name, identity.pid, socket.display());
    }
    text
}

/// Those of these sockets at which somebody answers whom this user may trust.
async fn live(sockets: Vec<PathBuf>) -> Vec<Live> {
    let mut found = Vec::new();
    for socket in sockets {
        if is_trusted(&socket).await
            && let Some(identity) = identity(&socket).await
            // A link may lead to one that was found at its own place.
            && !found.iter().any(|known: &Live| known.identity.pid == identity.pid)
        {
            found.push(Live { socket, identity });
        }
    }
    found
}

/// In a folder that all may write to anybody could put a socket and wait for configs.
async fn is_trusted(socket: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let stream = match UnixStream::connect(socket).await {
        Ok(stream) => stream,
        Err(error) => {
            // Who was killed has left its link behind.
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) {
                UsualFolders::here().forget(socket);
            }
            return false;
        }
    };
    let is_shared = socket.starts_with("/tmp") || socket.starts_with(std::env::temp_dir());
    stream.peer_cred().is_ok_and(|peer| {
        let peer = peer.uid();
        peer == own || peer == 0 || (own == 0 && !is_shared)
    })
}

async fn identity(socket: &Path) -> Option<ProcessFacts> {
    let question = AdminQuestion { method: Method::GET, path: "/api/v1".to_owned(), body: Vec::new() };
    let (status, body) = ask(socket, question, PATIENCE).await.ok()?;
    (status == StatusCode::OK).then(|| serde_json::from_slice(&body).ok()).flatten()
}
