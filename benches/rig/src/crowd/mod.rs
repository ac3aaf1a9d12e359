//! Everything that users do, at the same time: WebSockets and TCP tunnels on which a message goes back and forth each second,
//! and requests at random moments that nobody's answer changes. What matters is what is lost: a request without its
//! answer, a connection that lasted and ended, a kept connection that was closed without a word.

mod link;
mod report;
mod work;

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use slab::Slab;

use crate::clock::now;
use crate::drive::Sessions;
use crate::say::say;

use link::Link;
use report::Report;
use work::{Awaited, Kind, Progress, TURNS};

/// Events taken at once.
const MOST_EVENTS: usize = 512;
/// What takes longer is lost.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the loop waits for an event before it looks at the clock again, at most.
const NAP: Duration = Duration::from_millis(20);

#[derive(Args)]
pub(crate) struct Options {
    /// Where requests and WebSockets go to
    #[arg(long, value_name = "ADDRESS:PORT")]
    http: Option<SocketAddr>,
    /// Where those with TLS go to
    #[arg(long, value_name = "ADDRESS:PORT")]
    https: Option<SocketAddr>,
    /// Where TCP sessions and tunnels go to, to be sent back what they send
    #[arg(long, value_name = "ADDRESS:PORT")]
    tcp: Option<SocketAddr>,
    /// Trust the certificates in this PEM file
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// The host that is asked for; full handshakes take several in turn
    #[arg(long, value_name = "NAME", default_value = "localhost")]
    host: Vec<String>,
    /// WebSockets on which a message goes back and forth each second
    #[arg(long, value_name = "N", default_value_t = 0)]
    websockets: u32,
    /// The same with TLS
    #[arg(long, value_name = "N", default_value_t = 0)]
    tls_websockets: u32,
    /// The same over TCP alone
    #[arg(long, value_name = "N", default_value_t = 0)]
    tunnels: u32,
    /// GET requests in a second
    #[arg(long, value_name = "PER_SECOND", default_value_t = 0.0)]
    get: f64,
    /// POST requests of 64 bytes in a second, which are sent back
    #[arg(long, value_name = "PER_SECOND", default_value_t = 0.0)]
    post: f64,
    /// Downloads of 1 MiB in a second; every other one with TLS
    #[arg(long, value_name = "PER_SECOND", default_value_t = 0.0)]
    down: f64,
    /// Uploads of 1 MiB in a second; every other one with TLS
    #[arg(long, value_name = "PER_SECOND", default_value_t = 0.0)]
    up: f64,
    /// GET requests with TLS in a second
    #[arg(long, value_name = "PER_SECOND", default_value_t = 0.0)]
    tls: f64,
    /// TLS connections in a second, each with a full handshake and one GET request
    #[arg(long, value_name = "PER_SECOND", default_value_t = 0.0)]
    handshakes: f64,
    /// TCP connections in a second, each with three messages back and forth
    #[arg(long, value_name = "PER_SECOND", default_value_t = 0.0)]
    sessions: f64,
    /// Seconds in which requests are begun; those under way then are waited for
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    seconds: f64,
    /// What is begun in the first seconds is not timed; failures count all the same
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    after: f64,
    /// What chance begins with
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Prints `ready` when all that lasts is there, and one line of JSON at the end.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut crowd = Crowd::new(options)?;
    crowd.gather()?;
    say("ready")?;
    crowd.go()?;
    say(&crowd.report.text())
}

/// Whether a connection is with TLS, and if so who shakes hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Http,
    Https { host: usize },
    Tcp,
}

/// What a connection is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// One request after the other; `None`: none is under way.
    Kept(Option<Kind>),
    /// A single exchange, of which so many turns are done.
    Once(Kind, u32),
    /// Messages for ever: a WebSocket or a tunnel.
    Lasting { websocket: bool },
}

struct Connection {
    link: Link,
    door: Door,
    role: Role,
    awaited: Awaited,
    /// When what is awaited was to be sent.
    due: Instant,
    /// Exchanges so far.
    used: u64,
    /// Whether epoll watches for room.
    blocked: bool,
}

struct Crowd<'a> {
    options: &'a Options,
    sessions: Vec<Sessions>,
    epoll: OwnedFd,
    connections: Slab<Connection>,
    /// Kept connections that wait for nothing, with and without TLS; the one that has waited longest is used next, so that
    /// all of them are used.
    idle: [VecDeque<usize>; 2],
    /// What lasts, in the order of its messages.
    lasting: Vec<usize>,
    report: Report,
    chance: u64,
}

impl<'a> Crowd<'a> {
    fn new(options: &'a Options) -> Result<Crowd<'a>> {
        let sessions =
            options.trust.iter().flat_map(|file| options.host.iter().map(move |host| (file, host)));
        Ok(Crowd {
            options,
            sessions: sessions.map(|(file, host)| Sessions::new(file, host, false)).collect::<Result<_>>()?,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            connections: Slab::new(),
            idle: [VecDeque::new(), VecDeque::new()],
            lasting: Vec::new(),
            report: Report::new(now()),
            chance: options.seed,
        })
    }

    /// Opens what lasts, and waits until all of it has had its first answer.
    fn gather(&mut self) -> Result<()> {
        let Options { websockets, tls_websockets, tunnels, .. } = *self.options;
        let doors =
            [(websockets, Door::Http), (tls_websockets, Door::Https { host: 0 }), (tunnels, Door::Tcp)];
        for (count, door) in doors {
            let websocket = door != Door::Tcp;
            for _ in 0..count {
                let key = self.open(door, Role::Lasting { websocket })?;
                let (request, awaited) =
                    if websocket { work::opening(&self.options.host[0]) } else { tunnel_message() };
                self.begin(key, &request, 0, awaited, now());
                self.lasting.push(key);
                // Backlogs are short on some machines.
                self.turn_over(Duration::ZERO)?;
            }
        }
        let begun = now();
        while self.waits() && now() - begun < PATIENCE {
            self.turn_over(NAP)?;
        }
        ensure!(self.report.lost() == 0 && !self.waits(), "not all could be opened: {}", self.report.text());
        Ok(())
    }

    /// Whether anything is awaited.
    fn waits(&self) -> bool {
        self.connections.iter().any(|(_, one)| !matches!(one.awaited, Awaited::Nothing))
    }

    fn go(&mut self) -> Result<()> {
        let begun = now();
        self.report.begin(begun, begun + Duration::from_secs_f64(self.options.after));
        let end = begun + Duration::from_secs_f64(self.options.seconds);
        let rates = Kind::ALL.map(|kind| self.rate(kind));
        let mut dues = rates.map(|rate| (rate > 0.0).then(|| begun + self.pause(rate)));
        let pace = Duration::from_secs(1).checked_div(u32::try_from(self.lasting.len())?).unwrap_or(PATIENCE);
        let (mut place, mut message_due, mut look) = (0, begun, begun);
        loop {
            let time = now();
            for (number, kind) in Kind::ALL.into_iter().enumerate() {
                while let Some(due) = dues[number].filter(|&due| due <= time && due < end) {
                    self.request(kind, due);
                    dues[number] = Some(due + self.pause(rates[number]));
                }
            }
            while !self.lasting.is_empty() && message_due <= time && message_due < end {
                self.message(self.lasting[place], message_due);
                place = (place + 1) % self.lasting.len();
                message_due += pace;
            }
            if look <= time {
                look = time + Duration::from_secs(1);
                self.give_up(time);
            }
            if time >= end && !self.waits() {
                return Ok(());
            }
            let next = dues.iter().flatten().copied().chain([message_due, look]).min().unwrap_or(end);
            self.turn_over(next.saturating_duration_since(now()).min(NAP))?;
        }
    }

    fn rate(&self, kind: Kind) -> f64 {
        let options = self.options;
        match kind {
            Kind::Get => options.get,
            Kind::Post => options.post,
            Kind::Down => options.down,
            Kind::Up => options.up,
            Kind::Tls => options.tls,
            Kind::Handshake => options.handshakes,
            Kind::Session => options.sessions,
        }
    }

    /// Until the next of so many in a second, which know nothing of each other.
    fn pause(&mut self, rate: f64) -> Duration {
        // SplitMix64, and from it a number above 0, up to 1.
        self.chance = self.chance.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.chance;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        let unit = ((bits >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        Duration::from_secs_f64(-unit.ln() / rate)
    }

    fn open(&mut self, door: Door, role: Role) -> Result<usize> {
        let (to, sessions) = match door {
            Door::Http => (self.options.http.context("--http is missing")?, None),
            Door::Tcp => (self.options.tcp.context("--tcp is missing")?, None),
            Door::Https { host } => {
                let sessions = self.sessions.get(host).context("--trust is missing")?;
                (self.options.https.context("--https is missing")?, Some(sessions))
            }
        };
        let link = Link::open(to, sessions)?;
        let entry = self.connections.vacant_entry();
        let key = entry.key();
        epoll::add(&self.epoll, &link.socket, EventData::new_u64(key as u64), EventFlags::IN)?;
        entry.insert(Connection {
            link,
            door,
            role,
            awaited: Awaited::Nothing,
            due: now(),
            used: 0,
            blocked: false,
        });
        Ok(key)
    }

    /// Begins a request that was due at `due`.
    fn request(&mut self, kind: Kind, due: Instant) {
        let begun = self.report.begun(kind);
        let door = match kind {
            Kind::Get | Kind::Post => Door::Http,
            Kind::Down | Kind::Up if begun.is_multiple_of(2) || self.sessions.is_empty() => Door::Http,
            Kind::Down | Kind::Up | Kind::Tls => Door::Https { host: 0 },
            Kind::Handshake => Door::Https { host: begun as usize % self.sessions.len().max(1) },
            Kind::Session => Door::Tcp,
        };
        let once = matches!(kind, Kind::Handshake | Kind::Session);
        let waiting = if once { None } else { self.idle[usize::from(door != Door::Http)].pop_front() };
        let opened = match waiting {
            Some(key) => Ok(key),
            None => self.open(door, if once { Role::Once(kind, 0) } else { Role::Kept(None) }),
        };
        let key = match opened {
            Ok(key) => key,
            Err(error) => return self.report.failed(kind, &error),
        };
        if !once {
            self.connections[key].role = Role::Kept(Some(kind));
        }
        let host = match door {
            Door::Https { host } => host,
            Door::Http | Door::Tcp => 0,
        };
        let (bytes, filler) = kind.request(&self.options.host[host]);
        self.begin(key, &bytes, filler, kind.awaited(), due);
    }

    /// Sends the next message of what lasts.
    fn message(&mut self, key: usize, due: Instant) {
        let Some(connection) = self.connections.get(key) else { return };
        let Role::Lasting { websocket } = connection.role else { return };
        if !matches!(connection.awaited, Awaited::Nothing) {
            // The one before has not come back; `give_up` sees when it never does.
            return self.report.late();
        }
        let (bytes, awaited) = if websocket { work::message(connection.used) } else { tunnel_message() };
        self.report.message();
        self.begin(key, &bytes, 0, awaited, due);
    }

    fn begin(&mut self, key: usize, bytes: &[u8], filler: usize, awaited: Awaited, due: Instant) {
        let connection = &mut self.connections[key];
        (connection.awaited, connection.due) = (awaited, due);
        connection.link.queue(bytes, filler);
        self.flush(key);
    }

    /// Sends what is queued, and has epoll tell of room when there is none.
    fn flush(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let blocked = match connection.link.flush() {
            Ok(done) => !done,
            // What has come before the end still counts: reading tells of it.
            Err(_) => false,
        };
        if blocked != connection.blocked {
            connection.blocked = blocked;
            let interest = if blocked { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            let token = EventData::new_u64(key as u64);
            if let Err(error) = epoll::modify(&self.epoll, &connection.link.socket, token, interest) {
                self.ended(key, &error.into());
            }
        }
    }

    /// Waits for events, so long at most, and does what they are about.
    fn turn_over(&mut self, wait: Duration) -> Result<()> {
        let wait = Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: wait.subsec_nanos().into() };
        let mut room = [const { MaybeUninit::<Event>::uninit() }; MOST_EVENTS];
        let events = match epoll::wait(&self.epoll, &mut room, Some(&wait)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error).context("epoll_wait"),
        };
        for event in events {
            self.receive(event.data.u64() as usize);
        }
        Ok(())
    }

    /// Reads until nothing is there.
    fn receive(&mut self, key: usize) {
        let mut buffer = [0; 32 * 1024];
        // An event may be left over from a connection that ended in this round.
        while let Some(connection) = self.connections.get_mut(key) {
            match connection.link.read(&mut buffer) {
                Ok(None) => return self.flush(key),
                Ok(Some(0)) => return self.ended(key, &anyhow!("closed")),
                Ok(Some(count)) => match connection.awaited.take(&buffer[..count]) {
                    Ok(Progress::Missing) => {}
                    Ok(Progress::Whole { close }) => self.whole(key, close),
                    Err(error) => return self.ended(key, &error),
                },
                Err(error) => return self.ended(key, &error.into()),
            }
        }
    }

    /// An answer, or a message, is there. `close`: the peer says that the connection ends behind it.
    fn whole(&mut self, key: usize, close: bool) {
        let connection = &mut self.connections[key];
        connection.awaited = Awaited::Nothing;
        connection.used += 1;
        let due = connection.due;
        match connection.role {
            Role::Lasting { .. } => self.report.echoed(due, now()),
            Role::Once(Kind::Session, turn) if turn + 1 < TURNS => {
                connection.role = Role::Once(Kind::Session, turn + 1);
                let (bytes, filler) = Kind::Session.request("");
                self.begin(key, &bytes, filler, Kind::Session.awaited(), due);
            }
            Role::Once(Kind::Session, _) => {
                // The end goes through and comes back.
                connection.awaited = Awaited::End;
                if let Err(error) = connection.link.finish() {
                    self.ended(key, &error.into());
                }
            }
            Role::Once(kind, _) => {
                self.report.answered(kind, due, now());
                self.connections.remove(key);
            }
            Role::Kept(Some(kind)) => {
                connection.role = Role::Kept(None);
                let idle = usize::from(connection.door != Door::Http);
                self.report.answered(kind, due, now());
                if close {
                    self.report.announced();
                    self.connections.remove(key);
                } else {
                    self.idle[idle].push_back(key);
                }
            }
            Role::Kept(None) => {}
        }
    }

    /// A connection is over.
    fn ended(&mut self, key: usize, reason: &anyhow::Error) {
        let connection = self.connections.remove(key);
        let reason = anyhow!("{reason:#} (after {} exchanges)", connection.used);
        match connection.role {
            Role::Once(Kind::Session, _) if matches!(connection.awaited, Awaited::End) => {
                self.report.answered(Kind::Session, connection.due, now());
            }
            Role::Once(kind, _) | Role::Kept(Some(kind)) => self.report.failed(kind, &reason),
            Role::Kept(None) => {
                self.idle.iter_mut().for_each(|idle| idle.retain(|&other| other != key));
                self.report.unannounced(&reason);
            }
            Role::Lasting { websocket } => self.report.lose(websocket, &reason),
        }
    }

    /// Gives up what takes too long.
    fn give_up(&mut self, time: Instant) {
        let overdue = |one: &Connection| {
            !matches!(one.awaited, Awaited::Nothing) && time.saturating_duration_since(one.due) > PATIENCE
        };
        let keys: Vec<usize> =
            self.connections.iter().filter(|(_, one)| overdue(one)).map(|(key, _)| key).collect();
        for key in keys {
            self.ended(key, &anyhow!("nothing within {} s", PATIENCE.as_secs()));
        }
    }
}

/// A message over a tunnel, as it is sent and as it comes back.
fn tunnel_message() -> (Vec<u8>, Awaited) {
    let message = b"a message over TCP".to_vec();
    let wanted = message.clone();
    (message, Awaited::Exactly { come: 0, wanted })
}

#[cfg(test)]
mod tests;
