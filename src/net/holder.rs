//! Who holds an address that can't be bound, as far as `/proc` tells this user. Called by `server` when a start fails.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

/// A process that listens on an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its id.
    pub process: u32,
    /// What it is called.
    pub name: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.process)
    }
}

/// By what an address is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Transport {
    /// The kernel's tables of its sockets, for v4 and v6.
    fn tables(self) -> [&'static str; 2] {
        match self {
            Transport::Tcp => ["/proc/net/tcp", "/proc/net/tcp6"],
            Transport::Udp => ["/proc/net/udp", "/proc/net/udp6"],
        }
    }

    /// The state there of a socket that takes what comes from anybody.
    fn state(self) -> &'static str {
        match self {
            Transport::Tcp => "0A",
            Transport::Udp => "07",
        }
    }
}

/// Who listens on the port of `address`. `None`: nobody, or somebody whom only root may see.
#[must_use]
pub fn of(transport: Transport, address: SocketAddr) -> Option<Holder> {
    let tables = transport.tables().map(|file| fs::read_to_string(file).unwrap_or_default());
    let inodes: Vec<u64> =
        tables.iter().flat_map(|table| listening(table, transport, address.port())).collect();
    if inodes.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).find_map(|process| {
        let folder = Path::new("/proc").join(process.to_string());
        let holds = sockets(&folder)?.any(|inode| inodes.contains(&inode));
        let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
        // Whoever names a process may put anything there.
        let name = name.trim_end().chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        holds.then_some(Holder { process, name })
    })
}

/// Whether this process listens on the port of `address`, in its family, and nobody else does. False where that can't be seen.
#[must_use]
pub fn is_this_process_alone(transport: Transport, address: SocketAddr) -> bool {
    let [v4, v6] = transport.tables();
    let file = if address.is_ipv4() { v4 } else { v6 };
    let look = || fs::read_to_string(file).ok().map(|table| listening(&table, transport, address.port()));
    let own = || Some(sockets(Path::new("/proc/self"))?.collect());
    match (look(), own(), look()) {
        (Some(before), Some(own), Some(after)) => !before.is_empty() && are_all_of(&before, &own, &after),
        _ => false,
    }
}

/// Whether nobody but the owner of `own` listens all the while: one that is not there any more may have been closed in between.
fn are_all_of(before: &[u64], own: &HashSet<u64>, after: &[u64]) -> bool {
    before.iter().all(|inode| own.contains(inode) || !after.contains(inode))
}

/// The inodes of the sockets that a process has open; `None`: nobody tells.
fn sockets(process: &Path) -> Option<impl Iterator<Item = u64>> {
    let descriptors = fs::read_dir(process.join("fd")).ok()?.flatten();
    Some(descriptors.filter_map(|descriptor| {
        let link = fs::read_link(descriptor.path()).ok()?;
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    }))
}

/// The inodes of the sockets in a table of the kernel that listen on `port`.
fn listening(table: &str, transport: Transport, port: u16) -> Vec<u64> {
    let row = |line: &str| {
        let mut cells = line.split_whitespace();
        let local = cells.nth(1)?;
        let state = cells.nth(1)?;
        let own = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
        let inode = cells.nth(5)?.parse().ok()?;
        (own == port && state == transport.state()).then_some(inode)
    };
    table.lines().skip(1).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn a_listener_of_this_process_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let holder = of(Transport::Tcp, address).expect("this process is seen by itself");
        assert_eq!(holder.process, std::process::id());
        assert!(!holder.name.is_empty());
        assert!(is_this_process_alone(Transport::Tcp, address));
        let silent =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        silent.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
        let address = silent.local_addr().expect("its address").as_socket().expect("of IP");
        assert!(!is_this_process_alone(Transport::Tcp, address), "nobody listens");
    }

    #[test]
    fn a_socket_for_datagrams_is_found_among_those() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("its address");
        assert_eq!(of(Transport::Udp, address).expect("this process").process, std::process::id());
        assert!(is_this_process_alone(Transport::Udp, address));
        drop(socket);
        // Another test may get the same number; not again and again.
        let is_nobody_there = |_| {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
            let address = socket.local_addr().expect("its address");
            drop(socket);
            !is_this_process_alone(Transport::Udp, address)
        };
        assert!(!is_this_process_alone(Transport::Udp, address) || (0..5).any(is_nobody_there));
    }

    #[test]
    fn one_socket_of_somebody_else_is_enough() {
        let own = HashSet::from([1, 2, 3]);
        assert!(are_all_of(&[1, 3], &own, &[1, 3]));
        assert!(!are_all_of(&[1, 4], &own, &[1, 4]));
        assert!(are_all_of(&[1, 4], &own, &[1]), "it was ours, and is closed");
    }

    #[test]
    fn only_sockets_that_listen_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0\n   \
            1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0 20 4 30 10 -1\n";
        assert_eq!(listening(table, Transport::Tcp, 8080), [4711]);
        assert!(listening(table, Transport::Tcp, 80).is_empty());
    }
}
