//! A backend that costs next to nothing: one thread, one epoll instance, answers made beforehand, uploads read
//! and thrown away.

use std::io::Write;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use anyhow::{Context, Result};
use clap::Args;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use slab::Slab;

use crate::message::{Body, Head};

/// What is read at once. Nothing of it is kept, so it may be as large as a socket buffer.
const READ_BYTES: usize = 256 * 1024;
/// Events taken at once.
const MOST_EVENTS: usize = 512;
/// The kernel cuts this down to net.core.somaxconn.
const BACKLOG: i32 = 65_535;

#[derive(Args)]
pub(crate) struct Options {
    /// Address to listen on; port 0 is one that is free. 0.0.0.0 is reached at every address of 127.0.0.0/8, so
    /// one listener can stand for any number of backends
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: Vec<SocketAddr>,
    /// Listen this many times at each address; for port 0
    #[arg(long, value_name = "N", default_value_t = 1)]
    ports: u16,
    /// Bytes of content in an answer
    #[arg(long, value_name = "BYTES", default_value_t = 12)]
    body: usize,
    /// Send the content in chunks of 16 KiB at most
    #[arg(long)]
    chunked: bool,
    /// Say of the answer that any cache may keep it
    #[arg(long)]
    cacheable: bool,
    /// Close each connection after its first answer
    #[arg(long)]
    close: bool,
}

/// Listens, prints the addresses, one on a line, and serves until the process is ended.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut backend = Backend::new(Answer::new(options))?;
    let mut output = std::io::stdout().lock();
    for address in &options.listen {
        for _ in 0..options.ports {
            let bound = backend.listen(address).with_context(|| format!("cannot listen on {address}"))?;
            writeln!(output, "{bound}")?;
        }
    }
    output.flush()?;
    drop(output);
    backend.serve()
}

/// The one answer, in the two forms that it is sent in.
struct Answer {
    bytes: Vec<u8>,
    /// Bytes of the head: what a HEAD request is answered with.
    head: usize,
    close: bool,
}

impl Answer {
    fn new(options: &Options) -> Answer {
        let framing = if options.chunked {
            "Transfer-Encoding: chunked".to_owned()
        } else {
            format!("Content-Length: {}", options.body)
        };
        let close = if options.close { "Connection: close\r\n" } else { "" };
        let cacheable = if options.cacheable { "Cache-Control: public, max-age=100000\r\n" } else { "" };
        // The same fields that a small application server sends; the date never changes.
        let head = format!(
            "HTTP/1.1 200 OK\r\nServer: rig\r\nDate: Sat, 01 Jan 2000 00:00:00 GMT\r\n\
             Content-Type: text/plain\r\n{framing}\r\n{cacheable}{close}\r\n"
        );
        let content: Vec<u8> = b"evenkeel rig".iter().copied().cycle().take(options.body).collect();
        let mut bytes = head.clone().into_bytes();
        if options.chunked {
            for chunk in content.chunks(16 * 1024) {
                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        } else {
            bytes.extend_from_slice(&content);
        }
        Answer { bytes, head: head.len(), close: options.close }
    }

    /// What a request asks for.
    fn to(&self, wanted: Wanted) -> &[u8] {
        if wanted.head_only { &self.bytes[..self.head] } else { &self.bytes }
    }
}

/// An answer that is owed.
#[derive(Clone, Copy)]
struct Wanted {
    head_only: bool,
    /// The connection ends behind it.
    close: bool,
}

struct Connection {
    socket: OwnedFd,
    /// The beginning of a head whose end has not come yet.
    begun: Vec<u8>,
    /// The body that is being read, and the answer it will have.
    body: Option<(Body, Wanted)>,
    /// Answers that are owed; nothing is read while there are any, so there are few.
    owed: Vec<Wanted>,
    /// Bytes of the first of them that are sent.
    sent: usize,
    /// Whether epoll watches for room instead of bytes.
    blocked: bool,
}

struct Backend {
    epoll: OwnedFd,
    listeners: Vec<OwnedFd>,
    connections: Slab<Connection>,
    answer: Answer,
    buffer: Vec<u8>,
}

/// Tokens of listeners begin here.
const LISTENERS: u64 = 1 << 32;

impl Backend {
    fn new(answer: Answer) -> Result<Backend> {
        Ok(Backend {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            listeners: Vec::new(),
            connections: Slab::new(),
            answer,
            buffer: vec![0; READ_BYTES],
        })
    }

    fn listen(&mut self, address: &SocketAddr) -> Result<SocketAddr> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        // Accepted sockets inherit it.
        sockopt::set_tcp_nodelay(&socket, true)?;
        net::bind(&socket, address)?;
        net::listen(&socket, BACKLOG)?;
        let token = EventData::new_u64(LISTENERS + self.listeners.len() as u64);
        epoll::add(&self.epoll, &socket, token, EventFlags::IN)?;
        let bound = SocketAddr::try_from(net::getsockname(&socket)?)?;
        self.listeners.push(socket);
        Ok(bound)
    }

    fn serve(&mut self) -> Result<()> {
        let mut room = [const { MaybeUninit::<Event>::uninit() }; MOST_EVENTS];
        loop {
            let events = match epoll::wait(&self.epoll, &mut room, None) {
                Ok((events, _)) => events,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error).context("epoll_wait"),
            };
            for event in events {
                let token = event.data.u64();
                match token.checked_sub(LISTENERS) {
                    Some(listener) => self.accept(listener as usize),
                    None => self.turn(token as usize),
                }
            }
        }
    }

    fn accept(&mut self, listener: usize) {
        // Any failure ends the round: epoll tells again what is still waiting.
        while let Ok(socket) =
            net::accept_with(&self.listeners[listener], SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
        {
            let entry = self.connections.vacant_entry();
            let token = EventData::new_u64(entry.key() as u64);
            if epoll::add(&self.epoll, &socket, token, EventFlags::IN).is_ok() {
                entry.insert(Connection {
                    socket,
                    begun: Vec::new(),
                    body: None,
                    owed: Vec::new(),
                    sent: 0,
                    blocked: false,
                });
            }
        }
    }

    /// Does what a connection is ready for; one that ended is dropped, which closes it.
    fn turn(&mut self, key: usize) {
        // An event may be left over from a connection that ended in this round.
        let Some(connection) = self.connections.get_mut(key) else { return };
        let going_on = connection.owed.is_empty().then(|| connection.receive(&mut self.buffer));
        let going_on = going_on.unwrap_or(true) && connection.send(&self.answer);
        if !going_on {
            self.connections.remove(key);
            return;
        }
        let blocked = !connection.owed.is_empty();
        if blocked != connection.blocked {
            let interest = if blocked { EventFlags::OUT } else { EventFlags::IN };
            let token = EventData::new_u64(key as u64);
            connection.blocked = blocked;
            if epoll::modify(&self.epoll, &connection.socket, token, interest).is_err() {
                self.connections.remove(key);
            }
        }
    }
}

impl Connection {
    /// Reads once. False: the connection has ended.
    fn receive(&mut self, buffer: &mut [u8]) -> bool {
        match net::recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((_, 0)) => false,
            Ok((_, count)) => {
                self.take(&buffer[..count]);
                true
            }
            Err(error) => matches!(error, Errno::AGAIN | Errno::INTR),
        }
    }

    /// Finds the requests in what came.
    fn take(&mut self, bytes: &[u8]) {
        if self.begun.is_empty() {
            let left = self.requests(bytes);
            self.begun.extend_from_slice(&bytes[left..]);
        } else {
            let mut all = std::mem::take(&mut self.begun);
            all.extend_from_slice(bytes);
            let left = self.requests(&all);
            all.drain(..left);
            self.begun = all;
        }
    }

    /// Returns where the head begins that is not whole yet.
    fn requests(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            if let Some((body, wanted)) = &mut self.body {
                let (taken, done) = body.skip(&bytes[at..]);
                at += taken;
                if done {
                    self.owed.push(*wanted);
                    self.body = None;
                }
                continue;
            }
            let Some(head) = Head::read(&bytes[at..]) else { break };
            let wanted = Wanted { head_only: bytes[at..].starts_with(b"HEAD "), close: head.close };
            at += head.len;
            match Body::after(&head) {
                Some(body) => self.body = Some((body, wanted)),
                None => self.owed.push(wanted),
            }
        }
        at
    }

    /// Sends what is owed, as far as there is room. False: the connection has ended.
    fn send(&mut self, answer: &Answer) -> bool {
        for (answered, &wanted) in self.owed.iter().enumerate() {
            let bytes = answer.to(wanted);
            while self.sent < bytes.len() {
                match net::send(&self.socket, &bytes[self.sent..], SendFlags::NOSIGNAL) {
                    Ok(count) => self.sent += count,
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => {
                        self.owed.drain(..answered);
                        return true;
                    }
                    Err(_) => return false,
                }
            }
            if wanted.close || answer.close {
                return false;
            }
            self.sent = 0;
        }
        self.owed.clear();
        true
    }
}

/// Serves in a thread of this process, which ends with it.
#[cfg(test)]
pub(crate) fn start(arguments: &[&str]) -> SocketAddr {
    use clap::FromArgMatches as _;

    let command = Options::augment_args(clap::Command::new("rig"));
    let matches = command.get_matches_from([&["backend"], arguments].concat());
    let options = Options::from_arg_matches(&matches).unwrap();
    let mut backend = Backend::new(Answer::new(&options)).unwrap();
    let bound = backend.listen(&options.listen[0]).unwrap();
    std::thread::spawn(move || backend.serve());
    bound
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;

    /// What comes back for `requests` until the backend closes.
    fn answers(arguments: &[&str], requests: &[&[u8]]) -> String {
        let mut socket = TcpStream::connect(start(arguments)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        for piece in requests {
            socket.write_all(piece).unwrap();
        }
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn requests_that_come_together_or_in_pieces_are_each_answered() {
        let requests = "GET / HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc\
                        POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
                        GET / HTTP/1.0\r\n\r\n";
        let bytes: Vec<&[u8]> = requests.as_bytes().chunks(1).collect();
        for pieces in [&[requests.as_bytes()][..], &bytes] {
            let text = answers(&["--body", "6"], pieces);
            assert_eq!(text.matches("HTTP/1.1 200 OK\r\n").count(), 4, "{text}");
            assert_eq!(text.matches("\r\n\r\nevenke").count(), 4, "{text}");
        }
    }

    #[test]
    fn head_is_answered_without_content() {
        let text = answers(&["--body", "6"], &[b"HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n"]);
        assert!(text.contains("Content-Length: 6\r\n") && text.ends_with("\r\n\r\n"), "{text}");
    }

    #[test]
    fn a_closing_backend_says_so_and_drops_what_follows() {
        let text = answers(&["--close"], &[b"GET / HTTP/1.1\r\n\r\n"]);
        assert!(text.contains("Connection: close\r\n"), "{text}");
    }
}
