//! Small exchanges on kept connections: each connection sends its message when the answer to the last one is
//! whole. The measured time begins behind a warm-up, and both of its ends are told at once, so that whoever
//! reads the output can look at the CPU clock of what stands in between.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;

use crate::clock::now;
use crate::echo;
use crate::message::{Body, Head};
use crate::say::say;

/// Events taken at once.
const MOST_EVENTS: usize = 512;
/// How long the loop waits for an event before it looks at the clock again.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// An exchange that takes longer ends the run as failed.
const SILENCE: Duration = Duration::from_secs(10);

#[derive(Args)]
pub(crate) struct Options {
    /// Be the other side instead: listen here and send back whatever comes
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "connect")]
    serve: Option<SocketAddr>,
    /// Where to connect to
    #[arg(long, value_name = "ADDRESS:PORT", required_unless_present = "serve")]
    connect: Option<SocketAddr>,
    /// Connections
    #[arg(long, value_name = "N", default_value_t = 64)]
    connections: usize,
    /// Bytes of a message
    #[arg(long, value_name = "N", default_value_t = 128)]
    bytes: usize,
    /// Send GET requests instead, and wait for whole answers
    #[arg(long)]
    http: bool,
    /// Seconds before the measured time
    #[arg(long, value_name = "SECONDS", default_value_t = 0.2)]
    warm: f64,
    /// Seconds of the measured time
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    seconds: f64,
}

/// Prints `start` when the measured time begins and a line of JSON when it ends.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(address) = options.serve {
        return echo::serve(address);
    }
    let address = options.connect.context("--connect is missing")?;
    let message = if options.http {
        format!("GET / HTTP/1.1\r\nHost: {address}\r\nUser-Agent: rig\r\nAccept: */*\r\n\r\n").into_bytes()
    } else {
        vec![b'x'; options.bytes]
    };
    ensure!(!message.is_empty(), "a message needs at least one byte");
    let mut load = Load::new(message, options.http)?;
    load.connect(address, options.connections)?;
    load.run_until(now() + Duration::from_secs_f64(options.warm))?;
    load.times.clear();
    load.errors = 0;
    say("start")?;
    let began = now();
    load.run_until(began + Duration::from_secs_f64(options.seconds))?;
    let seconds = (now() - began).as_secs_f64();
    let exchanges = load.times.len();
    // Told before the sorting, which may take as long as it likes.
    say("stop")?;
    let silent = load.silent();
    let (p50, p99) = percentiles(&mut load.times);
    say(&format!(
        "{{\"exchanges\":{exchanges},\"seconds\":{seconds:.6},\"errors\":{},\"p50_us\":{p50},\"p99_us\":{p99}}}",
        load.errors + silent
    ))
}

/// The middle one, and the one that 99 of 100 stay below; in the unit of `times`.
fn percentiles(times: &mut [f32]) -> (f32, f32) {
    if times.is_empty() {
        return (0.0, 0.0);
    }
    times.sort_unstable_by(f32::total_cmp);
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

/// What is still missing of an answer.
enum Awaited {
    /// So many bytes.
    Bytes(usize),
    /// The end of a head, of which this much has come.
    Head(Vec<u8>),
    /// The end of a body.
    Body(Body),
}

impl Awaited {
    /// Takes what came; returns whether the answer is whole, or `None` if it is not a 200.
    fn take(&mut self, mut bytes: &[u8]) -> Option<bool> {
        loop {
            match self {
                Awaited::Bytes(left) => {
                    *left = left.checked_sub(bytes.len())?;
                    return Some(*left == 0);
                }
                Awaited::Head(begun) => {
                    let before = begun.len();
                    begun.extend_from_slice(bytes);
                    let Some(head) = Head::read(begun) else { return Some(false) };
                    if !begun.starts_with(b"HTTP/1.1 200") {
                        return None;
                    }
                    bytes = &bytes[head.len - before..];
                    match Body::after(&head) {
                        Some(body) => *self = Awaited::Body(body),
                        None => return bytes.is_empty().then_some(true),
                    }
                }
                Awaited::Body(body) => {
                    let (taken, whole) = body.skip(bytes);
                    // Nothing more was asked for.
                    return (taken == bytes.len()).then_some(whole);
                }
            }
        }
    }
}

struct Connection {
    socket: TcpStream,
    awaited: Awaited,
    sent: Instant,
}

struct Load {
    epoll: OwnedFd,
    connections: Vec<Option<Connection>>,
    message: Vec<u8>,
    http: bool,
    /// Microseconds of each exchange.
    times: Vec<f32>,
    errors: usize,
}

impl Load {
    fn new(message: Vec<u8>, http: bool) -> Result<Load> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Load { epoll, connections: Vec::new(), message, http, times: Vec::new(), errors: 0 })
    }

    fn connect(&mut self, address: SocketAddr, count: usize) -> Result<()> {
        for number in 0..count {
            let socket = TcpStream::connect(address).with_context(|| format!("connection {number}"))?;
            socket.set_nodelay(true)?;
            socket.set_nonblocking(true)?;
            epoll::add(&self.epoll, &socket, EventData::new_u64(number as u64), EventFlags::IN)?;
            let awaited = Awaited::Bytes(0);
            self.connections.push(Some(Connection { socket, awaited, sent: now() }));
        }
        for number in 0..count {
            self.begin(number);
        }
        Ok(())
    }

    /// Sends the next message. It is small and the connection is empty, so it goes out whole.
    fn begin(&mut self, number: usize) {
        let Some(connection) = &mut self.connections[number] else { return };
        connection.awaited =
            if self.http { Awaited::Head(Vec::new()) } else { Awaited::Bytes(self.message.len()) };
        connection.sent = now();
        if !matches!((&connection.socket).write(&self.message), Ok(count) if count == self.message.len()) {
            self.lose(number);
        }
    }

    /// A connection that failed is not opened again: its error must stay visible, and not grow by the hour.
    fn lose(&mut self, number: usize) {
        self.connections[number] = None;
        self.errors += 1;
    }

    /// Connections whose answer is long overdue.
    fn silent(&self) -> usize {
        self.connections.iter().flatten().filter(|connection| (now() - connection.sent) > SILENCE).count()
    }

    fn run_until(&mut self, end: Instant) -> Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(MOST_EVENTS);
        let mut buffer = vec![0; 64 * 1024];
        while now() < end {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&PATIENCE)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("epoll_wait"),
            }
            ensure!(self.connections.iter().any(Option::is_some), "every connection has failed");
            for event in &events {
                self.turn(event.data.u64() as usize, &mut buffer);
            }
        }
        Ok(())
    }

    fn turn(&mut self, number: usize, buffer: &mut [u8]) {
        let Some(connection) = &mut self.connections[number] else { return };
        let whole = match (&connection.socket).read(buffer) {
            Ok(0) => None,
            Ok(count) => connection.awaited.take(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Some(false)
            }
            Err(_) => None,
        };
        match whole {
            Some(true) => {
                self.times.push((now() - connection.sent).as_secs_f32() * 1e6);
                self.begin(number);
            }
            Some(false) => {}
            None => self.lose(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_whole_in_whatever_pieces_they_come() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        for cut in 1..answer.len() {
            let mut awaited = Awaited::Head(Vec::new());
            assert_eq!(awaited.take(&answer[..cut]), Some(false), "{cut}");
            assert_eq!(awaited.take(&answer[cut..]), Some(true), "{cut}");
        }
    }

    #[test]
    fn what_was_not_asked_for_is_an_error() {
        assert_eq!(Awaited::Bytes(3).take(b"abcd"), None);
        assert_eq!(Awaited::Head(Vec::new()).take(b"HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n"), None);
        let two = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc";
        assert_eq!(Awaited::Head(Vec::new()).take(two), None);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let mut times: Vec<f32> = (0..200u16).rev().map(f32::from).collect();
        assert_eq!(percentiles(&mut times), (100.0, 198.0));
        assert_eq!(percentiles(&mut []), (0.0, 0.0));
    }
}
