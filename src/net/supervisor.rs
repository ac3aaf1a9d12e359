//! What whoever supervises the process is told: the protocol of sd_notify(3), one datagram with lines to the socket that `NOTIFY_SOCKET` names.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

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

/// Tells it these lines, such as `READY=1`, where it wants to be told.
///
/// # Errors
/// What the system reports.
pub fn tell(lines: &str) -> io::Result<()> {
    match std::env::var_os(VARIABLE).filter(|socket| !socket.is_empty()) {
        Some(socket) => tell_at(&socket, lines),
        None => Ok(()),
    }
}

/// A name with `@` in front is one of the abstract namespace (unix(7)).
fn tell_at(socket: &OsStr, lines: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let sender = UnixDatagram::unbound()?;
    // Whoever does not listen is not waited for.
    sender.set_nonblocking(true)?;
    sender.send_to_addr(lines.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_at_a_path_and_at_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("evenkeel-test-{}", folder.path().display());
        let at_path = UnixDatagram::bind(&path).unwrap();
        let abstract_one = SocketAddr::from_abstract_name(&name).unwrap();
        let at_name = UnixDatagram::bind_addr(&abstract_one).unwrap();
        for (listener, socket) in [(at_path, path.into_os_string()), (at_name, format!("@{name}").into())] {
            tell_at(&socket, "READY=1\nMAINPID=7\n").unwrap();
            let mut said = [0; 100];
            let length = listener.recv(&mut said).unwrap();
            assert_eq!(&said[..length], b"READY=1\nMAINPID=7\n");
        }
        assert!(tell_at(OsStr::new("/nowhere/at/all"), "READY=1").is_err());
    }
}
