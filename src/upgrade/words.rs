//! What two generations say to one another. Each message is one JSON object ([`parcel`]), some with descriptors.
//!
//! Both ignore fields that they do not know, and parts of the state; what could not be ignored is another [`PROTOCOL`].

use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::parcel::{self, MOST_DESCRIPTORS};

/// The lowest and the highest version of these words that this binary understands.
pub const PROTOCOL: [u32; 2] = [1, 1];

/// The variable that tells a process whose place it is to take: the number of that process.
pub const VARIABLE: &str = "EVENKEEL_UPGRADE";

/// An address as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToldAddress {
    /// TCP.
    Tcp(SocketAddr),
    /// UDP.
    Udp(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketUse {
    /// Clients; the socket of one worker.
    Listener,
    /// The admin socket.
    AdminSocket,
    /// The admin API over TCP.
    Admin,
    /// Metrics.
    Metrics,
}

/// One socket, whose descriptor comes with the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketRow {
    /// What it is for.
    #[serde(rename = "use")]
    pub used: SocketUse,
    /// The name of the listener.
    pub listener: String,
    /// As the config has it.
    pub written: ToldAddress,
    /// As it is.
    pub address: ToldAddress,
    /// Whoever supervises the process has bound it.
    #[serde(default)]
    pub lent: bool,
}

/// What the running process says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum RunningSays {
    /// The first word.
    Greeting {
        /// Which words are spoken: one of those that the new one understands.
        protocol: u32,
        /// Its version.
        version: String,
        /// The how manieth process it is in its row, from 1.
        generation: u32,
    },
    /// Sockets, each with its descriptor.
    Sockets {
        /// In the order of the descriptors.
        sockets: Vec<SocketRow>,
    },
    /// What is under way on a socket by UDP, each with the descriptor of its way to a backend.
    Flows {
        /// The number of the socket among all that were told, from 0.
        socket: usize,
        /// In the order of the descriptors; what each is, is told in a form of its own.
        flows: Vec<serde_json::Value>,
    },
    /// The lock of the folder of state, with its descriptor.
    Folder {
        /// Where it is.
        path: PathBuf,
    },
    /// A process that was the running one once and drains, with the descriptor by which it is spoken to.
    Elder {
        /// Its number.
        process: u32,
        /// Since when it drains, in milliseconds since 1970.
        since_ms: u64,
    },
    /// A part of what it knows. Of a part that is long there are several; one that is a file comes with its descriptor.
    State {
        /// Which.
        part: String,
        /// What; each part has a form of its own.
        text: String,
    },
    /// That was all.
    Given,
    /// It serves nobody new any more, and has let go of what only one may have.
    Over,
}

/// What the new process says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum NewSays {
    /// Its config is good.
    Greeting {
        /// The lowest and the highest version of these words that it understands.
        protocol: [u32; 2],
        /// Its version.
        version: String,
    },
    /// It can't.
    Refused {
        /// Why.
        why: String,
    },
    /// It serves.
    Ready {
        /// It goes on as the node of its cluster that the running one is.
        #[serde(default)]
        is_node: bool,
    },
    /// Whatever is still under way there is to be cut.
    Cut,
}

/// Says something.
///
/// # Errors
/// The other one is gone, or does not listen.
pub fn say<T: Serialize>(to: &UnixStream, what: &T, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    parcel::send(to, &serde_json::to_vec(what)?, descriptors)
}

/// Waits for something.
///
/// # Errors
/// The other one is gone, takes too long, or says what nobody understands.
pub fn hear<T: DeserializeOwned>(from: &UnixStream) -> io::Result<(T, Vec<OwnedFd>)> {
    let parcel = parcel::receive(from)?;
    let what = serde_json::from_slice(&parcel.bytes);
    Ok((what.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?, parcel.descriptors))
}

/// Says which sockets there are, in as many messages as it takes.
pub(super) fn say_sockets(to: &UnixStream, sockets: &[(SocketRow, BorrowedFd<'_>)]) -> io::Result<()> {
    for some in sockets.chunks(MOST_DESCRIPTORS) {
        let (rows, descriptors): (Vec<_>, Vec<_>) = some.iter().cloned().unzip();
        say(to, &RunningSays::Sockets { sockets: rows }, &descriptors)?;
    }
    Ok(())
}
