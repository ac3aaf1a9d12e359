//! Requests as users send them, and how long each of them took: at random moments that nobody's answer changes (an open
//! loop), or by so many clients that each wait for their answer (a closed one). One thread, on kept connections.

use std::io::{ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;

use crate::clock::now;
use crate::message::Head;
use crate::pingpong::say;

/// Events taken at once.
const MOST_EVENTS: usize = 512;
/// A run in which nothing happens for so long has failed.
const SILENCE: Duration = Duration::from_secs(60);

#[derive(Args)]
pub(crate) struct Options {
    /// Where to connect to
    #[arg(value_name = "ADDRESS:PORT")]
    to: SocketAddr,
    /// Requests in a second, at moments that know nothing of each other
    #[arg(long, value_name = "PER_SECOND", required_unless_present = "clients", conflicts_with = "clients")]
    rate: Option<f64>,
    /// Clients that send the next request when they have the answer
    #[arg(long, value_name = "N")]
    clients: Option<usize>,
    /// Seconds in which requests are sent; those under way then are waited for
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    seconds: f64,
    /// What chance begins with
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Sends the requests and prints one line of JSON.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut load = Load::new(options)?;
    load.go()?;
    say(&load.report())
}

/// A connection, with what has come of the answer that it waits for.
struct Connection {
    socket: TcpStream,
    sent: Instant,
    waits: bool,
    come: Vec<u8>,
}

struct Load<'a> {
    options: &'a Options,
    request: Vec<u8>,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    /// Connections that wait for nothing; the one that was used last is used next.
    idle: Vec<usize>,
    under_way: usize,
    times: Vec<Duration>,
    errors: u64,
    /// When the run began, the first and the last moment of sending.
    begun: Instant,
    end: Instant,
    /// When the next request of an open loop is due.
    due: Instant,
    chance: u64,
}

impl<'a> Load<'a> {
    fn new(options: &'a Options) -> Result<Load<'a>> {
        let request =
            format!("GET / HTTP/1.1\r\nHost: {}\r\nUser-Agent: rig\r\nAccept: */*\r\n\r\n", options.to);
        let begun = now();
        Ok(Load {
            options,
            request: request.into_bytes(),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            connections: Vec::new(),
            idle: Vec::new(),
            under_way: 0,
            times: Vec::new(),
            errors: 0,
            begun,
            end: begun,
            due: begun,
            chance: options.seed,
        })
    }

    fn go(&mut self) -> Result<()> {
        if let Some(clients) = self.options.clients {
            for _ in 0..clients {
                self.open()?;
            }
        }
        self.begun = now();
        self.end = self.begun + Duration::from_secs_f64(self.options.seconds);
        self.due = self.begun;
        match self.options.rate {
            None => (0..self.connections.len()).try_for_each(|place| self.send(place))?,
            Some(_) => self.put_off(),
        }
        let mut room = [const { MaybeUninit::<Event>::uninit() }; MOST_EVENTS];
        let mut heard = self.begun;
        loop {
            let time = self.send_what_is_due()?;
            if time >= self.end && self.under_way == 0 {
                return Ok(());
            }
            let wait = if self.options.rate.is_some() && self.due < self.end {
                self.due.saturating_duration_since(time)
            } else {
                Duration::from_millis(20)
            };
            let wait = Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: wait.subsec_nanos().into() };
            let events = match epoll::wait(&self.epoll, &mut room, Some(&wait)) {
                Ok((events, _)) => events,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error).context("epoll_wait"),
            };
            let time = now();
            if !events.is_empty() || self.under_way == 0 {
                heard = time;
            }
            ensure!(time - heard < SILENCE, "nothing came for {} s", SILENCE.as_secs());
            for event in events {
                self.receive(usize::try_from(event.data.u64())?)?;
            }
        }
    }

    /// Sends what is due in an open loop; tells the time.
    fn send_what_is_due(&mut self) -> Result<Instant> {
        let time = now();
        while self.options.rate.is_some() && self.due <= time && self.due < self.end {
            let place = match self.idle.pop() {
                Some(place) => place,
                None => self.open()?,
            };
            self.send(place)?;
            self.put_off();
        }
        Ok(time)
    }

    /// Sets the moment of the next request.
    fn put_off(&mut self) {
        // SplitMix64, and from it a number above 0, up to 1.
        self.chance = self.chance.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.chance;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        let unit = ((bits >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        let rate = self.options.rate.unwrap_or(1.0);
        self.due += Duration::from_secs_f64(-unit.ln() / rate);
    }

    fn open(&mut self) -> Result<usize> {
        let place = self.connections.len();
        let socket = TcpStream::connect(self.options.to)
            .with_context(|| format!("cannot connect to {}", self.options.to))?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        epoll::add(&self.epoll, &socket, EventData::new_u64(place as u64), EventFlags::IN)?;
        self.connections.push(Connection { socket, sent: now(), waits: false, come: Vec::new() });
        Ok(place)
    }

    fn send(&mut self, place: usize) -> Result<()> {
        let connection = &mut self.connections[place];
        (connection.sent, connection.waits) = (now(), true);
        self.under_way += 1;
        // A small request always fits into the buffer of a socket on which nothing is under way.
        connection.socket.write_all(&self.request).context("cannot send")
    }

    fn receive(&mut self, place: usize) -> Result<()> {
        let connection = &mut self.connections[place];
        let mut buffer = [0; 16 * 1024];
        match connection.socket.read(&mut buffer) {
            Ok(count) => {
                ensure!(count > 0, "the connection ended");
                connection.come.extend_from_slice(&buffer[..count]);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).context("cannot receive"),
        }
        ensure!(connection.waits, "an answer that nobody asked for");
        let Some(head) = Head::read(&connection.come) else { return Ok(()) };
        let length = head.length.context("an answer without a length")?;
        if connection.come.len() < head.len + usize::try_from(length)? {
            return Ok(());
        }
        let time = now();
        if connection.come.starts_with(b"HTTP/1.1 200") {
            self.times.push(time - connection.sent);
        } else {
            self.errors += 1;
        }
        connection.come.clear();
        connection.waits = false;
        self.under_way -= 1;
        ensure!(!head.close, "the connection is not kept");
        if self.options.rate.is_some() {
            self.idle.push(place);
        } else if time < self.end {
            self.send(place)?;
        }
        Ok(())
    }

    fn report(&mut self) -> String {
        self.times.sort_unstable();
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let part = |share: f64| {
            let rank = (self.times.len() as f64 * share).ceil() as usize;
            self.times.get(rank.saturating_sub(1)).copied().map_or(0.0, micros)
        };
        let mean = self.times.iter().copied().map(micros).sum::<f64>() / self.times.len().max(1) as f64;
        format!(
            "{{\"requests\":{},\"errors\":{},\"seconds\":{:.6},\"connections\":{},\"mean_us\":{mean:.0},\"p50_us\":{:.0},\
             \"p99_us\":{:.0},\"max_us\":{:.0}}}",
            self.times.len() as u64 + self.errors,
            self.errors,
            (now() - self.begun).as_secs_f64(),
            self.connections.len(),
            part(0.5),
            part(0.99),
            part(1.0),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend;

    fn load(options: &Options) -> Load<'_> {
        let mut load = Load::new(options).unwrap();
        load.go().unwrap();
        load
    }

    #[test]
    fn a_closed_loop_keeps_its_clients_and_counts_every_answer() {
        let to = backend::start(&["--body", "40000"]);
        let options = Options { to, rate: None, clients: Some(7), seconds: 0.05, seed: 1 };
        let mut load = load(&options);
        assert_eq!((load.connections.len(), load.under_way, load.errors), (7, 0, 0));
        assert!(load.times.len() >= 7);
        assert!(load.report().starts_with(&format!("{{\"requests\":{},\"errors\":0,", load.times.len())));
    }

    #[test]
    fn an_open_loop_sends_as_much_as_its_seed_says() {
        let to = backend::start(&[]);
        let options = Options { to, rate: Some(2_000.0), clients: None, seconds: 0.1, seed: 5 };
        let (once, again) = (load(&options), load(&options));
        assert_eq!(once.times.len(), again.times.len(), "chance has a seed");
        assert!((120..280).contains(&once.times.len()), "{}", once.times.len());
        assert_eq!(once.idle.len(), once.connections.len());
    }
}
