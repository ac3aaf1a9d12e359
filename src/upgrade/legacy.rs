//! What one process leaves to the next.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::elder::Elder;
use super::parcel::MOST_DESCRIPTORS;
use super::words::{RunningSays, SocketRow, hear, say, say_sockets};

/// The part of the state that is a file.
const STORED: &str = "stored";
/// Letters of a part of the state that go into one message.
const PART: usize = 1024 * 1024;

/// Says a part of the state, in as many messages as it takes.
///
/// # Errors
/// Whoever is to have it is gone, or does not listen.
pub(super) fn say_state(to: &UnixStream, part: &str, text: &str) -> io::Result<()> {
    let mut rest = text;
    // An empty one is there, too.
    loop {
        let (some, after) = rest.split_at(rest.floor_char_boundary(PART));
        say(to, &RunningSays::State { part: part.to_owned(), text: some.to_owned() }, &[])?;
        rest = after;
        if rest.is_empty() {
            return Ok(());
        }
    }
}

/// A socket that goes on.
#[derive(Debug)]
pub struct LegacySocket {
    /// What it is.
    pub row: SocketRow,
    /// Itself.
    pub descriptor: OwnedFd,
    /// What is under way there by UDP: what is told of each, and its way to a backend.
    pub flows: Vec<(serde_json::Value, OwnedFd)>,
}

/// What one process leaves to the next.
#[derive(Debug, Default)]
pub struct Legacy {
    /// The sockets that somebody may connect to; those of workers in the order of the workers.
    pub sockets: Vec<LegacySocket>,
    /// The folder of state, and what holds its lock.
    pub folder: Option<(PathBuf, OwnedFd)>,
    /// Those who drain still.
    pub elders: Vec<Elder>,
    /// What is known, by part.
    pub state: BTreeMap<String, String>,
    /// What is stored, in a file of its own.
    pub stored: Option<OwnedFd>,
}

impl Legacy {
    /// Gives all of it.
    ///
    /// # Errors
    /// Whoever is to have it is gone, or does not listen.
    pub fn give(&self, to: &UnixStream) -> io::Result<()> {
        for (part, text) in &self.state {
            say_state(to, part, text)?;
        }
        if let Some(stored) = &self.stored {
            say(to, &RunningSays::State { part: STORED.to_owned(), text: String::new() }, &[stored.as_fd()])?;
        }
        if let Some((path, lock)) = &self.folder {
            say(to, &RunningSays::Folder { path: path.clone() }, &[lock.as_fd()])?;
        }
        for elder in &self.elders {
            let says = RunningSays::Elder { process: elder.process, since_ms: elder.since_ms };
            say(to, &says, &[elder.socket.as_fd()])?;
        }
        let sockets: Vec<_> =
            self.sockets.iter().map(|one| (one.row.clone(), one.descriptor.as_fd())).collect();
        say_sockets(to, &sockets)?;
        for (socket, one) in self.sockets.iter().enumerate() {
            for some in one.flows.chunks(MOST_DESCRIPTORS) {
                let (flows, descriptors): (Vec<_>, Vec<_>) =
                    some.iter().map(|(told, descriptor)| (told.clone(), descriptor.as_fd())).unzip();
                say(to, &RunningSays::Flows { socket, flows }, &descriptors)?;
            }
        }
        say(to, &RunningSays::Given, &[])
    }

    /// Takes all of it.
    ///
    /// # Errors
    /// Whoever gives is gone, or says what nobody understands.
    pub fn take(from: &UnixStream) -> io::Result<Legacy> {
        let mut legacy = Legacy::default();
        loop {
            let (says, mut descriptors) = hear::<RunningSays>(from)?;
            let mut only = || match descriptors.len() {
                1 => Ok(descriptors.remove(0)),
                _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
            };
            match says {
                RunningSays::State { part, .. } if part == STORED => legacy.stored = Some(only()?),
                RunningSays::State { part, text } => legacy.state.entry(part).or_default().push_str(&text),
                RunningSays::Folder { path } => legacy.folder = Some((path, only()?)),
                RunningSays::Elder { process, since_ms } => {
                    legacy.elders.push(Elder { process, since_ms, socket: only()?.into() });
                }
                RunningSays::Sockets { sockets } if sockets.len() == descriptors.len() => {
                    let both = sockets.into_iter().zip(descriptors);
                    let socket = |(row, descriptor)| LegacySocket { row, descriptor, flows: Vec::new() };
                    legacy.sockets.extend(both.map(socket));
                }
                RunningSays::Flows { socket, flows }
                    if flows.len() == descriptors.len() && socket < legacy.sockets.len() =>
                {
                    legacy.sockets[socket].flows.extend(flows.into_iter().zip(descriptors));
                }
                RunningSays::Given => return Ok(legacy),
                RunningSays::Greeting { .. }
                | RunningSays::Sockets { .. }
                | RunningSays::Flows { .. }
                | RunningSays::Over => {
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::upgrade::words::{SocketUse, ToldAddress};

    #[test]
    fn what_is_given_is_what_is_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = ToldAddress::Tcp(listener.local_addr().unwrap());
        let row = |number: usize| SocketRow {
            used: SocketUse::Listener,
            listener: format!("web{number}"),
            written: address.clone(),
            address: address.clone(),
            lent: number == 3,
        };
        // More than one message may have.
        let sockets = (0..450).map(|number| LegacySocket {
            row: row(number),
            descriptor: listener.try_clone().unwrap().into(),
            flows: match number {
                7 => (0..250).map(|flow| (flow.into(), listener.try_clone().unwrap().into())).collect(),
                _ => Vec::new(),
            },
        });
        let (elder, _far) = UnixStream::pair().unwrap();
        // Longer than one message, with letters of several bytes at its end.
        let long = "ab\u{e9}".repeat(600_000);
        let legacy = Legacy {
            sockets: sockets.collect(),
            folder: Some(("/var/lib/evenkeel".into(), tempfile::tempfile().unwrap().into())),
            elders: vec![Elder { process: 7, since_ms: 9, socket: elder }],
            state: [("health".to_owned(), long.clone()), ("empty".to_owned(), String::new())].into(),
            stored: Some(tempfile::tempfile().unwrap().into()),
        };
        let (one, other) = UnixStream::pair().unwrap();
        let giver = std::thread::spawn(move || legacy.give(&one).map(|()| one));
        let taken = Legacy::take(&other).unwrap();
        drop(giver.join().unwrap().unwrap());
        assert_eq!(taken.sockets.len(), 450);
        assert!(taken.sockets.iter().zip(0..).all(|(one, number)| one.row == row(number)));
        let flows = taken.sockets.iter().map(|one| one.flows.len());
        assert_eq!(flows.filter(|flows| *flows > 0).collect::<Vec<_>>(), [250]);
        assert!((0..250).zip(&taken.sockets[7].flows).all(|(number, (told, _))| *told == number));
        let last = TcpListener::from(taken.sockets.into_iter().last().unwrap().descriptor);
        assert_eq!(last.local_addr().unwrap(), listener.local_addr().unwrap());
        assert_eq!(taken.folder.unwrap().0, PathBuf::from("/var/lib/evenkeel"));
        assert_eq!((taken.elders[0].process, taken.elders[0].since_ms), (7, 9));
        assert!(taken.state["health"] == long && taken.state["empty"].is_empty());
        assert!(taken.stored.is_some());
        // Who is gone half-way has given nothing.
        assert_eq!(Legacy::take(&other).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_row_without_its_socket_is_no_legacy() {
        let address = ToldAddress::Unix("/run/web.sock".into());
        let row = SocketRow {
            used: SocketUse::Listener,
            listener: "web".into(),
            written: address.clone(),
            address,
            lent: false,
        };
        let (one, other) = UnixStream::pair().unwrap();
        say(&one, &RunningSays::Sockets { sockets: vec![row] }, &[]).unwrap();
        assert_eq!(Legacy::take(&other).unwrap_err().kind(), io::ErrorKind::InvalidData);
        say(&one, &RunningSays::Folder { path: "/x".into() }, &[]).unwrap();
        assert_eq!(Legacy::take(&other).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
