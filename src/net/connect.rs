//! Opening a connection to a backend, and telling our own shortage from its failure.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::{TcpSocket, TcpStream, UnixStream, lookup_host};
use tokio::time::sleep;

use super::option::choose_port_late;
use super::{Stream, socket};
use crate::config::model::Dialing;

/// Connects over TCP with `TCP_NODELAY` set, as `dialing` says. There is no time limit in here.
///
/// # Errors
/// What the system reports; see [`is_shortage`]. `AddrNotAvailable`, too, when no connection may come from an address of this family.
pub async fn tcp(address: SocketAddr, dialing: &Dialing) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_nodelay(true)?;
    if let Some(times) = &dialing.keepalive {
        socket::set_keepalive(&socket2::SockRef::from(&socket), times)?;
    }
    if !dialing.sources.is_empty() {
        let source = source(&dialing.sources, address.is_ipv4(), rand::random())
            .ok_or_else(|| io::Error::from_raw_os_error(Errno::ADDRNOTAVAIL.raw_os_error()))?;
        choose_port_late(socket.as_fd());
        socket.bind(SocketAddr::new(source, 0))?;
    }
    socket.connect(address).await
}

/// One of the addresses of a family, as chance has it.
pub(super) fn source(sources: &[IpAddr], is_ipv4: bool, chance: u32) -> Option<IpAddr> {
    let of_family = || sources.iter().filter(|source| source.is_ipv4() == is_ipv4);
    let place = (chance as usize).checked_rem(of_family().count())?;
    of_family().nth(place).copied()
}

/// Connects to a unix stream socket.
///
/// # Errors
/// What the system reports; see [`is_shortage`].
pub async fn unix(path: &Path) -> io::Result<Stream> {
    Ok(UnixStream::connect(path).await?.into())
}

/// How long an attempt has before one to another address of the same backend begins beside it (RFC 8305 §5).
pub const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// A connection of our own to a host by name or address, over the first of its addresses that takes one.
///
/// # Errors
/// Why there is none: of the latest attempt in `words`.
pub async fn to_host(
    host: &str,
    port: u16,
    words: impl Fn(&io::Error) -> String,
) -> Result<TcpStream, String> {
    let addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, port)],
        Err(_) => match lookup_host((host, port)).await {
            Ok(found) => found.collect(),
            Err(error) => return Err(format!("name does not resolve: {error}")),
        },
    };
    let mut reason = "no address".to_owned();
    let attempts = addresses.iter().map(|address| TcpStream::connect(*address));
    let first = first_of(attempts, |error: io::Error| reason = words(&error)).await;
    first.ok_or(reason)
}

/// Makes `attempts` until one succeeds, and gives that up for the others. Each begins [`ATTEMPT_DELAY`] behind the one before, or as
/// soon as one has failed, which `failed` is told. `None`: all have.
pub async fn first_of<T, E, A>(mut attempts: impl Iterator<Item = A>, mut failed: impl FnMut(E)) -> Option<T>
where
    A: Future<Output = Result<T, E>>,
{
    let mut running: Vec<Pin<Box<A>>> = Vec::new();
    let mut pause = Box::pin(sleep(ATTEMPT_DELAY));
    // The next one is to begin, if there is one left.
    let (mut due, mut left) = (true, true);
    poll_fn(|cx| {
        loop {
            let mut index = 0;
            while let Some(attempt) = running.get_mut(index) {
                match attempt.as_mut().poll(cx) {
                    Poll::Ready(Ok(done)) => return Poll::Ready(Some(done)),
                    Poll::Ready(Err(error)) => {
                        failed(error);
                        drop(running.swap_remove(index));
                        due = true;
                    }
                    Poll::Pending => index += 1,
                }
            }
            due = due || left && pause.as_mut().poll(cx).is_ready();
            if !(due && left) {
                return if running.is_empty() { Poll::Ready(None) } else { Poll::Pending };
            }
            due = false;
            match attempts.next() {
                Some(attempt) => {
                    running.push(Box::pin(attempt));
                    pause = Box::pin(sleep(ATTEMPT_DELAY));
                }
                None => left = false,
            }
        }
    })
    .await
}

/// What running out of something of ours looks like; none of it says anything about a backend.
const SHORTAGES: [(Errno, &str); 5] = [
    (Errno::MFILE, "out of descriptors (EMFILE)"),
    (Errno::NFILE, "out of descriptors on this machine (ENFILE)"),
    (Errno::NOBUFS, "out of socket buffers (ENOBUFS)"),
    (Errno::NOMEM, "out of memory (ENOMEM)"),
    (Errno::ADDRNOTAVAIL, "no local address or port left (EADDRNOTAVAIL)"),
];

/// What *this* machine or process ran out of, if that is what `error` says.
#[must_use]
pub fn shortage(error: &io::Error) -> Option<&'static str> {
    let code = error.raw_os_error()?;
    SHORTAGES.iter().find(|(errno, _)| errno.raw_os_error() == code).map(|&(_, text)| text)
}

/// True when what ran out is needed for this one destination only: the local ports towards it. Another address may be reached.
#[must_use]
pub fn is_of_destination(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ADDRNOTAVAIL.raw_os_error())
}

/// True when an error says that *this* machine or process ran out of something. Such an error is never held
/// against a backend.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    shortage(error).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_connect_is_no_shortage_but_a_lack_of_descriptors_is() {
        let from = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        for (errno, text) in SHORTAGES {
            assert_eq!(shortage(&from(errno)), Some(text));
        }
        assert!(!is_shortage(&from(Errno::CONNREFUSED)));
        let of_destination = SHORTAGES.iter().filter(|(errno, _)| is_of_destination(&from(*errno)));
        assert_eq!(of_destination.count(), 1, "local ports; all else is short for everybody");
        assert!(is_of_destination(&from(Errno::ADDRNOTAVAIL)));
        assert!(!is_shortage(&io::Error::other("x")));
    }

    #[test]
    fn each_address_of_a_family_has_its_turn_and_no_other() {
        let all: Vec<IpAddr> =
            ["10.0.0.1", "::1", "10.0.0.2"].iter().map(|text| text.parse().expect("an address")).collect();
        assert_eq!(
            [0, 1, 2, 7].map(|chance| source(&all, true, chance)),
            [0, 2, 0, 2].map(|place| Some(all[place]))
        );
        assert_eq!([0, 5].map(|chance| source(&all, false, chance)), [Some(all[1]); 2]);
        assert_eq!(source(&all[1..2], true, 3), None);
    }

    /// What becomes of attempts that end like this, each so many milliseconds after it began: what came of it, and at which
    /// millisecond each began and failed.
    async fn raced(plan: &[(u64, Result<u8, u8>)]) -> (Option<u8>, Vec<u128>, Vec<u8>) {
        let start = tokio::time::Instant::now();
        let (mut begun, mut failed) = (Vec::new(), Vec::new());
        let attempts = plan.iter().map(|&(millis, outcome)| {
            begun.push(start.elapsed().as_millis());
            async move {
                sleep(Duration::from_millis(millis)).await;
                outcome
            }
        });
        let first = first_of(attempts, |error| failed.push(error)).await;
        (first, begun, failed)
    }

    /// Longer than all others together.
    const NEVER: u64 = 3_600_000;

    #[tokio::test(start_paused = true)]
    async fn attempts_begin_in_turn_and_do_not_wait_for_one_another() {
        let hangs = (NEVER, Ok(0));
        let alone = raced(&[(30, Ok(1)), hangs]).await;
        assert_eq!(alone, (Some(1), vec![0], vec![]), "one that is quick has no competitor");
        let second = raced(&[hangs, (30, Ok(2)), hangs]).await;
        assert_eq!(second, (Some(2), vec![0, 250], vec![]));
        let slow = raced(&[(600, Ok(1)), (400, Ok(2)), (300, Ok(3))]).await;
        assert_eq!(slow, (Some(1), vec![0, 250, 500], vec![]), "those before go on meanwhile");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_attempt_is_followed_by_the_next_at_once() {
        let hangs = (NEVER, Ok(0));
        let refused = raced(&[(20, Err(1)), (30, Err(2)), (50, Ok(3)), hangs]).await;
        assert_eq!(refused, (Some(3), vec![0, 20, 50], vec![1, 2]));
        let late = raced(&[(300, Err(1)), hangs, (20, Ok(3)), hangs]).await;
        assert_eq!(late, (Some(3), vec![0, 250, 300], vec![1]), "also when others are under way");
        let nobody = raced(&[(10, Err(1)), (10, Err(2))]).await;
        assert_eq!(nobody, (None, vec![0, 10], vec![1, 2]));
        assert_eq!(raced(&[]).await, (None, vec![], vec![]));
    }
}
