//! Where datagrams go. Nothing here waits, but for the address of a name.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::lookup_host;
use tokio::time::{Instant, timeout};

use crate::config::model::StatsdAddress;

/// Bytes of a datagram that is in one piece on every path, with room for tunnels.
const UDP_MAX: usize = 1432;
/// Bytes of one that stays on this machine.
const UNIX_MAX: usize = 8192;
/// How long a name is taken for its address.
const LOOKED_UP_FOR: Duration = Duration::from_secs(60);
/// How long no other lookup is begun, also where it has failed: some resolvers take their time to say so.
const LOOKED_UP_AT_MOST: Duration = Duration::from_secs(5);
/// A lookup that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why a datagram was not sent.
pub(super) enum WhyUnsent {
    /// There is no room for it just now.
    Full,
    /// Whatever is sent there, as it seems; and nothing of what was sent by UDP just before has arrived.
    Gone(String),
    /// This one can't be.
    Unfit(String),
}

enum Way {
    Udp { socket: Option<UdpSocket>, peer: Option<SocketAddr>, looked_up: Option<Instant> },
    Unix(io::Result<UnixDatagram>),
}

/// Where datagrams go.
pub(super) struct StatsdSocket {
    to: StatsdAddress,
    way: Way,
}

impl StatsdSocket {
    pub(super) fn new(to: &StatsdAddress) -> StatsdSocket {
        let way = match to {
            StatsdAddress::Udp { .. } => Way::Udp { socket: None, peer: None, looked_up: None },
            StatsdAddress::Unix(_) => Way::Unix(unix()),
        };
        StatsdSocket { to: to.clone(), way }
    }

    /// Most bytes of a datagram.
    pub(super) fn limit(&self) -> usize {
        if self.is_udp() { UDP_MAX } else { UNIX_MAX }
    }

    /// What is sent may turn out not to have arrived.
    pub(super) fn is_udp(&self) -> bool {
        matches!(self.way, Way::Udp { .. })
    }

    /// Finds out where a name leads, if that is not known, or was long ago, or `is_failing`.
    pub(super) async fn look_up(&mut self, is_failing: bool) {
        let (StatsdAddress::Udp { host, port }, Way::Udp { socket, peer, looked_up }) =
            (&self.to, &mut self.way)
        else {
            return;
        };
        let is_good = socket.is_some() && !is_failing;
        let patience = if is_good { LOOKED_UP_FOR } else { LOOKED_UP_AT_MOST };
        if looked_up.is_some_and(|at| at.elapsed() < patience) {
            return;
        }
        let found = match host.parse::<IpAddr>() {
            Ok(ip) => Some(SocketAddr::new(ip, *port)),
            Err(_) => {
                let found = timeout(PATIENCE, lookup_host((host.as_str(), *port))).await;
                let all: Vec<SocketAddr> = found.ok().and_then(Result::ok).into_iter().flatten().collect();
                choose(&all, *peer, is_failing)
            }
        };
        *looked_up = Some(Instant::now());
        // A name that leads nowhere now leads where it did.
        let Some(found) = found.or(*peer) else { return };
        if socket.is_none() || *peer != Some(found) {
            *socket = udp(found).ok();
            *peer = Some(found);
        }
    }

    /// What has been heard since of what was sent.
    pub(super) fn late_fault(&self) -> Option<String> {
        match &self.way {
            Way::Udp { socket: Some(socket), .. } => {
                socket.take_error().ok().flatten().map(|error| words(&error))
            }
            Way::Udp { .. } | Way::Unix(_) => None,
        }
    }

    /// Sends it, or does not.
    pub(super) fn send(&self, bytes: &[u8]) -> Result<(), WhyUnsent> {
        let sent = match (&self.way, &self.to) {
            (Way::Udp { socket: Some(socket), .. }, _) => socket.send(bytes),
            (Way::Udp { peer: None, .. }, _) => {
                return Err(WhyUnsent::Gone("its name does not resolve".into()));
            }
            (Way::Udp { .. }, _) => return Err(WhyUnsent::Gone("there is no way to its address".into())),
            (Way::Unix(Ok(socket)), StatsdAddress::Unix(path)) => socket.send_to(bytes, path),
            (Way::Unix(Ok(_)), StatsdAddress::Udp { .. }) => return Ok(()),
            (Way::Unix(Err(error)), _) => return Err(WhyUnsent::Gone(words(error))),
        };
        match sent {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(WhyUnsent::Full),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOBUFS) => Err(WhyUnsent::Full),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::MSGSIZE) => {
                Err(WhyUnsent::Unfit(words(&error)))
            }
            Err(error) => Err(WhyUnsent::Gone(words(&error))),
        }
    }
}

/// One of the addresses of a name: the one that is `known`, or where that `is_failing` the one behind it.
fn choose(all: &[SocketAddr], known: Option<SocketAddr>, is_failing: bool) -> Option<SocketAddr> {
    let place = known.and_then(|known| all.iter().position(|address| *address == known));
    let place = place.map_or(0, |place| place + usize::from(is_failing));
    all.get(place).or(all.first()).copied()
}

fn udp(peer: SocketAddr) -> io::Result<UdpSocket> {
    let own: IpAddr =
        if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((own, 0))?;
    socket.set_nonblocking(true)?;
    // Only a connected socket is told that nobody is there.
    socket.connect(peer)?;
    Ok(socket)
}

/// Not connected: whoever binds the path anew is found by the next datagram.
fn unix() -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Why, as it is told.
fn words(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such socket".to_owned(),
        ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
        kind => kind.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_of_a_name_is_tried_while_nobody_answers() {
        let all = ["[::1]:1", "127.0.0.1:1", "127.0.0.2:1"].map(|address| address.parse().unwrap());
        let [first, second, third] = all;
        assert_eq!(choose(&all, None, false), Some(first));
        assert_eq!(choose(&all, None, true), Some(first));
        assert_eq!(choose(&all, Some(second), false), Some(second));
        assert_eq!(choose(&all, Some(second), true), Some(third));
        assert_eq!(choose(&all, Some(third), true), Some(first));
        assert_eq!(choose(&all[..2], Some(third), false), Some(first), "it has gone from the name");
        assert_eq!(choose(&[], Some(third), true), None);
    }
}
