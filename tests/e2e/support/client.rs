//! A raw HTTP/1 client that shows every byte.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};

use socket2::{Domain, Socket, Type};

use super::PATIENCE;

/// A connection on which the test writes what it likes: plain, or whatever else reads and writes.
pub struct Client<S = TcpStream> {
    pub socket: S,
    held: Vec<u8>,
    /// The connection ended with a reset, or under TLS without close_notify, instead of an end.
    reset: bool,
}

/// One answer.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub status: u16,
    /// The head with its start line, as it came.
    pub head: String,
    pub body: Vec<u8>,
    /// Lines behind the last chunk.
    pub trailers: String,
    /// The connection ended before the answer did.
    pub cut: bool,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The value of the first header line called `name`.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        Client::patient(TcpStream::connect(address).unwrap())
    }

    /// From this address of its own: two clients of different listeners may have the same port.
    pub fn connect_from(own: Ipv4Addr, address: SocketAddr) -> Client {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((own, 0)).into()).unwrap();
        socket.connect(&address.into()).unwrap();
        Client::patient(socket.into())
    }

    fn patient(socket: TcpStream) -> Client {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Client::over(socket)
    }

    pub fn finish_sending(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Sends all of `bytes` while `read` reads: neither waits for the other.
    pub fn while_sending<T>(&mut self, bytes: &[u8], read: impl FnOnce(&mut Client) -> T) -> T {
        let mut writer = self.socket.try_clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || writer.write_all(bytes).unwrap());
            read(self)
        })
    }
}

impl<S: Read + Write> Client<S> {
    /// On a connection that stands.
    pub fn over(socket: S) -> Client<S> {
        Client { socket, held: Vec::new(), reset: false }
    }

    /// Writes; a peer that has closed is no failure here.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Client<S> {
        let _ = self.socket.write_all(bytes.as_ref());
        self
    }

    /// `GET path` on a connection that stays open.
    pub fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n")).answer()
    }

    /// `POST path` with this body by `Content-Length`.
    pub fn post(&mut self, path: &str, body: &[u8]) -> Answer {
        let length = body.len();
        self.send(format!("POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n"));
        self.send(body).answer()
    }

    /// Writes a whole request and reads its final answer.
    pub fn ask(&mut self, request: &str) -> Answer {
        self.send(request).final_answer()
    }

    /// The final answer, and before it the statuses of 1xx heads are dropped.
    pub fn final_answer(&mut self) -> Answer {
        loop {
            let answer = self.answer();
            if !(100..200).contains(&answer.status) {
                return answer;
            }
        }
    }

    /// Reads one answer to anything but HEAD.
    pub fn answer(&mut self) -> Answer {
        self.read_answer(false)
    }

    /// Reads one answer to HEAD.
    pub fn answer_to_head(&mut self) -> Answer {
        self.read_answer(true)
    }

    fn read_answer(&mut self, to_head: bool) -> Answer {
        let mut answer = Answer::default();
        let Some(end) = self.fill_until(|held| find(held, b"\r\n\r\n")) else {
            answer.cut = true;
            answer.head = String::from_utf8_lossy(&self.held).into_owned();
            return answer;
        };
        answer.head = String::from_utf8(self.held.drain(..end + 4).collect()).unwrap();
        answer.status = answer.head.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(0);
        if to_head || matches!(answer.status, 100..200 | 204 | 304) {
            return answer;
        }
        let length = answer.header("content-length").map(|value| value.parse::<usize>().unwrap());
        if answer.header("transfer-encoding").is_some() {
            self.read_chunks(&mut answer);
        } else if let Some(length) = length {
            answer.cut = self.fill_until(|held| (held.len() >= length).then_some(length)).is_none();
            answer.body = self.held.drain(..length.min(self.held.len())).collect();
        } else {
            self.fill_until(|_| None);
            answer.body = std::mem::take(&mut self.held);
            answer.cut = self.reset;
        }
        answer
    }

    fn read_chunks(&mut self, answer: &mut Answer) {
        while let Some(end) = self.fill_until(|held| find(held, b"\r\n")) {
            let line: Vec<u8> = self.held.drain(..end + 2).collect();
            let digits: String =
                line.iter().map(|&byte| byte as char).take_while(char::is_ascii_hexdigit).collect();
            let size = usize::from_str_radix(&digits, 16).unwrap();
            if size == 0 {
                while let Some(end) = self.fill_until(|held| find(held, b"\r\n")) {
                    let line: Vec<u8> = self.held.drain(..end + 2).collect();
                    if line == b"\r\n" {
                        return;
                    }
                    answer.trailers.push_str(&String::from_utf8_lossy(&line));
                }
                break;
            }
            if self.fill_until(|held| (held.len() >= size + 2).then_some(size)).is_none() {
                answer.body.append(&mut self.held);
                break;
            }
            answer.body.extend(self.held.drain(..size));
            assert_eq!(self.held.drain(..2).collect::<Vec<_>>(), b"\r\n");
        }
        answer.cut = true;
    }

    /// Everything until the peer closes or resets.
    pub fn rest(&mut self) -> Vec<u8> {
        self.fill_until(|_| None);
        std::mem::take(&mut self.held)
    }

    /// Reads exactly so many bytes; fewer when the peer ends before.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        self.fill_until(|held| (held.len() >= count).then_some(count));
        self.held.drain(..count.min(self.held.len())).collect()
    }

    /// Reads up to and including this text; less when the peer ends before.
    pub fn take_until(&mut self, text: &str) -> String {
        let end = self.fill_until(|held| find(held, text.as_bytes()));
        let count = end.map_or(self.held.len(), |at| at + text.len());
        String::from_utf8_lossy(&self.held.drain(..count).collect::<Vec<_>>()).into_owned()
    }

    /// True when the peer ended the connection with a reset, or under TLS without close_notify.
    pub fn was_reset(&self) -> bool {
        self.reset
    }

    /// True when the peer has closed and nothing more came.
    pub fn is_closed(&mut self) -> bool {
        self.rest().is_empty()
    }

    fn fill_until(&mut self, done: impl Fn(&[u8]) -> Option<usize>) -> Option<usize> {
        loop {
            if let Some(at) = done(&self.held) {
                return Some(at);
            }
            let mut space = [0u8; 16 * 1024];
            match self.socket.read(&mut space) {
                Ok(0) => return None,
                Ok(count) => self.held.extend_from_slice(&space[..count]),
                Err(error) => {
                    let late =
                        matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
                    assert!(!late, "nothing came in time; so far: {:?}", String::from_utf8_lossy(&self.held));
                    self.reset = true;
                    return None;
                }
            }
        }
    }
}

fn find(held: &[u8], what: &[u8]) -> Option<usize> {
    held.windows(what.len()).position(|window| window == what)
}
