//! Addresses that are bound, or are not: why, and what to do about it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use crate::net::holder::Holder;

/// An address that can't be bound.
#[derive(Debug, Error)]
#[error("listener {listener}: can't bind {address}: {error}{}", cure(.address, .error, .holder.as_ref()))]
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

/// Why, and what to do about it.
fn cure(address: &Bound, error: &io::Error, holder: Option<&Holder>) -> String {
    match (address, error.kind()) {
        (Bound::Tcp(_), io::ErrorKind::AddrInUse) => match holder {
            Some(holder) => {
                format!("\n  held by: {holder}\n  hint: end that process, or write another port")
            }
            None => "\n  held by: another process, perhaps of another user (`sudo ss -ltnp` tells)\n  \
                     hint: end it, or write another port"
                .to_owned(),
        },
        (Bound::Unix(_), io::ErrorKind::AddrInUse) => {
            "\n  held by: another process, perhaps another evenkeel\n  hint: end it, or write another path".to_owned()
        }
        (Bound::Tcp(_), io::ErrorKind::PermissionDenied) => {
            let program = std::env::current_exe().map_or_else(|_| "evenkeel".into(), |path| path.display().to_string());
            format!(
                "\n  ports below {} need a privilege\n  hint: `sudo setcap cap_net_bind_service=+ep {program}`, or \
                 `AmbientCapabilities=CAP_NET_BIND_SERVICE` in the unit of systemd",
                first_free_port()
            )
        }
        (Bound::Unix(_), io::ErrorKind::PermissionDenied) => {
            "\n  hint: let the user that runs evenkeel write to the folder of the socket".to_owned()
        }
        (Bound::Tcp(_), io::ErrorKind::AddrNotAvailable) => {
            "\n  hint: this machine has no such address (`ip address` lists those that it has); `\"*:PORT\"` means all".to_owned()
        }
        // The system's kinds are an open list, and its own text says the rest.
        _ => String::new(),
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
    /// A unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Tcp(address) => address.fmt(f),
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
