//! The accept loop: accept, let in, forget. It never dies and does nothing slow.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::events;
use crate::message::{ClientAddress, ListenerId, Peer};
use crate::net::datagrams::watch;
use crate::net::socket::{self, Accepted};
use crate::net::{Deadline, now};
use crate::proxy::udp::relay::LeftFlow;
use crate::proxy::{Here, WorkerCtx};

use super::admission::Admitter;
use super::handover::{Neighbours, NewConnection};

/// After a failed accept (out of descriptors, most likely) this long passes before the next.
const BACK_OFF: Duration = Duration::from_millis(100);
/// So many connections are accepted before those that are there get their turn.
const BATCH: u32 = 32;
/// Handshakes that have begun may end within this time once no new ones are answered, and the event loop learns
/// of what is queued.
const LAST_HANDSHAKES: Duration = Duration::from_millis(20);

/// A listening socket's number, the same for the sockets of all workers at one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SocketId(pub u32);

/// A listening socket and whose it is.
#[derive(Debug)]
pub struct Socket {
    /// Its number.
    pub id: SocketId,
    /// The listener whose connections it accepts at first.
    pub listener: ListenerId,
    /// The socket, non-blocking.
    pub kind: SocketKind,
    /// Whoever supervises the process keeps it when that ends: what waits there is for the next one.
    pub is_lent: bool,
}

/// Another descriptor of a listening socket, for another process.
#[derive(Debug)]
pub struct SharedSocket {
    /// Its number.
    pub id: SocketId,
    /// The descriptor.
    pub descriptor: OwnedFd,
    /// What is under way there by UDP.
    pub flows: Vec<LeftFlow>,
    /// See [`Socket::is_lent`].
    pub is_lent: bool,
}

/// What a worker tells an accept loop, or that of a socket for datagrams, while that runs. Whoever is told wakes it by all deadlines.
pub(super) struct Orders {
    /// Whose connections it accepts, under the config in force.
    pub(super) here: RefCell<Here>,
    /// It accepts what is queued, and no more.
    pub(super) ends: Cell<bool>,
    /// Another process has the socket, too, so that nobody is to be turned away there.
    pub(super) is_left: Cell<bool>,
    /// See [`Socket::is_lent`].
    pub(super) is_lent: bool,
}

impl Orders {
    /// Of a socket of `listener`.
    ///
    /// # Errors
    /// There is no such listener.
    pub(super) fn new(ctx: &WorkerCtx, listener: ListenerId, is_lent: bool) -> io::Result<Rc<Orders>> {
        let here = RefCell::new(ctx.here(listener).ok_or(io::ErrorKind::NotFound)?);
        Ok(Rc::new(Orders { here, ends: Cell::new(false), is_left: Cell::new(false), is_lent }))
    }
}

/// What kind of socket.
#[derive(Debug)]
pub enum SocketKind {
    /// TCP.
    Tcp(std::net::TcpListener),
    /// Unix; all workers accept from the same one.
    Unix(std::os::unix::net::UnixListener),
    /// UDP, with the flows that another process has left there.
    Udp(std::net::UdpSocket, Vec<LeftFlow>),
}

/// A client's address, if its kind of socket has one.
type Address = Option<(IpAddr, u16)>;

/// A socket that connections come in by.
pub(super) enum Acceptor {
    Tcp(AsyncFd<std::net::TcpListener>),
    Unix(AsyncFd<std::os::unix::net::UnixListener>),
}

impl Acceptor {
    /// Has the event loop watch a listening socket of TCP.
    pub(super) fn tcp(socket: std::net::TcpListener) -> io::Result<Acceptor> {
        Ok(Acceptor::Tcp(watch(socket, Interest::READABLE)?))
    }

    /// The same of a unix socket.
    pub(super) fn unix(socket: std::os::unix::net::UnixListener) -> io::Result<Acceptor> {
        Ok(Acceptor::Unix(watch(socket, Interest::READABLE)?))
    }

    /// Another descriptor of the socket.
    ///
    /// # Errors
    /// What the system reports.
    pub(super) fn copy(&self) -> io::Result<OwnedFd> {
        match self {
            Acceptor::Tcp(tcp) => tcp.get_ref().try_clone().map(OwnedFd::from),
            Acceptor::Unix(unix) => unix.get_ref().try_clone().map(OwnedFd::from),
        }
    }

    /// Accepts one. `many`: see [`poll_accept`].
    fn poll(&self, cx: &mut Context<'_>, many: &Cell<bool>) -> Poll<io::Result<(Accepted, Address)>> {
        match self {
            Acceptor::Tcp(tcp) => poll_accept(tcp, cx, many, socket::accept_tcp),
            Acceptor::Unix(unix) => {
                poll_accept(unix, cx, many, |unix| Ok((socket::accept_unix(unix)?, None)))
            }
        }
    }
}

/// Accepts one. An accept in vain makes a socket and a file and throws them away, which costs several times as much as to
/// ask whether somebody waits. Most often nobody else has come, so the first of a row asks; when more are there (`many`),
/// the others are accepted until one is in vain.
fn poll_accept<L: AsRawFd + AsFd, T>(
    listener: &AsyncFd<L>,
    cx: &mut Context<'_>,
    many: &Cell<bool>,
    accept: impl Fn(&L) -> io::Result<T>,
) -> Poll<io::Result<T>> {
    loop {
        let mut ready = ready!(listener.poll_read_ready(cx))?;
        // An error of this kind: there was nothing, and the event loop will say when there is.
        if let Ok(outcome) = ready.try_io(|listener| accept(listener.get_ref())) {
            if outcome.is_ok() && !many.get() {
                many.set(socket::is_acceptable(listener.get_ref()));
                if !many.get() {
                    ready.clear_ready();
                }
            }
            return Poll::Ready(outcome);
        }
        many.set(false);
    }
}

/// The accept loop of one socket.
pub(super) struct Loop {
    ctx: Rc<WorkerCtx>,
    admitter: Rc<Admitter>,
    neighbours: Neighbours,
    orders: Rc<Orders>,
    acceptor: Rc<Acceptor>,
    /// Several clients wait.
    many: Cell<bool>,
    deadline: Deadline,
}

impl Loop {
    pub(super) fn new(
        ctx: Rc<WorkerCtx>,
        admitter: Rc<Admitter>,
        neighbours: Neighbours,
        acceptor: Rc<Acceptor>,
        orders: Rc<Orders>,
    ) -> Loop {
        let deadline = ctx.ticker.deadline();
        Loop { ctx, admitter, neighbours, orders, acceptor, many: Cell::new(false), deadline }
    }

    fn ends(&self) -> bool {
        self.ctx.is_draining() || self.orders.ends.get()
    }

    /// Accepts until it is told to end or the worker drains, then what is queued, then closes the socket. True: it was told to.
    pub(super) async fn run(mut self) -> bool {
        let mut batch = 0;
        while !self.ends() {
            let accepted = poll_fn(|cx| {
                if let Poll::Ready(accepted) = self.acceptor.poll(cx, &self.many) {
                    return Poll::Ready(Some(accepted));
                }
                batch = 0;
                // Never due; a drain wakes whoever waits on a deadline.
                let _ = self.deadline.poll(cx);
                if self.ends() { Poll::Ready(None) } else { Poll::Pending }
            })
            .await;
            match accepted.map(|accepted| accepted.and_then(|(socket, client)| self.let_in(socket, client))) {
                Some(Ok(())) => {}
                Some(Err(error)) if is_of_one_connection(&error) => self.ctx.cells.accept_errors.increment(),
                Some(Err(error)) => self.back_off(&error).await,
                None => {}
            }
            batch += 1;
            if batch == BATCH {
                batch = 0;
                tokio::task::yield_now().await;
            }
        }
        // What is queued in a socket that another process has is not lost.
        if !self.orders.is_lent && (!self.orders.is_left.get() || self.orders.ends.get()) {
            self.accept_the_rest().await;
        }
        self.orders.ends.get()
    }

    async fn accept_the_rest(&mut self) {
        if let Acceptor::Tcp(tcp) = &*self.acceptor
            && let Err(error) = socket::refuse_handshakes(tcp.get_ref())
        {
            events::handshakes_not_refused(&error);
        }
        self.deadline.set(LAST_HANDSHAKES);
        loop {
            let accepted = poll_fn(|cx| match self.acceptor.poll(cx, &self.many) {
                Poll::Ready(accepted) => Poll::Ready(Some(accepted)),
                Poll::Pending => self.deadline.poll(cx).map(|()| None),
            })
            .await;
            match accepted.map(|accepted| accepted.and_then(|(socket, client)| self.let_in(socket, client))) {
                Some(Ok(())) => {}
                Some(Err(error)) if is_of_one_connection(&error) => self.ctx.cells.accept_errors.increment(),
                Some(Err(_)) | None => return,
            }
        }
    }

    /// Serves a connection here, or hands it to a worker that has fewer.
    fn let_in(&self, socket: Accepted, client: Address) -> io::Result<()> {
        let client = client.map(|(ip, port)| ClientAddress::new(ip, port));
        let listener = Arc::clone(&**self.orders.here.borrow());
        let peer = Peer { client, listener: listener.id, accepted: now(), ..Peer::default() };
        let connection = NewConnection { socket, peer, listener };
        let (own, total) = self.admitter.loads();
        // Where nobody has room nobody is better off, and who drains ends in his own time.
        let held = self.ends() || !self.admitter.has_room();
        let kept = if held { Some(connection) } else { self.neighbours.relieve(connection, own, total) };
        kept.map_or(Ok(()), |connection| self.admitter.admit(connection))
    }

    async fn back_off(&mut self, error: &io::Error) {
        self.ctx.cells.accept_errors.increment();
        // Told now and then, for all workers together.
        self.ctx.cells.accept_shortages.increment();
        self.ctx.cells.accept_error.store(error.raw_os_error().unwrap_or_default(), Ordering::Relaxed);
        // Idle upstream connections and idle pipes hold descriptors that clients could use.
        self.ctx.spare_descriptors();
        tokio::time::sleep(BACK_OFF).await;
    }
}

/// Errors that a connection brought with it: it left before we took it. The next accept is not concerned.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests {
    use tokio::task::spawn_local;
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::proxy::fixtures::context;
    use crate::snapshot::ConnectionLimits;
    use crate::worker::handover::link;

    /// Far more than an accept loop needs to end.
    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn a_draining_worker_accepts_what_its_event_loop_has_not_seen_yet() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build_local(tokio::runtime::LocalOptions::default())
            .expect("a runtime");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("web.sock");
        runtime.block_on(async {
            let ctx = context();
            let ticker = Rc::clone(&ctx.ticker);
            spawn_local(async move { ticker.run().await });
            let acceptor = Acceptor::unix(socket::listen_unix(&path).expect("listening"));
            let orders = Orders::new(&ctx, ListenerId(0), false).expect("a listener");
            let admitter = Admitter::new(Rc::clone(&ctx), ConnectionLimits::new(10), TaskTracker::new());
            let mut ends = link(&[Arc::clone(&ctx.cells)]);
            let neighbours = ends.remove(0).neighbours;
            let acceptor = Rc::new(acceptor.expect("registered"));
            let accepting =
                spawn_local(Loop::new(Rc::clone(&ctx), admitter, neighbours, acceptor, orders).run());
            // The loop waits for its first connection.
            tokio::task::yield_now().await;
            // From here to the drain the event loop gets no turn.
            let _client = std::os::unix::net::UnixStream::connect(&path).expect("connects");
            ctx.drain(false, Duration::from_secs(1));
            tokio::time::timeout(PATIENCE, accepting).await.expect("the loop ends").expect("no panic");
            assert_eq!(ctx.cells.connections.accepted.value(), 1);
        });
    }

    #[test]
    fn only_a_shortage_makes_the_next_accept_wait() {
        use rustix::io::Errno;
        let one = |errno: Errno| is_of_one_connection(&io::Error::from_raw_os_error(errno.raw_os_error()));
        assert!(one(Errno::CONNABORTED) && one(Errno::INTR));
        assert!(!one(Errno::MFILE) && !one(Errno::NOBUFS) && !one(Errno::INVAL));
    }
}
