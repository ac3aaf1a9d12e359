//! A backend that dies when it is told to, and a proxy in front of it that always tries it first.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel::config::model::resilience::Retries;
use evenkeel::config::model::{Balance, Config};

use super::life_lab::reset_on_close;
use super::support::PATIENCE;

/// Where a [`Mortal`] dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Nowhere: it answers.
    Never,
    /// Right after it has accepted: its connection ends, not a byte read.
    Accept,
    /// When so many bytes of a request have been read; with 0 they are there and nobody has read them.
    After(usize),
    /// When the whole request was read.
    Whole,
    /// In the middle of the answer's head.
    MidHead,
    /// In the middle of the answer's body.
    MidBody,
    /// It answers 503.
    Unavailable,
    /// It reads the whole request and falls silent.
    Silent,
}

/// What a [`Mortal`] does and has seen.
#[derive(Default)]
struct Life {
    point: Mutex<Option<Point>>,
    reset: Mutex<bool>,
    seen: Mutex<Vec<u8>>,
}

/// A backend that answers one request after the other until it dies at a [`Point`], each time anew.
pub struct Mortal {
    pub address: SocketAddr,
    life: Arc<Life>,
}

impl Mortal {
    pub fn start() -> Mortal {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, life) = (listener.local_addr().unwrap(), Arc::new(Life::default()));
        let own = Arc::clone(&life);
        // It ends with the process.
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, life) = (socket.unwrap(), Arc::clone(&own));
                std::thread::spawn(move || drop(life.serve(socket)));
            }
        });
        Mortal { address, life }
    }

    /// Dies there from now on, with a reset or an end.
    pub fn dies(&self, point: Point, reset: bool) {
        *self.life.point.lock().unwrap() = Some(point);
        *self.life.reset.lock().unwrap() = reset;
        self.life.seen.lock().unwrap().clear();
    }

    /// What it has read since it was last told where to die, or what lay there unread.
    pub fn seen(&self) -> Vec<u8> {
        self.life.seen.lock().unwrap().clone()
    }
}

impl Life {
    fn point(&self) -> Point {
        self.point.lock().unwrap().unwrap_or(Point::Never)
    }

    fn saw(&self, bytes: &[u8]) {
        self.seen.lock().unwrap().extend_from_slice(bytes);
    }

    fn serve(&self, mut socket: TcpStream) -> std::io::Result<()> {
        socket.set_read_timeout(Some(PATIENCE))?;
        if self.point() == Point::Accept {
            return self.die(&socket);
        }
        loop {
            let mut first = [0; 1];
            if socket.peek(&mut first)? == 0 {
                return Ok(());
            }
            if let Point::After(count) = self.point() {
                let mut bytes = vec![0; count];
                // Fewer may be all there are.
                let _ = socket.set_read_timeout(Some(Duration::from_secs(1)));
                let read = socket.read_exact(&mut bytes);
                self.saw(if count == 0 { &first } else { &bytes });
                return read.and(self.die(&socket));
            }
            self.read_whole(&mut socket)?;
            match self.point() {
                Point::Whole => return self.die(&socket),
                Point::MidHead => {
                    socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Le")?;
                    return self.die(&socket);
                }
                Point::MidBody => {
                    socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")?;
                    return self.die(&socket);
                }
                Point::Unavailable => {
                    socket.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy")?;
                }
                Point::Silent => {
                    let _ = socket.read(&mut [0; 1]);
                    return Ok(());
                }
                Point::Never | Point::Accept | Point::After(_) => {
                    socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst")?;
                }
            }
        }
    }

    fn die(&self, socket: &TcpStream) -> std::io::Result<()> {
        if *self.reset.lock().unwrap() {
            reset_on_close(socket);
        }
        Ok(())
    }

    /// Reads a request with a body of known length, or none.
    fn read_whole(&self, socket: &mut TcpStream) -> std::io::Result<()> {
        let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            if let Some(end) = all.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&all[..end]).to_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
                if all.len() >= end + 4 + length {
                    return Ok(());
                }
            }
            let count = socket.read(&mut buffer)?;
            if count == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            self.saw(&buffer[..count]);
            all.extend_from_slice(&buffer[..count]);
        }
    }
}

/// One worker; the first backend is always tried first, and nothing but retries reacts to what fails.
pub fn first_always(config: &mut Config, retries: Retries) {
    config.workers = 1;
    let target = &mut config.targets[0];
    target.balance = Balance::First.into();
    target.resilience.breaker = None;
    target.resilience.outlier = None;
    target.resilience.retries = Some(retries);
}

/// Retries without pauses.
pub fn at_once() -> Retries {
    Retries { backoff: Duration::ZERO, ..Retries::default() }
}
