//! A flow's socket to its backend, and all of those that have something to read.
//!
//! Invariants:
//!
//! 1. A leg is watched from when it is kept until it is dropped, which closes it: the kernel forgets it then.
//! 2. What is told of a leg carries its place and its number, and no other leg ever has both: what was told of one that is gone is nobody's.
//! 3. A leg serves a flow, with a lease on its backend, or it lingers: then it only passes on what still comes back, to the client that it was for.

use std::cell::Cell;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd as _, OwnedFd};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use slab::Slab;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::flows::FlowClient;
use super::front::DatagramRow;
use crate::message::Cause;
use crate::net::connect;
use crate::net::datagrams::{join_rows, to_peer, watch};
use crate::targets::{Backend, Endpoint, Lease};
use crate::tick::Tick;

/// Legs that are told of at once.
const EVENTS: usize = 128;

/// For whom a leg is there.
pub enum LegDuty {
    /// For the flow at this place.
    Serves {
        /// The place.
        flow: usize,
        /// The right to use the backend.
        lease: Lease,
    },
    /// For what a client may still be sent.
    Lingers {
        /// The client.
        client: FlowClient,
        /// Bytes that it may have; `None`: any number.
        left: Option<u64>,
    },
}

/// A socket to a backend.
pub struct Leg {
    socket: UdpSocket,
    number: u32,
    /// For whom.
    pub duty: LegDuty,
    /// Something has come back on it.
    pub is_answered: bool,
    /// To which of the backend's addresses it leads.
    pub number_of_address: usize,
    /// When it was opened.
    begun: Tick,
    /// Rows that were sent on it.
    sent: u32,
    /// The kernel joins rows for it.
    joins: bool,
    /// Another process has it, too: what the kernel does for it stays as it is, for both rely on that.
    is_shared: bool,
    /// It was told that the backend seems to be there.
    is_told: bool,
}

/// How it stands with a leg, whoever serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegState {
    is_answered: bool,
    joins: bool,
    sent: u32,
}

/// What became of a row that was to be sent.
#[derive(Debug)]
pub enum SendFailure {
    /// The backend's machine says that nobody is there, about this or something that was sent before: nothing was sent.
    Unreachable(io::Error),
    /// It is too long for the way.
    TooLong,
    /// The kernel did not take it.
    Unsent,
}

impl SendFailure {
    fn of(error: io::Error) -> SendFailure {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            _ if is_unreachable(&error) => SendFailure::Unreachable(error),
            Some(Errno::MSGSIZE) => SendFailure::TooLong,
            _ => SendFailure::Unsent,
        }
    }
}

/// Whether an error says that a backend can't be reached: its machine, or one on the way, has said so (ICMP).
fn is_unreachable(error: &io::Error) -> bool {
    let unreachable = [
        Errno::CONNREFUSED,
        Errno::HOSTUNREACH,
        Errno::NETUNREACH,
        Errno::HOSTDOWN,
        Errno::NETDOWN,
        Errno::PROTO,
    ];
    error.raw_os_error().is_some_and(|code| unreachable.iter().any(|errno| errno.raw_os_error() == code))
}

/// Opens a socket to `backend`, and says to which of its addresses: the first from `first` on that there is a way to.
///
/// # Errors
/// [`Cause::ConnectFailed`], or what of ours is short.
pub fn open(backend: &Backend, first: usize) -> Result<(UdpSocket, usize), Cause> {
    let mut cause = Cause::ConnectFailed;
    let endpoints = backend.endpoints();
    for number in (0..endpoints.len()).map(|step| (first + step) % endpoints.len()) {
        let endpoint @ Endpoint::Tcp(address) = &endpoints[number] else { continue };
        match to_peer(*address, &backend.dialing) {
            Ok(socket) => return Ok((socket, number)),
            Err(error) => {
                crate::events::connect_failed(&backend.identity, endpoint, &error);
                // No port is left: the kernel says so in either way.
                let is_port = connect::is_of_destination(&error)
                    || error.raw_os_error() == Some(Errno::AGAIN.raw_os_error());
                cause = match cause {
                    _ if is_port => Cause::NoLocalPort,
                    _ if connect::is_shortage(&error) => Cause::LocalShortage,
                    cause => cause,
                };
            }
        }
    }
    Err(cause)
}

impl Leg {
    /// Sends a row.
    ///
    /// # Errors
    /// Why it was not sent.
    #[inline]
    pub fn send(&mut self, row: &DatagramRow<'_>, kernel: &UdpSocketState) -> Result<(), SendFailure> {
        let mut sent = self.send_once(row, kernel);
        if sent.as_ref().is_err_and(|error| error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error())) {
            // Perhaps it is about something that was sent before: that is told once.
            sent = self.send_once(row, kernel);
        }
        self.sent = self.sent.saturating_add(1);
        sent.map_err(SendFailure::of)
    }

    #[inline]
    fn send_once(&self, row: &DatagramRow<'_>, kernel: &UdpSocketState) -> io::Result<()> {
        if row.count() == 1 { self.socket.send(row.bytes).map(drop) } else { self.send_row(row, kernel) }
    }

    #[cold]
    fn send_row(&self, row: &DatagramRow<'_>, kernel: &UdpSocketState) -> io::Result<()> {
        let transmit = Transmit {
            destination: self.socket.peer_addr()?,
            ecn: None,
            contents: row.bytes,
            segment_size: Some(row.length),
            src_ip: None,
        };
        kernel.try_send(UdpSockRef::from(&self.socket), &transmit).or_else(|error| {
            if is_unreachable(&error) {
                return Err(error);
            }
            row.bytes.chunks(row.length).try_for_each(|bytes| self.socket.send(bytes).map(drop))
        })
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// The backend that it leads to; `None`: it lingers.
    #[must_use]
    #[inline]
    pub fn lease(&self) -> Option<&Lease> {
        if let LegDuty::Serves { lease, .. } = &self.duty { Some(lease) } else { None }
    }

    /// Notes that something has come back. From the second exchange on it is worth while to have the kernel join rows.
    #[inline]
    pub fn note_answered(&mut self) {
        if self.is_answered && self.sent >= 2 && !self.joins && !self.is_shared {
            join_rows(&self.socket);
            self.joins = true;
        }
        self.is_answered = true;
    }

    /// Another descriptor of it, and how it stands, for another process.
    ///
    /// # Errors
    /// What the system reports.
    pub fn share(&mut self) -> io::Result<(OwnedFd, LegState)> {
        let copy = self.socket.try_clone()?.into();
        self.is_shared = true;
        Ok((copy, LegState { is_answered: self.is_answered, joins: self.joins, sent: self.sent }))
    }

    /// Whether another process has it, too.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// It was another process's, and stood so there.
    pub fn go_on(&mut self, state: LegState) {
        (self.is_answered, self.joins, self.sent) = (state.is_answered, state.joins, state.sent);
        (self.is_shared, self.is_told) = (true, state.is_answered);
    }

    /// Whether the kernel joins rows for it: many may come at once.
    #[must_use]
    #[inline]
    pub fn joins(&self) -> bool {
        self.joins
    }

    /// Whether something was sent on it again after so long without a word from anybody: true once.
    #[inline]
    pub fn is_alone_with(&mut self, now: Tick, span: Duration) -> bool {
        let is_news = !self.is_told && !self.is_answered && self.sent >= 2 && now.since(self.begun) >= span;
        self.is_told |= is_news;
        is_news
    }

    /// Whether the kernel was told that the backend can't be reached. It forgets what it was told of the way (sizes, for the most part).
    #[must_use]
    pub fn is_refused(&self, kernel: &UdpSocketState) -> bool {
        let mut is_refused = false;
        while let Ok(Some(error)) = kernel.recv_transport_error(UdpSockRef::from(&self.socket)) {
            is_refused |= is_unreachable(&io::Error::from_raw_os_error(error.raw_errno));
        }
        // The error itself is kept beside what is said about it.
        match self.socket.take_error() {
            Ok(Some(error)) => is_refused || is_unreachable(&error),
            Ok(None) | Err(_) => is_refused,
        }
    }
}

/// Which leg something was told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegToken {
    /// Its place.
    pub place: usize,
    number: u32,
}

/// The legs of one socket's flows.
#[derive(Default)]
pub struct Legs {
    all: Slab<Leg>,
    /// By which the kernel tells of them; not there before the first, so that a listener can't fail for want of a descriptor.
    watch: Option<AsyncFd<OwnedFd>>,
    /// Whoever waits for the first.
    waker: Cell<Option<Waker>>,
    next: u32,
    /// Something is left to be read on a leg that was told of.
    rest: Cell<bool>,
}

impl Legs {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Keeps a socket.
    ///
    /// # Errors
    /// The kernel does not watch it: something of ours is short.
    pub fn keep(
        &mut self,
        socket: UdpSocket,
        number_of_address: usize,
        duty: LegDuty,
        now: Tick,
    ) -> Result<usize, Cause> {
        let watching = match &mut self.watch {
            Some(watching) => watching,
            none @ None => {
                let made = epoll::create(CreateFlags::CLOEXEC).map_err(|_| Cause::LocalShortage)?;
                let watching = watch(made, Interest::READABLE).map_err(|_| Cause::LocalShortage)?;
                // Whoever was told that there is nothing to wait for comes again.
                self.waker.take().into_iter().for_each(Waker::wake);
                none.insert(watching)
            }
        };
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let place = self.all.vacant_key();
        let token = u64::from(number) << 32 | place as u64 & u64::from(u32::MAX);
        epoll::add(watching.get_ref(), socket.as_fd(), EventData::new_u64(token), EventFlags::IN)
            .map_err(|_| Cause::LocalShortage)?;
        Ok(self.all.insert(Leg {
            socket,
            number,
            duty,
            is_answered: false,
            number_of_address,
            begun: now,
            sent: 0,
            joins: false,
            is_shared: false,
            is_told: false,
        }))
    }

    /// The leg at a place.
    #[must_use]
    #[inline]
    pub fn get(&self, place: usize) -> Option<&Leg> {
        self.all.get(place)
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, place: usize) -> Option<&mut Leg> {
        self.all.get_mut(place)
    }

    /// The leg that a token is about, if it is still there.
    #[inline]
    pub fn told(&mut self, token: LegToken) -> Option<&mut Leg> {
        self.all.get_mut(token.place).filter(|leg| leg.number == token.number)
    }

    /// What is told of the leg at a place.
    #[must_use]
    pub fn token(&self, place: usize) -> Option<LegToken> {
        self.all.get(place).map(|leg| LegToken { place, number: leg.number })
    }

    /// Takes a leg out.
    pub fn remove(&mut self, place: usize) -> Option<Leg> {
        self.all.try_remove(place)
    }

    /// Not all was read of what a leg has: it is told of again.
    pub fn leave_rest(&self) {
        self.rest.set(true);
    }

    /// Which legs have something to read, or an error to tell (`true`), in `into`. Whoever is told of a leg reads all that there is, or says that he
    /// does not ([`Legs::leave_rest`]): of what was there before, nobody is told twice.
    pub fn poll_told(&self, cx: &mut Context<'_>, into: &mut Vec<(LegToken, bool)>) -> Poll<io::Result<()>> {
        into.clear();
        let Some(watching) = &self.watch else {
            self.waker.set(Some(cx.waker().clone()));
            return Poll::Pending;
        };
        loop {
            let ready = match watching.poll_read_ready(cx) {
                Poll::Ready(ready) => Some(ready?),
                Poll::Pending if self.rest.take() => None,
                Poll::Pending => return Poll::Pending,
            };
            self.rest.set(false);
            let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; EVENTS];
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            let count = match epoll::wait(watching.get_ref(), &mut events[..], Some(&at_once)) {
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                Err(error) => return Poll::Ready(Err(error.into())),
            };
            if count < EVENTS
                && let Some(mut ready) = ready
            {
                // There are no more. What comes from now on makes the event loop say so, also on those.
                ready.clear_ready();
            }
            if count == 0 {
                continue;
            }
            into.extend(events[..count].iter().map(|event| {
                let (data, flags) = (event.data.u64(), event.flags);
                let token =
                    LegToken { place: (data & u64::from(u32::MAX)) as usize, number: (data >> 32) as u32 };
                (token, flags.contains(EventFlags::ERR))
            }));
            return Poll::Ready(Ok(()));
        }
    }
}

/// When a leg that lingers is closed.
#[derive(Clone, Copy, Debug)]
pub struct LastWord {
    /// Then.
    pub due: Tick,
    /// The leg.
    pub leg: LegToken,
}
