//! A raw HTTP/2 client: it sends whatever it is told to, and shows each frame that comes.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ClientConfig;

use super::super::support::Client;
use super::super::support::tls::TlsSocket;
use super::fields::{Coder, Field};
use super::frames::{Frame, PREFACE, flag, kind, setting};

/// Whom the certificates are for.
const HOST: &str = "localhost";
/// The window of a stream, and of a connection, to begin with.
pub const WINDOW: u32 = 65_535;
/// The longest frame that everybody takes.
const FRAME: u32 = 16_384;

/// Where a server is to be found.
#[derive(Clone)]
pub struct Door {
    pub address: SocketAddr,
    /// For TLS. Without: prior knowledge.
    pub tls: Option<Arc<ClientConfig>>,
}

impl Door {
    /// Connects, over TLS for this host. Then the server has to agree to `h2`.
    ///
    /// # Errors
    /// There is no session, or one for another protocol.
    pub fn open(&self, host: &str) -> io::Result<Box<dyn Wire>> {
        let Some(config) = &self.tls else {
            return Ok(Box::new(Client::connect(self.address).socket));
        };
        let socket = TlsSocket::open(self.address, config, host)?;
        match socket.session.alpn_protocol() {
            Some(b"h2") => Ok(Box::new(socket)),
            other => Err(io::Error::other(format!("ALPN gave {other:?}"))),
        }
    }
}

/// What carries the bytes. No read or write on it may wait for ever.
pub trait Wire: Read + Write {}

impl<T: Read + Write> Wire for T {}

/// What came next.
#[derive(Clone, Debug)]
pub enum Came {
    Frame(Frame),
    /// The server has closed the connection, or reset it.
    End,
    /// It has ended otherwise: inside of a frame, or under TLS without close_notify.
    Cut(String),
    /// Nothing, in time.
    Nothing,
}

impl fmt::Display for Came {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Came::Frame(frame) => frame.fmt(f),
            Came::End => f.write_str("the end of the connection"),
            Came::Cut(how) => write!(f, "a cut connection ({how})"),
            Came::Nothing => f.write_str("nothing more in time"),
        }
    }
}

/// A connection.
pub struct Peer {
    pub door: Door,
    wire: Box<dyn Wire>,
    /// What has been said and not yet sent.
    said: Vec<u8>,
    held: Vec<u8>,
    coder: Coder,
    /// What the server has set.
    pub settings: BTreeMap<u16, u32>,
    /// Everything that came, in words.
    pub log: Vec<String>,
    /// Nothing more will come.
    pub is_over: bool,
}

impl Peer {
    /// Connects, and says nothing yet.
    ///
    /// # Errors
    /// See [`Door::open`].
    pub fn connect(door: &Door) -> io::Result<Peer> {
        Peer::connect_for(door, HOST)
    }

    /// The same for this host.
    ///
    /// # Errors
    /// See [`Door::open`].
    pub fn connect_for(door: &Door, host: &str) -> io::Result<Peer> {
        Ok(Peer {
            door: door.clone(),
            wire: door.open(host)?,
            said: Vec::new(),
            held: Vec::new(),
            coder: Coder::new(),
            settings: BTreeMap::new(),
            log: Vec::new(),
            is_over: false,
        })
    }

    /// Bytes, as they are. What is said goes out in one piece when something is waited for, so that no answer comes in
    /// between.
    pub fn say(&mut self, bytes: &[u8]) -> &mut Peer {
        self.said.extend_from_slice(bytes);
        self
    }

    pub fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> &mut Peer {
        self.say(&Frame::new(kind, flags, stream, payload).bytes())
    }

    pub fn preface(&mut self) -> &mut Peer {
        self.say(PREFACE).set(&[(setting::INITIAL_WINDOW_SIZE, WINDOW)])
    }

    pub fn set(&mut self, pairs: &[(u16, u32)]) -> &mut Peer {
        let one = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        let payload: Vec<u8> = pairs.iter().flat_map(one).collect();
        self.frame(kind::SETTINGS, flag::NONE, 0, &payload)
    }

    pub fn headers(&mut self, stream: u32, flags: u8, block: &[u8]) -> &mut Peer {
        self.frame(kind::HEADERS, flags, stream, block)
    }

    pub fn continuation(&mut self, stream: u32, flags: u8, block: &[u8]) -> &mut Peer {
        self.frame(kind::CONTINUATION, flags, stream, block)
    }

    pub fn data(&mut self, stream: u32, flags: u8, bytes: &[u8]) -> &mut Peer {
        self.frame(kind::DATA, flags, stream, bytes)
    }

    /// A PRIORITY; see [`priority`].
    pub fn priority(&mut self, stream: u32, on: u32, weight: u8) -> &mut Peer {
        self.frame(kind::PRIORITY, flag::NONE, stream, &priority(on, weight))
    }

    pub fn reset(&mut self, stream: u32, code: u32) -> &mut Peer {
        self.frame(kind::RST_STREAM, flag::NONE, stream, &code.to_be_bytes())
    }

    pub fn ping(&mut self, flags: u8, words: [u8; 8]) -> &mut Peer {
        self.frame(kind::PING, flags, 0, &words)
    }

    pub fn go_away(&mut self, code: u32, words: &[u8]) -> &mut Peer {
        let payload = [&0u32.to_be_bytes()[..], &code.to_be_bytes(), words].concat();
        self.frame(kind::GOAWAY, flag::NONE, 0, &payload)
    }

    pub fn window(&mut self, stream: u32, more: u32) -> &mut Peer {
        self.frame(kind::WINDOW_UPDATE, flag::NONE, stream, &more.to_be_bytes())
    }

    /// A header block in the context of this connection.
    pub fn block(&mut self, fields: &[Field<'_>]) -> Vec<u8> {
        self.coder.block(fields)
    }

    /// Has so much of the server's dynamic table, from the next block on.
    pub fn resize(&mut self, room: usize) {
        self.coder.resize(room);
    }

    /// The block of a request for `/` with more lines.
    pub fn request(&mut self, method: &str, more: &[Field<'_>]) -> Vec<u8> {
        let authority = self.authority();
        let fields = self.pseudo(method, &authority);
        self.block(&[&fields, more].concat())
    }

    /// A whole GET of `/`.
    pub fn get(&mut self, stream: u32) -> &mut Peer {
        let block = self.request("GET", &[]);
        self.headers(stream, flag::WHOLE, &block)
    }

    /// The head of a request for `/` whose body follows.
    pub fn begin(&mut self, stream: u32, method: &str) -> &mut Peer {
        let block = self.request(method, &[]);
        self.headers(stream, flag::END_HEADERS, &block)
    }

    /// The pseudo-header fields of a request for `/`.
    pub fn pseudo<'a>(&self, method: &'a str, authority: &'a str) -> [Field<'a>; 4] {
        let scheme = if self.door.tls.is_some() { "https" } else { "http" };
        [(":method", method), (":scheme", scheme), (":path", "/"), (":authority", authority)]
    }

    pub fn authority(&self) -> String {
        format!("{HOST}:{}", self.door.address.port())
    }

    /// The longest frame that the server takes.
    pub fn longest(&self) -> usize {
        let set = self.settings.get(&setting::MAX_FRAME_SIZE);
        usize::try_from(*set.unwrap_or(&FRAME)).unwrap()
    }

    /// What comes next. Once nothing more will come, it says so again.
    pub fn next(&mut self) -> Came {
        // One who has closed does not hear it, and what it has said before is still to be read.
        let _ = self.wire.write_all(&std::mem::take(&mut self.said));
        let came = self.read();
        self.is_over |= !matches!(came, Came::Frame(_));
        self.log.push(came.to_string());
        came
    }

    fn read(&mut self) -> Came {
        loop {
            if let Some(frame) = Frame::split(&mut self.held) {
                return Came::Frame(frame);
            }
            let mut space = [0u8; 16 * 1024];
            match self.wire.read(&mut space) {
                Ok(0) if self.held.is_empty() => return Came::End,
                Ok(0) => {
                    let held = String::from_utf8_lossy(&self.held).into_owned();
                    return Came::Cut(format!("within a frame: {held:?}"));
                }
                Ok(count) => self.held.extend_from_slice(&space[..count]),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Came::Nothing,
                    ErrorKind::ConnectionReset => return Came::End,
                    _ => return Came::Cut(error.to_string()),
                },
            }
        }
    }
}

/// What a stream depends on, and its weight less 1. The highest bit of `on`: exclusively.
pub fn priority(on: u32, weight: u8) -> Vec<u8> {
    [&on.to_be_bytes()[..], &[weight]].concat()
}
