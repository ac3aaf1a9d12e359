//! Addresses that are bound, or are not: why, and what to do about it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use crate::config::model::Bind;
use crate::net::holder::{self, Holder, Transport};
use crate::net::socket_file::SocketFile;

/// What a socket that clients come to is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListeningPlace {
    /// The name of its listener.
    pub listener: String,
    /// As it is written.
    pub bind: Bind,
    /// As it is.
    pub address: Bound,
}

/// An address as it is, with the file of its socket.
pub(super) type Opened = (Bound, Option<SocketFile>);

/// An address that can't be bound.
#[derive(Debug, Error)]
#[error("listener {listener}: can't bind {address}: {error}{}", self.cure())]
pub struct Unbound {
    /// The listener's name.
    pub listener: String,
    /// The address.
    pub address: Bound,
    /// What the system said.
    pub error: io::Error,
    /// Who has it, where that can be found out.
    pub holder: Option<Holder>,
}

/// What is known of an address that can't be bound, beside what the system says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindCure {
    /// Who has it.
    pub held_by: Option<String>,
    /// What the system's words mean here.
    pub why: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl fmt::Display for BindCure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BindCure { held_by, why, hint } = self;
        held_by.iter().try_for_each(|holder| write!(f, "\n  held by: {holder}"))?;
        why.iter().try_for_each(|why| write!(f, "\n  {why}"))?;
        hint.iter().try_for_each(|hint| write!(f, "\n  hint: {hint}"))
    }
}

impl Unbound {
    /// Of a listener that can't be bound to `bind`.
    #[must_use]
    pub fn new(listener: &str, bind: &Bind, error: io::Error) -> Unbound {
        let holder = match bind {
            Bind::Tcp(address) if error.kind() == io::ErrorKind::AddrInUse => {
                holder::of(Transport::Tcp, *address)
            }
            Bind::Udp(address) if error.kind() == io::ErrorKind::AddrInUse => {
                holder::of(Transport::Udp, *address)
            }
            Bind::Tcp(_) | Bind::Udp(_) | Bind::Unix(_) => None,
        };
        Unbound { listener: listener.to_owned(), address: Bound::asked(bind), error, holder }
    }

    /// Why, and what to do about it.
    #[must_use]
    pub fn cure(&self) -> BindCure {
        let held = |holder: String, hint: &str| BindCure {
            held_by: Some(holder),
            hint: Some(hint.to_owned()),
            ..BindCure::default()
        };
        let hint = |hint: &str| BindCure { hint: Some(hint.to_owned()), ..BindCure::default() };
        match (&self.address, self.error.kind()) {
            (Bound::Tcp(_) | Bound::Udp(_), io::ErrorKind::AddrInUse) => match &self.holder {
                Some(holder) => held(holder.to_string(), "end that process, or write another port"),
                None => {
                    let flags = if matches!(self.address, Bound::Udp(_)) { "-lunp" } else { "-ltnp" };
                    held(
                        format!("another process, perhaps of another user (`sudo ss {flags}` tells)"),
                        "end it, or write another port",
                    )
                }
            },
            (Bound::Unix(_), io::ErrorKind::AddrInUse) => {
                held("another process, perhaps another evenkeel".to_owned(), "end it, or write another path")
            }
            (Bound::Tcp(_) | Bound::Udp(_), io::ErrorKind::PermissionDenied) => {
                let program = std::env::current_exe()
                    .map_or_else(|_| "evenkeel".into(), |path| path.display().to_string());
                BindCure {
                    why: Some(format!("ports below {} need a privilege", first_free_port())),
                    hint: Some(format!(
                        "`sudo setcap cap_net_bind_service=+ep {program}`, or \
                         `AmbientCapabilities=CAP_NET_BIND_SERVICE` in the unit of systemd"
                    )),
                    held_by: None,
                }
            }
            (Bound::Unix(_), io::ErrorKind::PermissionDenied) => {
                hint("let the user that runs evenkeel write to the folder of the socket")
            }
            (Bound::Tcp(_) | Bound::Udp(_), io::ErrorKind::AddrNotAvailable) => hint(
                "this machine has no such address (`ip address` lists those that it has); `\"*:PORT\"` means all",
            ),
            // The system's kinds are an open list, and its own text says the rest.
            _ => BindCure::default(),
        }
    }
}

/// The first port that needs no privilege.
fn first_free_port() -> u16 {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap_or_default();
    text.trim().parse().unwrap_or(1024)
}

/// An address that is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// TCP, with the port the system chose where 0 was asked for.
    Tcp(SocketAddr),
    /// The same of UDP.
    Udp(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

impl Bound {
    /// As it is written; port 0 is not a port yet.
    #[must_use]
    pub fn asked(bind: &Bind) -> Bound {
        match bind {
            Bind::Tcp(address) => Bound::Tcp(*address),
            Bind::Udp(address) => Bound::Udp(*address),
            Bind::Unix(path) => Bound::Unix(path.clone()),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Tcp(address) | Bound::Udp(address) => address.fmt(f),
            Bound::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_file_that_may_not_be_made_has_nothing_to_do_with_ports() {
        let refused = |address| {
            let error = io::ErrorKind::PermissionDenied.into();
            Unbound { listener: "web".into(), address, error, holder: None }.to_string()
        };
        assert!(refused(Bound::Tcp(([127, 0, 0, 1], 80).into())).contains("privilege"));
        assert!(!refused(Bound::Unix("/run/a.sock".into())).contains("privilege"));
    }
}
