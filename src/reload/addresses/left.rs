//! Addresses that the process before has left, with their sockets: nobody who connects finds them closed, and nobody else can take them.

use std::io;
use std::net::SocketAddr;

use crate::config::model::Bind;
use crate::message::ListenerId;
use crate::net::socket_file::SocketFile;
use crate::reload::bound::{Bound, ListeningPlace, Opened};
use crate::worker::{Socket, SocketId, SocketKind};

/// One of them.
#[derive(Debug)]
pub struct LeftAddress {
    /// What it was there.
    pub place: ListeningPlace,
    /// The sockets of its workers; at least one.
    pub sockets: Vec<SocketKind>,
    /// They belong to whoever supervises the process, which keeps them when it ends.
    pub is_lent: bool,
}

impl LeftAddress {
    /// Takes the one out of `all` that listener `name` wants as `bind`: its own before, of several that let the system choose the port.
    pub(in crate::reload) fn take(
        all: &mut Vec<LeftAddress>,
        name: &str,
        bind: &Bind,
    ) -> Option<LeftAddress> {
        let is_same = |one: &LeftAddress| match (bind, &one.place.address) {
            (Bind::Tcp(wanted), Bound::Tcp(there)) | (Bind::Udp(wanted), Bound::Udp(there)) => {
                // What is bound to all addresses of IPv6 has those of IPv4, too, unless somebody wants otherwise.
                let is_all = |address: &SocketAddr| address.ip().is_unspecified();
                let is_same = is_all(wanted) && is_all(there) && wanted.port() == there.port();
                wanted == there || one.place.bind == *bind || one.is_lent && is_same
            }
            (Bind::Unix(wanted), Bound::Unix(there)) => wanted == there,
            _ => false,
        };
        let found = all.iter().position(|one| is_same(one) && one.place.listener == name);
        let found = found.or_else(|| all.iter().position(is_same))?;
        Some(all.swap_remove(found))
    }

    /// Gives its sockets to the workers. Where there are fewer workers than sockets some have several; where there are more, some share one: none is
    /// closed, for what waits there would be lost, and none is added, for then the kernel would spread clients anew. Flows of UDP are one worker's, so
    /// those sockets are not shared.
    pub(in crate::reload) fn give(
        self,
        id: SocketId,
        listener: ListenerId,
        workers: &mut [Vec<Socket>],
    ) -> io::Result<Opened> {
        let LeftAddress { place, mut sockets, is_lent } = self;
        let address = place.address;
        let of_own = sockets.len();
        for number in of_own..workers.len() {
            let shared = match &sockets[number % of_own] {
                SocketKind::Tcp(tcp) => SocketKind::Tcp(tcp.try_clone()?),
                SocketKind::Unix(unix) => SocketKind::Unix(unix.try_clone()?),
                SocketKind::Udp(..) => break,
            };
            sockets.push(shared);
        }
        let count = workers.len();
        for (number, kind) in sockets.into_iter().enumerate() {
            workers[number % count].push(Socket { id, listener, kind, is_lent });
        }
        let file = match &address {
            // The supervisor keeps its own.
            Bound::Unix(path) if !is_lent => Some(SocketFile::of_another(path)),
            Bound::Unix(_) => None,
            Bound::Tcp(_) | Bound::Udp(_) => None,
        };
        Ok((address, file))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    fn tcp(listener: &str, bind: &str, sockets: usize) -> LeftAddress {
        let one = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Bound::Tcp(one.local_addr().unwrap());
        let sockets = (0..sockets).map(|_| SocketKind::Tcp(one.try_clone().unwrap())).collect();
        let place =
            ListeningPlace { listener: listener.into(), bind: Bind::Tcp(bind.parse().unwrap()), address };
        LeftAddress { place, sockets, is_lent: false }
    }

    fn spread(left: LeftAddress, workers: usize) -> Vec<usize> {
        let mut each: Vec<Vec<Socket>> = (0..workers).map(|_| Vec::new()).collect();
        left.give(SocketId(3), ListenerId(1), &mut each).unwrap();
        assert!(each.iter().flatten().all(|one| one.id == SocketId(3) && one.listener == ListenerId(1)));
        each.iter().map(Vec::len).collect()
    }

    #[test]
    fn fewer_workers_have_all_sockets_and_more_share_them() {
        assert_eq!(spread(tcp("web", "127.0.0.1:0", 4), 4), [1; 4]);
        assert_eq!(spread(tcp("web", "127.0.0.1:0", 5), 2), [3, 2]);
        assert_eq!(spread(tcp("web", "127.0.0.1:0", 2), 5), [1; 5]);
        let one = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = one.local_addr().unwrap();
        let udp = LeftAddress {
            place: ListeningPlace {
                listener: "dns".into(),
                bind: Bind::Udp(address),
                address: Bound::Udp(address),
            },
            sockets: vec![SocketKind::Udp(one, Vec::new())],
            is_lent: false,
        };
        assert_eq!(spread(udp, 3), [1, 0, 0]);
    }

    #[test]
    fn what_a_supervisor_has_bound_to_all_addresses_is_for_who_wants_those_of_one_family() {
        let bound = "[::]:8080".parse().unwrap();
        let one = |is_lent: bool| {
            let place = ListeningPlace {
                listener: String::new(),
                bind: Bind::Tcp(bound),
                address: Bound::Tcp(bound),
            };
            vec![LeftAddress { place, is_lent, ..tcp("", "[::]:8080", 1) }]
        };
        let wants = |bind: &str, is_lent: bool| {
            LeftAddress::take(&mut one(is_lent), "web", &Bind::Tcp(bind.parse().unwrap())).is_some()
        };
        assert!(wants("0.0.0.0:8080", true) && wants("[::]:8080", true));
        assert!(
            !wants("0.0.0.0:8080", false) && !wants("0.0.0.0:8081", true) && !wants("127.0.0.1:8080", true)
        );
    }

    #[test]
    fn a_listener_finds_what_was_its_own_and_then_what_fits() {
        let any = || Bind::Tcp("127.0.0.1:0".parse().unwrap());
        let mut all = vec![tcp("a", "127.0.0.1:0", 1), tcp("b", "127.0.0.1:0", 1)];
        let Bound::Tcp(of_a) = all[0].place.address else { panic!("it is TCP") };
        let written: SocketAddr = of_a;
        assert_eq!(LeftAddress::take(&mut all, "b", &any()).unwrap().place.listener, "b");
        assert!(LeftAddress::take(&mut all, "c", &Bind::Udp(written)).is_none());
        assert!(LeftAddress::take(&mut all, "c", &Bind::Unix("/run/web.sock".into())).is_none());
        // The port that the system chose is written out, under another name.
        assert_eq!(LeftAddress::take(&mut all, "c", &Bind::Tcp(written)).unwrap().place.listener, "a");
        assert!(LeftAddress::take(&mut all, "a", &any()).is_none());
    }
}
