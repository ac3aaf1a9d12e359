//! What whoever supervises the process is told: the protocol of sd_notify(3), one datagram with lines to the socket that `NOTIFY_SOCKET` names.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use crate::tick::Tick;

/// The variable that names its socket.
pub const VARIABLE: &str = "NOTIFY_SOCKET";

/// Whether anybody wants to be told.
#[must_use]
pub fn listens() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|socket| !socket.is_empty())
}

/// Whether this process is what systemd has started as a unit, and would not be told of another one in its place: that one would end with this.
#[must_use]
pub fn is_unit_that_is_not_told() -> bool {
    let main = std::env::var("SYSTEMD_EXEC_PID").ok().and_then(|number| number.parse().ok());
    main == Some(std::process::id()) && !listens()
}

/// How long one is waited for that has no room for what it must hear.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tells it these lines, such as `WATCHDOG=1`, where it wants to be told. Who has no room for them is not waited for.
///
/// # Errors
/// What the system reports.
pub fn tell(lines: &str) -> io::Result<()> {
    tell_within(None, lines)
}

/// The same of what it must hear, such as `READY=1`: it is waited for a while. Blocks the thread.
///
/// # Errors
/// What the system reports.
pub fn tell_surely(lines: &str) -> io::Result<()> {
    tell_within(Some(PATIENCE), lines)
}

fn tell_within(patience: Option<Duration>, lines: &str) -> io::Result<()> {
    match std::env::var_os(VARIABLE).filter(|socket| !socket.is_empty()) {
        Some(socket) => tell_at(&socket, patience, lines),
        None => Ok(()),
    }
}

/// How long the supervisor waits between two `WATCHDOG=1` at most before it takes the process for stuck; `None`: it does not watch this one.
#[must_use]
pub fn watchdog() -> Option<Duration> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    watched(number("WATCHDOG_USEC"), number("WATCHDOG_PID"), std::process::id())
}

/// By what the variables say: sd_watchdog_enabled(3).
fn watched(micros: Option<u64>, process: Option<u64>, own: u32) -> Option<Duration> {
    let is_meant = process.is_none_or(|process| process == u64::from(own));
    micros.filter(|micros| *micros > 0 && is_meant).map(Duration::from_micros)
}

/// Variables that are about one process, and not about another one in its place.
pub const OF_ONE_PROCESS: [&str; 4] = ["WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// Tells that a config is being put into force, until this is [over](Reloading::over) or dropped.
#[derive(Debug)]
pub struct Reloading(());

impl Reloading {
    /// From now on, which is a point in time of the clock that systemd compares with when it has asked for it.
    #[must_use]
    pub fn begin(now: Tick) -> Reloading {
        // Whoever can't be told is told nothing; that was said at the start.
        let _ = tell(&format!("RELOADING=1\nMONOTONIC_USEC={}\n", now.0 / 1000));
        Reloading(())
    }

    /// It is over, with this outcome in words: one line.
    pub fn over(self, outcome: &str) {
        let _ = tell(&format!("STATUS={}\n", outcome.lines().next().unwrap_or_default()));
    }
}

impl Drop for Reloading {
    fn drop(&mut self) {
        let _ = tell_surely("READY=1\n");
    }
}

/// A name with `@` in front is one of the abstract namespace (unix(7)).
fn tell_at(socket: &OsStr, patience: Option<Duration>, lines: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let sender = UnixDatagram::unbound()?;
    sender.set_nonblocking(patience.is_none())?;
    sender.set_write_timeout(patience)?;
    sender.send_to_addr(lines.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_watches_the_process_that_it_means() {
        let second = Some(1_000_000);
        assert_eq!(watched(second, None, 7), Some(Duration::from_secs(1)));
        assert_eq!(watched(second, Some(7), 7), Some(Duration::from_secs(1)));
        assert_eq!(watched(second, Some(8), 7), None);
        assert_eq!((watched(None, None, 7), watched(Some(0), None, 7)), (None, None));
    }

    #[test]
    fn it_is_told_at_a_path_and_at_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("evenkeel-test-{}", folder.path().display());
        let at_path = UnixDatagram::bind(&path).unwrap();
        let abstract_one = SocketAddr::from_abstract_name(&name).unwrap();
        let at_name = UnixDatagram::bind_addr(&abstract_one).unwrap();
        for (listener, socket) in [(at_path, path.into_os_string()), (at_name, format!("@{name}").into())] {
            tell_at(&socket, None, "READY=1\nMAINPID=7\n").unwrap();
            let mut said = [0; 100];
            let length = listener.recv(&mut said).unwrap();
            assert_eq!(&said[..length], b"READY=1\nMAINPID=7\n");
        }
        assert!(tell_at(OsStr::new("/nowhere/at/all"), Some(PATIENCE), "READY=1").is_err());
    }
}
