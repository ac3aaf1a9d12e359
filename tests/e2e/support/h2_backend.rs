//! A backend that says in HTTP/2 whatever its script says, frame by frame.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use evenkeel::config::model::{Config, Protocol, UpstreamProtocol};
use evenkeel::proxy::http::h2::code::ErrorCode;
use evenkeel::proxy::http::h2::frame::{self, FRAME_HEAD, FrameHead, PREFACE};
use evenkeel::proxy::http::h2::hpack::{HpackDecoder, LineKind, Pseudo, encode};

use super::{Answer, Client, Keel, config, eventually};

/// A frame that came.
#[derive(Debug)]
pub struct Came {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// A request whose head came.
#[derive(Debug)]
pub struct Asked {
    pub stream: u32,
    pub method: String,
    pub path: String,
    pub lines: Vec<(String, String)>,
    /// It has no body.
    pub ended: bool,
}

/// One connection.
pub struct BackendLine {
    socket: TcpStream,
    held: Vec<u8>,
    decoder: HpackDecoder,
    /// DATA that came while something else was waited for, of all streams.
    pub data: usize,
}

/// The whole backend.
pub struct RawH2 {
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl RawH2 {
    /// One whose `script` is given each connection with its number, from 1 on. The preface was read, and nothing was said.
    pub fn start(script: impl Fn(usize, &mut BackendLine) + Send + Sync + 'static) -> RawH2 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (script, count) = (Arc::new(script), Arc::clone(&connections));
        thread::spawn(move || {
            for socket in listener.incoming() {
                let Ok(socket) = socket else { return };
                socket.set_nodelay(true).unwrap();
                let number = count.fetch_add(1, Ordering::AcqRel) + 1;
                let script = Arc::clone(&script);
                thread::spawn(move || {
                    let mut line =
                        BackendLine { socket, held: Vec::new(), decoder: HpackDecoder::new(4096), data: 0 };
                    if line.preface() {
                        script(number, &mut line);
                    }
                });
            }
        });
        RawH2 { address, connections }
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Acquire)
    }
}

impl BackendLine {
    fn more(&mut self) -> bool {
        let mut piece = [0; 65536];
        match self.socket.read(&mut piece) {
            Ok(count @ 1..) => {
                self.held.extend_from_slice(&piece[..count]);
                true
            }
            Ok(0) | Err(_) => false,
        }
    }

    fn preface(&mut self) -> bool {
        while self.held.len() < PREFACE.len() {
            if !self.more() {
                return false;
            }
        }
        assert_eq!(&self.held[..PREFACE.len()], PREFACE);
        self.held.drain(..PREFACE.len());
        true
    }

    /// Sends these bytes. What the other side does not take is its business.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes);
    }

    /// Sends a frame.
    pub fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut bytes = Vec::new();
        FrameHead { length: payload.len(), kind, flags, stream }.write(&mut bytes);
        bytes.extend_from_slice(payload);
        self.send(&bytes);
    }

    /// Sends SETTINGS, as often as they change.
    pub fn settings(&mut self, values: &[(u16, u32)]) {
        let mut bytes = Vec::new();
        frame::settings(&mut bytes, values);
        self.send(&bytes);
    }

    /// Resets a stream.
    pub fn reset(&mut self, stream: u32, code: ErrorCode) {
        self.frame(frame::RST_STREAM, 0, stream, &code.0.to_be_bytes());
    }

    /// Ends a stream with these bytes and resets it, at one go: nobody hears of the one without the other.
    pub fn end_and_reset(&mut self, stream: u32, payload: &[u8], code: ErrorCode) {
        let mut bytes = Vec::new();
        let head = |length, kind, flags| FrameHead { length, kind, flags, stream };
        head(payload.len(), frame::DATA, frame::END_STREAM).write(&mut bytes);
        bytes.extend_from_slice(payload);
        head(4, frame::RST_STREAM, 0).write(&mut bytes);
        bytes.extend_from_slice(&code.0.to_be_bytes());
        self.send(&bytes);
    }

    /// Says that it ends, and which stream is the last it serves.
    pub fn goaway(&mut self, last: u32, code: ErrorCode) {
        let mut bytes = Vec::new();
        frame::goaway(&mut bytes, last, code, "");
        self.send(&bytes);
    }

    /// The next frame; `None`: the other side has ended. What must be answered is, and not given out.
    pub fn next(&mut self) -> Option<Came> {
        loop {
            if let Some(head) = FrameHead::parse(&self.held)
                && let Some(payload) = self.held.get(FRAME_HEAD..FRAME_HEAD + head.length)
            {
                let payload = payload.to_vec();
                self.held.drain(..FRAME_HEAD + head.length);
                match head.kind {
                    frame::SETTINGS if !head.has(frame::ACK) => {
                        self.frame(frame::SETTINGS, frame::ACK, 0, &[]);
                        continue;
                    }
                    frame::PING if !head.has(frame::ACK) => {
                        self.frame(frame::PING, frame::ACK, 0, &payload);
                        continue;
                    }
                    frame::SETTINGS | frame::PING | frame::WINDOW_UPDATE => continue,
                    _ => {}
                }
                return Some(Came { kind: head.kind, flags: head.flags, stream: head.stream, payload });
            }
            if !self.more() {
                return None;
            }
        }
    }

    /// The request that stands in this HEADERS frame. All have to be read, in their order.
    pub fn request(&mut self, came: &Came) -> Asked {
        let mut asked = Asked {
            stream: came.stream,
            method: String::new(),
            path: String::new(),
            lines: Vec::new(),
            ended: came.flags & frame::END_STREAM != 0,
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let decoded = self.decoder.decode(&came.payload, 65536, |line| match line.kind {
            LineKind::Pseudo(Pseudo::Method) => asked.method = text(line.value()),
            LineKind::Pseudo(Pseudo::Path) => asked.path = text(line.value()),
            _ => asked.lines.push((text(line.name()), text(line.value()))),
        });
        assert!(decoded.is_ok());
        asked
    }

    /// The next request; `None`: the other side has ended. What comes of other streams meanwhile is counted or forgotten.
    pub fn asked(&mut self) -> Option<Asked> {
        loop {
            let came = self.next()?;
            match came.kind {
                frame::HEADERS => return Some(self.request(&came)),
                frame::DATA => {
                    self.data += came.payload.len();
                    let count = came.payload.len() as u32;
                    if count > 0 {
                        let mut bytes = Vec::new();
                        frame::window_update(&mut bytes, 0, count);
                        self.send(&bytes);
                    }
                }
                _ => {}
            }
        }
    }

    /// Sends the head of an answer.
    pub fn head(&mut self, stream: u32, ends: bool, status: u16, lines: &[(&str, &str)]) {
        let mut block = Vec::new();
        encode::status(&mut block, status);
        for (name, value) in lines {
            encode::field(&mut block, name.as_bytes(), value.as_bytes());
        }
        let flags = frame::END_HEADERS | if ends { frame::END_STREAM } else { 0 };
        self.frame(frame::HEADERS, flags, stream, &block);
    }

    /// Ends an answer with these lines.
    pub fn trailers(&mut self, stream: u32, lines: &[(&str, &str)]) {
        let mut block = Vec::new();
        for (name, value) in lines {
            encode::field(&mut block, name.as_bytes(), value.as_bytes());
        }
        self.frame(frame::HEADERS, frame::END_HEADERS | frame::END_STREAM, stream, &block);
    }

    /// Sends a whole answer.
    pub fn answer(&mut self, stream: u32, body: &str) {
        self.head(stream, false, 200, &[("content-length", &body.len().to_string())]);
        self.frame(frame::DATA, frame::END_STREAM, stream, body.as_bytes());
    }

    /// Answers whatever comes until the other side ends.
    pub fn serve(&mut self) {
        while let Some(asked) = self.asked() {
            self.answer(asked.stream, &asked.path);
        }
    }
}

/// In front of this backend, with one worker, so that all requests share its connections.
pub fn keel(backend: &RawH2, change: impl FnOnce(&mut Config)) -> Keel {
    let mut config = config(Protocol::Http, &[backend.address]);
    config.workers = 1;
    config.targets[0].upstream = UpstreamProtocol::H2;
    config.targets[0].resilience.retries = None;
    config.targets[0].resilience.outlier = None;
    change(&mut config);
    Keel::start(&config)
}

/// Many at once, each on a connection of its own.
pub fn ask_all(address: SocketAddr, paths: &[&str]) -> Vec<Answer> {
    thread::scope(|scope| {
        let asking: Vec<_> =
            paths.iter().map(|path| scope.spawn(move || Client::connect(address).get(path))).collect();
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    })
}

/// Nothing is held any more, and what comes next is served.
pub fn is_well(keel: &Keel) {
    eventually("no lease is left", || keel.server.targets()[0].backends[0].in_flight() == 0);
    let answer = keel.client().get("/after");
    assert_eq!((answer.status, answer.text().as_str()), (200, "/after"));
}
