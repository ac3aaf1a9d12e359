//! Requests as users send them, and how long each of them took: at random moments that nobody's answer changes (an open
//! loop), or by so many clients that each wait for their answer (a closed one). One thread, on connections that are kept where
//! the peer keeps them.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
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
use crate::say::say;

/// Events taken at once.
const MOST_EVENTS: usize = 512;
/// Requests that take longer are counted as slow.
const SLOW: Duration = Duration::from_millis(100);
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
    /// Requests of the first seconds don't count
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    after: f64,
    /// Asks for so many paths in turn: `/0`, `/1` and on
    #[arg(long, value_name = "N", default_value_t = 1)]
    paths: u64,
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
    /// None after its end: the next request opens another one.
    socket: Option<TcpStream>,
    sent: Instant,
    waits: bool,
    come: Vec<u8>,
}

struct Load<'a> {
    options: &'a Options,
    /// What follows the path in every request.
    rest: String,
    /// Requests sent so far.
    sent: u64,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    /// Connections that wait for nothing; the one that was used last is used next.
    idle: Vec<usize>,
    under_way: usize,
    times: Vec<Duration>,
    errors: u64,
    /// How many answers had which status; 0 is none, because the connection ended.
    statuses: BTreeMap<u16, u64>,
    /// When the run began, the first and the last moment of sending.
    begun: Instant,
    /// From when on requests count.
    counts: Instant,
    end: Instant,
    /// When the next request of an open loop is due.
    due: Instant,
    chance: u64,
}

impl<'a> Load<'a> {
    fn new(options: &'a Options) -> Result<Load<'a>> {
        let rest = format!(" HTTP/1.1\r\nHost: {}\r\nUser-Agent: rig\r\nAccept: */*\r\n\r\n", options.to);
        let begun = now();
        Ok(Load {
            options,
            rest,
            sent: 0,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            connections: Vec::new(),
            idle: Vec::new(),
            under_way: 0,
            times: Vec::new(),
            errors: 0,
            statuses: BTreeMap::new(),
            begun,
            counts: begun,
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
        self.counts = self.begun + Duration::from_secs_f64(self.options.after);
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
        let socket = Some(self.connect(place)?);
        self.connections.push(Connection { socket, sent: now(), waits: false, come: Vec::new() });
        Ok(place)
    }

    fn connect(&self, place: usize) -> Result<TcpStream> {
        let socket = TcpStream::connect(self.options.to)
            .with_context(|| format!("cannot connect to {}", self.options.to))?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        epoll::add(&self.epoll, &socket, EventData::new_u64(place as u64), EventFlags::IN)?;
        Ok(socket)
    }

    fn send(&mut self, place: usize) -> Result<()> {
        let mut socket = match self.connections[place].socket.take() {
            Some(socket) => socket,
            None => self.connect(place)?,
        };
        let request = match self.options.paths {
            0 | 1 => format!("GET /{}", self.rest),
            paths => format!("GET /{}{}", self.sent % paths, self.rest),
        };
        self.sent += 1;
        // A small request always fits into the buffer of a socket on which nothing is under way. One that the peer has
        // closed meanwhile says so at the next read, when it fails now.
        match socket.write_all(request.as_bytes()) {
            Ok(()) => {}
            Err(error) if is_end(&error) => {}
            Err(error) => return Err(error).context("cannot send"),
        }
        let connection = &mut self.connections[place];
        connection.socket = Some(socket);
        (connection.sent, connection.waits) = (now(), true);
        self.under_way += 1;
        Ok(())
    }

    fn receive(&mut self, place: usize) -> Result<()> {
        let connection = &mut self.connections[place];
        let mut buffer = [0; 16 * 1024];
        let Some(socket) = &mut connection.socket else { return Ok(()) };
        match socket.read(&mut buffer) {
            Ok(0) => return self.ended(place),
            Ok(count) => connection.come.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if is_end(&error) => return self.ended(place),
            Err(error) => return Err(error).context("cannot receive"),
        }
        ensure!(connection.waits, "an answer that nobody asked for");
        let Some(head) = Head::read(&connection.come) else { return Ok(()) };
        let length = head.length.context("an answer without a length")?;
        if connection.come.len() < head.len + usize::try_from(length)? {
            return Ok(());
        }
        let status = std::str::from_utf8(connection.come.get(9..12).unwrap_or_default())?.parse()?;
        if head.close {
            connection.socket = None;
        }
        self.take(place, status)
    }

    /// The peer has closed or reset: nothing but a request that waits is lost by that.
    fn ended(&mut self, place: usize) -> Result<()> {
        let connection = &mut self.connections[place];
        connection.socket = None;
        if connection.waits { self.take(place, 0) } else { Ok(()) }
    }

    /// Counts an answer and sends the connection's next request where one waits for that.
    fn take(&mut self, place: usize, status: u16) -> Result<()> {
        let time = now();
        let connection = &mut self.connections[place];
        if connection.sent >= self.counts {
            *self.statuses.entry(status).or_default() += 1;
            match status {
                200 => self.times.push(time - connection.sent),
                _ => self.errors += 1,
            }
        }
        connection.come.clear();
        connection.waits = false;
        self.under_way -= 1;
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
        let statuses: Vec<_> =
            self.statuses.iter().map(|(status, count)| format!("\"{status}\":{count}")).collect();
        let slow = self.times.iter().filter(|time| **time > SLOW).count();
        format!(
            "{{\"requests\":{},\"errors\":{},\"seconds\":{:.6},\"connections\":{},\"mean_us\":{mean:.0},\"p50_us\":{:.0},\
             \"p99_us\":{:.0},\"p99_5_us\":{:.0},\"max_us\":{:.0},\"slow\":{slow},\"statuses\":{{{}}}}}",
            self.times.len() as u64 + self.errors,
            self.errors,
            (now() - self.begun).as_secs_f64(),
            self.connections.len(),
            part(0.5),
            part(0.99),
            part(0.995),
            part(1.0),
            statuses.join(","),
        )
    }
}

/// Whether this says that the peer is gone.
fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted)
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
        let options =
            Options { to, rate: None, clients: Some(7), seconds: 0.05, after: 0.0, paths: 1, seed: 1 };
        let mut load = load(&options);
        assert_eq!((load.connections.len(), load.under_way, load.errors), (7, 0, 0));
        assert!(load.times.len() >= 7);
        assert!(load.report().starts_with(&format!("{{\"requests\":{},\"errors\":0,", load.times.len())));
    }

    #[test]
    fn answers_are_counted_by_status_and_ends_of_connections_as_errors() {
        use std::io::BufRead as _;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let mut listener = Some(listener);
            let mut asked = Vec::new();
            for answer in ["503 No\r\nConnection: close", "500 No", "200 OK"] {
                let (mut socket, _) = listener.as_ref().unwrap().accept().unwrap();
                if answer == "200 OK" {
                    // Nobody gets in after this one.
                    listener = None;
                }
                let mut lines = io::BufReader::new(socket.try_clone().unwrap()).lines();
                asked.push(lines.next().unwrap().unwrap());
                while !lines.next().unwrap().unwrap().is_empty() {}
                write!(socket, "HTTP/1.1 {answer}\r\nContent-Length: 2\r\n\r\nok").unwrap();
                // A second request on the same connection gets no answer but its end.
                if !answer.contains("close") {
                    while !lines.next().unwrap().unwrap().is_empty() {}
                }
            }
            asked
        });
        let options =
            Options { to, rate: None, clients: Some(1), seconds: 3_600.0, after: 0.0, paths: 2, seed: 1 };
        let mut load = Load::new(&options).unwrap();
        assert!(load.go().is_err());
        // The request that got no answer lies between the last two.
        let asked = server.join().unwrap();
        assert_eq!(asked, ["GET /0 HTTP/1.1", "GET /1 HTTP/1.1", "GET /1 HTTP/1.1"]);
        assert_eq!(load.statuses, BTreeMap::from([(0, 2), (200, 1), (500, 1), (503, 1)]));
        assert_eq!((load.errors, load.times.len()), (4, 1));
    }

    #[test]
    fn what_is_sent_before_the_count_begins_is_left_out() {
        let to = backend::start(&[]);
        let options =
            Options { to, rate: None, clients: Some(1), seconds: 0.05, after: 3_600.0, paths: 1, seed: 1 };
        let load = load(&options);
        assert_eq!((load.errors, load.times.len(), load.statuses.len()), (0, 0, 0));
    }

    #[test]
    fn an_open_loop_sends_as_much_as_its_seed_says() {
        let to = backend::start(&[]);
        let options =
            Options { to, rate: Some(2_000.0), clients: None, seconds: 0.1, after: 0.0, paths: 1, seed: 5 };
        let (once, again) = (load(&options), load(&options));
        assert_eq!(once.times.len(), again.times.len(), "chance has a seed");
        assert!((120..280).contains(&once.times.len()), "{}", once.times.len());
        assert_eq!(once.idle.len(), once.connections.len());
    }
}
