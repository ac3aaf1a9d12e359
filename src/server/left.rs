//! What the process before has left: its sockets by what they are for, and its folder.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::config::model::{Bind, Config};
use crate::net::socket::is_for_v6_only;
use crate::proxy::udp::relay::LeftFlow;
use crate::reload::Reloader;
use crate::reload::addresses::left::LeftAddress;
use crate::reload::bound::{Bound, ListeningPlace};
use crate::upgrade::words::{SocketUse, ToldAddress};
use crate::upgrade::{Legacy, LegacySocket};
use crate::worker::SocketKind;

/// The sockets that the process before has left, by what they are for.
#[derive(Debug, Default)]
pub struct LeftSockets {
    /// Those that clients come to.
    pub listeners: Vec<LeftAddress>,
    /// The admin socket.
    pub admin: Option<(PathBuf, UnixListener)>,
    /// The admin API over TCP, as written.
    pub door: Vec<(SocketAddr, TcpListener)>,
    /// Metrics, as written.
    pub metrics: Vec<(SocketAddr, TcpListener)>,
    /// The files of unix sockets among them.
    pub files: Vec<PathBuf>,
}

impl LeftSockets {
    /// Sorts them. What does not fit together is closed: nobody asked for it.
    #[must_use]
    pub fn of(sockets: Vec<LegacySocket>) -> LeftSockets {
        let mut left = LeftSockets::default();
        for LegacySocket { row, descriptor, flows } in sockets {
            if let ToldAddress::Unix(path) = &row.address
                && !row.lent
            {
                left.files.push(path.clone());
            }
            match (row.used, row.written, row.address) {
                (SocketUse::Listener, written, address) => {
                    if let Some((place, kind)) = listening(row.listener, written, address, descriptor, flows)
                    {
                        left.add(place, kind, row.lent);
                    }
                }
                (SocketUse::AdminSocket, _, ToldAddress::Unix(path)) => {
                    left.admin = Some((path, descriptor.into()));
                }
                (SocketUse::Admin, ToldAddress::Tcp(written), _) => {
                    left.door.push((written, descriptor.into()))
                }
                (SocketUse::Metrics, ToldAddress::Tcp(written), _) => {
                    left.metrics.push((written, descriptor.into()));
                }
                (SocketUse::AdminSocket | SocketUse::Admin | SocketUse::Metrics, ..) => {}
            }
        }
        left
    }

    /// Adds those that whoever supervises the process has bound: sd_listen_fds(3). What is for operators is known by its address.
    #[must_use]
    pub fn and_lent(mut self, lent: Vec<SocketKind>, config: &Config) -> LeftSockets {
        for kind in lent {
            let address = match &kind {
                SocketKind::Tcp(tcp) => tcp.local_addr().map(Bound::Tcp).ok(),
                SocketKind::Udp(udp, _) => udp.local_addr().map(Bound::Udp).ok(),
                SocketKind::Unix(unix) => unix
                    .local_addr()
                    .ok()
                    .and_then(|address| address.as_pathname().map(|path| Bound::Unix(path.to_owned()))),
            };
            let Some(address) = address else { continue };
            let bind = match address.clone() {
                Bound::Tcp(address) => Bind::Tcp(address),
                Bound::Udp(address) => Bind::Udp(address),
                Bound::Unix(path) => Bind::Unix(path),
            };
            let is_admin = |address: &SocketAddr| {
                config.admin.as_ref().is_some_and(|admin| admin.binds.contains(address))
            };
            match (kind, &address) {
                (SocketKind::Tcp(tcp), Bound::Tcp(address)) if is_admin(address) => {
                    self.door.push((*address, tcp));
                }
                (SocketKind::Tcp(tcp), Bound::Tcp(address)) if config.metrics.binds.contains(address) => {
                    self.metrics.push((*address, tcp));
                }
                (kind, _) => {
                    if let Some((place, kind)) = of_both_families(&kind, config) {
                        self.add(place, kind, true);
                    }
                    let place = ListeningPlace { listener: String::new(), bind, address };
                    self.add(place, kind, true);
                }
            }
        }
        self
    }

    /// Where those are that the supervisor has bound for clients.
    #[must_use]
    pub fn lent(&self) -> Vec<Bound> {
        self.listeners.iter().filter(|one| one.is_lent).map(|one| one.place.address.clone()).collect()
    }

    /// One more socket of an address: those of all workers stand together.
    fn add(&mut self, place: ListeningPlace, kind: SocketKind, is_lent: bool) {
        match self.listeners.iter_mut().find(|one| one.place == place) {
            Some(there) => there.sockets.push(kind),
            None => self.listeners.push(LeftAddress { place, sockets: vec![kind], is_lent }),
        }
    }
}

/// The same socket once more, for IPv4, where it has both families and a listener wants both: `*:80` is two addresses here, and one socket where
/// `ListenStream=80` has bound it.
fn of_both_families(kind: &SocketKind, config: &Config) -> Option<(ListeningPlace, SocketKind)> {
    let SocketKind::Tcp(tcp) = kind else { return None };
    let v6 = tcp.local_addr().ok().filter(|address| address.is_ipv6() && address.ip().is_unspecified())?;
    let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, v6.port()));
    let wants = |address| move |bind: &Bind| *bind == Bind::Tcp(address);
    let is_wanted =
        config.listeners.iter().any(|one| one.binds.iter().any(wants(v6)) && one.binds.iter().any(wants(v4)));
    if !is_wanted || is_for_v6_only(tcp) {
        return None;
    }
    let place = ListeningPlace { listener: String::new(), bind: Bind::Tcp(v4), address: Bound::Tcp(v4) };
    Some((place, SocketKind::Tcp(tcp.try_clone().ok()?)))
}

fn listening(
    listener: String,
    written: ToldAddress,
    address: ToldAddress,
    descriptor: OwnedFd,
    flows: Vec<(serde_json::Value, OwnedFd)>,
) -> Option<(ListeningPlace, SocketKind)> {
    let flows = flows.into_iter().filter_map(|(told, leg)| LeftFlow::of(told, leg)).collect();
    let (bind, address, kind) = match (written, address) {
        (ToldAddress::Tcp(written), ToldAddress::Tcp(address)) => {
            (Bind::Tcp(written), Bound::Tcp(address), SocketKind::Tcp(descriptor.into()))
        }
        (ToldAddress::Udp(written), ToldAddress::Udp(address)) => {
            (Bind::Udp(written), Bound::Udp(address), SocketKind::Udp(descriptor.into(), flows))
        }
        (ToldAddress::Unix(written), ToldAddress::Unix(address)) => {
            (Bind::Unix(written), Bound::Unix(address), SocketKind::Unix(descriptor.into()))
        }
        _ => return None,
    };
    Some((ListeningPlace { listener, bind, address }, kind))
}

/// Takes away those files of unix sockets that the process before has left and nobody has here: whoever connects is not to find somebody who is gone.
pub fn clear_left(files: Vec<PathBuf>, reloader: &Reloader, admin: Option<&Path>) {
    let bound = reloader.bound();
    let is_ours = |path: &Path| {
        admin == Some(path) || bound.iter().any(|(_, bound)| matches!(bound, Bound::Unix(own) if own == path))
    };
    for path in files.into_iter().filter(|path| !is_ours(path)) {
        if std::fs::symlink_metadata(&path).is_ok_and(|facts| facts.file_type().is_socket()) {
            // Somebody may have removed it in between.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The folder of state that the process before has left, if it was `folder`.
#[must_use]
pub fn lock_of(legacy: &mut Legacy, folder: &Path) -> Option<OwnedFd> {
    let (_, lock) = legacy.folder.take_if(|(path, _)| path == folder)?;
    Some(lock)
}
