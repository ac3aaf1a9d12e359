//! Datagrams back and forth: a load of flows, the echo behind it, and a pump between the two that looks at nothing.
//!
//! Each flow has one datagram under way and sends the next when its answer is there. One whose answer does not come in time is lost, and counted.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto};
use slab::Slab;

use crate::clock::{now, pause};
use crate::say::say;

/// Events taken at once.
const MOST_EVENTS: usize = 512;
/// How long the load waits for an event before it looks at the clock again.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
const LISTENER: u64 = u64::MAX;

#[derive(Args)]
pub(crate) struct Options {
    /// Be the other side: send back whatever comes here
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["connect", "pump"])]
    serve: Option<SocketAddr>,
    /// Be between the two: pass on what comes here to `--connect`, with a socket for each client
    #[arg(long, value_name = "ADDRESS:PORT", requires = "connect")]
    pump: Option<SocketAddr>,
    /// Sockets that the pump has at most; the oldest makes way
    #[arg(long, value_name = "N", default_value_t = 4096)]
    most: usize,
    /// Where to send to
    #[arg(long, value_name = "ADDRESS:PORT", required_unless_present = "serve")]
    connect: Option<SocketAddr>,
    /// Flows
    #[arg(long, value_name = "N", default_value_t = 64)]
    flows: usize,
    /// A flow for each datagram, with a port of its own
    #[arg(long)]
    once: bool,
    /// Datagrams in a second over all flows; by default as many as go through
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// Bytes of a datagram, at least 8
    #[arg(long, value_name = "N", default_value_t = 64)]
    bytes: usize,
    /// Begin with a message of DNS that asks for this name, instead of a number
    #[arg(long, value_name = "NAME")]
    dns: Option<String>,
    /// Send from so many forged addresses instead, and hear nothing; needs root
    #[arg(long, value_name = "N", requires = "rate")]
    forge: Option<u32>,
    /// Milliseconds until an answer counts as lost
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    patience: u64,
    /// Seconds before the measured time
    #[arg(long, value_name = "SECONDS", default_value_t = 0.3)]
    warm: f64,
    /// Seconds of the measured time
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    seconds: f64,
}

/// Prints `start` when the measured time begins and a line of JSON when it ends.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(address) = options.serve {
        return serve(address);
    }
    let address = options.connect.context("--connect is missing")?;
    if let Some(own) = options.pump {
        return Pump::new(own, address, options.most)?.run();
    }
    if let (Some(senders), Some(rate)) = (options.forge, options.rate) {
        return forge(address, senders, rate, options.seconds);
    }
    ensure!(options.bytes >= 8, "a datagram has at least 8 bytes here");
    let message = options.dns.as_ref().map_or_else(|| vec![b'x'; options.bytes], |name| question(name));
    let mut load = Load::new(address, message, options)?;
    load.run_until(now() + Duration::from_secs_f64(options.warm))?;
    (load.lost, load.late) = (0, 0);
    load.times.clear();
    say("start")?;
    let began = now();
    load.run_until(began + Duration::from_secs_f64(options.seconds))?;
    let seconds = (now() - began).as_secs_f64();
    let exchanges = load.times.len();
    say("stop")?;
    load.times.sort_unstable_by(f32::total_cmp);
    let at = |share: usize| load.times.get(exchanges * share / 100).copied().unwrap_or_default();
    say(&format!(
        "{{\"exchanges\":{exchanges},\"seconds\":{seconds:.6},\"lost\":{},\"late\":{},\"p50_us\":{},\"p99_us\":{}}}",
        load.lost,
        load.late,
        at(50),
        at(99)
    ))
}

/// A question for the address of a name (RFC 1035 §4.1), whose first two bytes are its number.
fn question(name: &str) -> Vec<u8> {
    let mut bytes = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len().min(63)).unwrap_or(63));
        bytes.extend(label.bytes().take(63));
    }
    bytes.extend([0, 0, 1, 0, 1]);
    bytes
}

fn serve(address: SocketAddr) -> Result<()> {
    let socket = UdpSocket::bind(address).with_context(|| format!("cannot bind {address}"))?;
    say(&socket.local_addr()?.to_string())?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        // Whoever has gone is told of at the next receive.
        if let Ok((count, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..count], from);
        }
    }
}

/// Sends datagrams from addresses in 10.0.0.0/8 one after the other, with headers of our own making, and tells how many.
fn forge(address: SocketAddr, senders: u32, rate: f64, seconds: f64) -> Result<()> {
    let SocketAddr::V4(to) = address else { anyhow::bail!("only over IPv4") };
    let raw = rustix::net::socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW))?;
    let began = now();
    let mut sent = 0_u32;
    while (now() - began).as_secs_f64() < seconds {
        let due = ((now() - began).as_secs_f64() * rate) as u32;
        while sent < due {
            let number = sent % senders;
            let [_, high, middle, low] = number.to_be_bytes();
            // The kernel fills in what is zero; a UDP checksum of zero is none.
            let mut packet = vec![0x45, 0, 0, 36, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1 + high, middle, low];
            packet.extend(to.ip().octets());
            packet.extend((1024 + (number % 60_000) as u16).to_be_bytes());
            packet.extend(to.port().to_be_bytes());
            packet.extend([0, 16, 0, 0]);
            packet.extend(b"forged!!");
            let _ = rustix::net::sendto(&raw, &packet, SendFlags::empty(), &address);
            sent += 1;
        }
        pause(0.001);
    }
    say(&format!("{{\"forged\":{sent}}}"))
}

/// Passes datagrams on, and knows nothing but who has which socket.
struct Pump {
    epoll: OwnedFd,
    front: UdpSocket,
    to: SocketAddr,
    most: usize,
    by_client: HashMap<SocketAddr, usize>,
    sockets: Slab<(UdpSocket, SocketAddr)>,
    order: VecDeque<SocketAddr>,
}

impl Pump {
    fn new(own: SocketAddr, to: SocketAddr, most: usize) -> Result<Pump> {
        let front = UdpSocket::bind(own)?;
        front.set_nonblocking(true)?;
        say(&front.local_addr()?.to_string())?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &front, EventData::new_u64(LISTENER), EventFlags::IN)?;
        let (by_client, sockets, order) = (HashMap::new(), Slab::new(), VecDeque::new());
        Ok(Pump { epoll, front, to, most, by_client, sockets, order })
    }

    fn run(mut self) -> Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(MOST_EVENTS);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("epoll_wait"),
            }
            for event in &events {
                let token = event.data.u64();
                if token == LISTENER {
                    while let Ok((count, from)) = self.front.recv_from(&mut buffer) {
                        self.pass(from, &buffer[..count])?;
                    }
                } else if let Some((socket, client)) = self.sockets.get(token as usize) {
                    while let Ok(count) = socket.recv(&mut buffer) {
                        let _ = self.front.send_to(&buffer[..count], client);
                    }
                }
            }
        }
    }

    fn pass(&mut self, from: SocketAddr, bytes: &[u8]) -> Result<()> {
        let place = match self.by_client.get(&from) {
            Some(place) => *place,
            None => {
                if self.order.len() == self.most
                    && let Some(oldest) = self.order.pop_front()
                    && let Some(place) = self.by_client.remove(&oldest)
                {
                    self.sockets.remove(place);
                }
                let socket = UdpSocket::bind(if self.to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
                socket.connect(self.to)?;
                socket.set_nonblocking(true)?;
                let entry = self.sockets.vacant_entry();
                let place = entry.key();
                epoll::add(&self.epoll, &socket, EventData::new_u64(place as u64), EventFlags::IN)?;
                entry.insert((socket, from));
                self.by_client.insert(from, place);
                self.order.push_back(from);
                place
            }
        };
        let _ = self.sockets[place].0.send(bytes);
        Ok(())
    }
}

struct Flow {
    socket: UdpSocket,
    /// The number of what it waits for.
    number: u16,
    sent: Instant,
    waits: bool,
}

struct Load {
    epoll: OwnedFd,
    flows: Vec<Flow>,
    address: SocketAddr,
    message: Vec<u8>,
    once: bool,
    patience: Duration,
    /// What lies between two datagrams.
    pause: Option<Duration>,
    due: Instant,
    next: usize,
    /// Microseconds of each exchange.
    times: Vec<f32>,
    lost: usize,
    late: usize,
}

fn socket_to(address: SocketAddr) -> Result<UdpSocket> {
    let socket = UdpSocket::bind(if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    socket.connect(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

impl Load {
    fn new(address: SocketAddr, message: Vec<u8>, options: &Options) -> Result<Load> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut flows = Vec::new();
        for place in 0..options.flows {
            let socket = socket_to(address)?;
            epoll::add(&epoll, &socket, EventData::new_u64(place as u64), EventFlags::IN)?;
            flows.push(Flow { socket, number: 0, sent: now(), waits: false });
        }
        Ok(Load {
            epoll,
            flows,
            address,
            message,
            once: options.once,
            patience: Duration::from_millis(options.patience),
            pause: options.rate.map(|rate| Duration::from_secs_f64(1.0 / rate)),
            due: now(),
            next: 0,
            times: Vec::new(),
            lost: 0,
            late: 0,
        })
    }

    /// Sends the next datagram of a flow.
    fn begin(&mut self, place: usize) -> Result<()> {
        let flow = &mut self.flows[place];
        if self.once && flow.number > 0 {
            // What was for the one before is nobody's.
            flow.socket = socket_to(self.address)?;
            epoll::add(&self.epoll, &flow.socket, EventData::new_u64(place as u64), EventFlags::IN)?;
        }
        flow.number = flow.number.checked_add(1).unwrap_or(1);
        self.message[..2].copy_from_slice(&flow.number.to_be_bytes());
        (flow.sent, flow.waits) = (now(), true);
        // Where it can't be sent it counts as lost.
        let _ = flow.socket.send(&self.message);
        Ok(())
    }

    /// Begins those whose turn it is.
    fn pace(&mut self) -> Result<()> {
        let Some(pause) = self.pause else { return Ok(()) };
        let time = now();
        while self.due <= time {
            let free = (0..self.flows.len()).map(|step| (self.next + step) % self.flows.len());
            let Some(place) = free.into_iter().find(|place| !self.flows[*place].waits) else {
                // All are waited for: the rate can't be held.
                self.late += 1;
                self.due += pause;
                continue;
            };
            self.next = place + 1;
            self.due += pause;
            self.begin(place)?;
        }
        Ok(())
    }

    fn give_up(&mut self) -> Result<()> {
        for place in 0..self.flows.len() {
            let flow = &mut self.flows[place];
            if flow.waits && (now() - flow.sent) > self.patience {
                flow.waits = false;
                self.lost += 1;
                if self.pause.is_none() {
                    self.begin(place)?;
                }
            }
        }
        Ok(())
    }

    fn run_until(&mut self, end: Instant) -> Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(MOST_EVENTS);
        let mut buffer = vec![0; 64 * 1024];
        if self.pause.is_none() {
            for place in 0..self.flows.len() {
                if !self.flows[place].waits {
                    self.begin(place)?;
                }
            }
        } else {
            self.due = now();
        }
        let mut looked = now();
        while now() < end {
            self.pace()?;
            events.clear();
            let patience = match self.pause {
                Some(_) => Timespec { tv_sec: 0, tv_nsec: 0 },
                None => PATIENCE,
            };
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&patience)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("epoll_wait"),
            }
            if events.is_empty() && self.pause.is_some() {
                pause(0.000_05);
            }
            for event in &events {
                let place = event.data.u64() as usize;
                match self.flows[place].socket.recv(&mut buffer) {
                    Ok(count) if count >= 2 => {
                        let flow = &mut self.flows[place];
                        let number = u16::from_be_bytes([buffer[0], buffer[1]]);
                        if flow.waits && number == flow.number {
                            flow.waits = false;
                            self.times.push((now() - flow.sent).as_secs_f32() * 1e6);
                            if self.pause.is_none() {
                                self.begin(place)?;
                            }
                        }
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => {}
                }
            }
            if (now() - looked) > Duration::from_millis(20) {
                looked = now();
                self.give_up()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_of_dns_has_the_name_in_labels() {
        let bytes = question("a.example");
        assert_eq!(&bytes[12..], b"\x01a\x07example\x00\x00\x01\x00\x01");
    }
}
