//! Connections that do nothing: what each of them costs is seen in the memory of whoever holds the other end.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use rustls::{ClientConnection, Stream};

use crate::clock::pause;
use crate::drive::Sessions;
use crate::message::{Body, Head};
use crate::say::say;

/// An answer that takes longer will not come.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Args)]
pub(crate) struct Options {
    /// Where to connect to
    #[arg(long, value_name = "ADDRESS:PORT")]
    connect: SocketAddr,
    /// Connections
    #[arg(long, value_name = "N", default_value_t = 9000)]
    connections: usize,
    /// Speak TLS 1.3 and trust the certificates in this PEM file
    #[arg(long, value_name = "FILE")]
    tls: Option<PathBuf>,
    /// The host that is asked for, and named in the TLS handshake
    #[arg(long, value_name = "NAME", default_value = "localhost")]
    host: String,
    /// Ask for nothing: without it each connection has had one answer before it falls silent
    #[arg(long)]
    fresh: bool,
    /// Seconds to hold them all
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    seconds: f64,
}

/// One connection, with what it needs to be kept.
struct Held {
    socket: TcpStream,
    session: Option<ClientConnection>,
}

/// Prints `held` when all connections are there, and how many were lost when the time is over.
pub(crate) fn run(options: &Options) -> Result<()> {
    let sessions = options.tls.as_ref().map(|file| Sessions::new(file, &options.host, false)).transpose()?;
    let request =
        format!("GET / HTTP/1.1\r\nHost: {}\r\nUser-Agent: rig\r\nAccept: */*\r\n\r\n", options.host);
    let request = (!options.fresh).then_some(request.as_bytes());
    let open = |number| {
        Held::open(options.connect, sessions.as_ref(), request)
            .with_context(|| format!("connection {number}"))
    };
    let held = (0..options.connections).map(open).collect::<Result<Vec<Held>>>()?;
    say("held")?;
    pause(options.seconds);
    let lost = held.iter().filter(|one| one.is_lost()).count();
    say(&format!("{{\"connections\":{},\"lost\":{lost}}}", held.len()))
}

impl Held {
    fn open(address: SocketAddr, sessions: Option<&Sessions>, request: Option<&[u8]>) -> Result<Held> {
        let socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let session = sessions.map(Sessions::begin).transpose()?;
        let mut held = Held { socket, session };
        held.shake_hands()?;
        if let Some(request) = request {
            held.ask(request)?;
        }
        Ok(held)
    }

    /// Ends when both sides are done; the tickets that come behind are read with the answer.
    fn shake_hands(&mut self) -> Result<()> {
        if let Some(session) = &mut self.session {
            while session.is_handshaking() {
                session.complete_io(&mut self.socket)?;
            }
        }
        Ok(())
    }

    fn ask(&mut self, request: &[u8]) -> Result<()> {
        match &mut self.session {
            Some(session) => exchange(&mut Stream::new(session, &mut self.socket), request),
            None => exchange(&mut self.socket, request),
        }
    }

    /// Whether the other side has closed it. What it may have said before, such as tickets, is read and thrown away.
    fn is_lost(&self) -> bool {
        if self.socket.set_nonblocking(true).is_err() {
            return true;
        }
        let mut buffer = [0; 4096];
        loop {
            match (&self.socket).read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != ErrorKind::WouldBlock,
            }
        }
    }
}

/// Sends a request and reads the whole answer.
fn exchange(stream: &mut (impl Read + Write), request: &[u8]) -> Result<()> {
    stream.write_all(request)?;
    stream.flush()?;
    let mut answer = Vec::new();
    let mut buffer = [0; 16 * 1024];
    let head = loop {
        if let Some(head) = Head::read(&answer) {
            break head;
        }
        match stream.read(&mut buffer)? {
            0 => bail!("the connection ended before an answer"),
            count => answer.extend_from_slice(&buffer[..count]),
        }
    };
    if !answer.starts_with(b"HTTP/1.1 200") {
        bail!("{}", String::from_utf8_lossy(&answer[..answer.len().min(40)]));
    }
    let Some(mut body) = Body::after(&head) else { return Ok(()) };
    let (_, mut whole) = body.skip(&answer[head.len..]);
    while !whole {
        match stream.read(&mut buffer)? {
            0 => bail!("the connection ended inside an answer"),
            count => (_, whole) = body.skip(&buffer[..count]),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::backend;

    #[test]
    fn a_held_connection_has_had_its_whole_answer() {
        let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        for arguments in [&["--body", "100000"][..], &["--body", "100000", "--chunked"], &["--body", "0"]] {
            let held = Held::open(backend::start(arguments), None, Some(request)).unwrap();
            held.socket.set_nonblocking(true).unwrap();
            let left = held.socket.peek(&mut [0]).unwrap_err();
            assert_eq!(left.kind(), ErrorKind::WouldBlock, "{arguments:?}");
            assert!(!held.is_lost(), "{arguments:?}");
        }
    }

    #[test]
    fn a_connection_that_the_other_side_closes_is_lost() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let held = Held::open(listener.local_addr().unwrap(), None, None).unwrap();
        drop(listener.accept().unwrap());
        // Blocks until the end is there.
        assert_eq!(held.socket.peek(&mut [0]).unwrap(), 0);
        assert!(held.is_lost());
    }
}
