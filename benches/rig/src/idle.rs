//! Connections that do nothing: what each of them costs is seen in the memory of whoever holds the other end.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use rustls::{ClientConnection, Stream};

use crate::clock::pause;
use crate::drive::Sessions;
use crate::message::{Body, Head};
use crate::pingpong::say;

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
    let mut held = Vec::with_capacity(options.connections);
    for number in 0..options.connections {
        let open = || -> Result<Held> {
            let socket = TcpStream::connect(options.connect)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            let session = sessions.as_ref().map(Sessions::begin).transpose()?;
            let mut one = Held { socket, session };
            one.shake_hands()?;
            if !options.fresh {
                one.ask(request.as_bytes())?;
            }
            Ok(one)
        };
        held.push(open().with_context(|| format!("connection {number}"))?);
    }
    say("held")?;
    pause(options.seconds);
    let lost = held.iter().filter(|one| one.is_lost()).count();
    say(&format!("{{\"connections\":{},\"lost\":{lost}}}", held.len()))
}

impl Held {
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

    /// Whether the other side has closed it.
    fn is_lost(&self) -> bool {
        let quiet = self.socket.set_nonblocking(true).is_ok();
        // What is left of a session, such as tickets, may lie there; an end may not.
        !quiet || matches!(self.socket.peek(&mut [0]), Ok(0))
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
