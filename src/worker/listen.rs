//! The accept loop: accept, take a place, spawn, forget. It never dies and does nothing slow.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::task::spawn_local;
use tokio_util::task::TaskTracker;

use crate::config::model::Protocol;
use crate::message::{Cause, Record};
use crate::net::{Deadline, Stream, now, socket};
use crate::proxy::{WorkerCtx, http};
use crate::tick::Tick;

use super::connection;
use super::room::{Place, Room};

/// After a failed accept (out of descriptors, most likely) this long passes before the next.
const BACK_OFF: Duration = Duration::from_millis(100);
/// Failed accepts are logged at most this often.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// Connections per worker that are told at leisure that there is no room; more are told in passing.
const TURNED_AWAY: usize = 32;
/// Handshakes that have begun may end within this time once no new ones are answered, and the event loop learns
/// of what is queued.
const LAST_HANDSHAKES: Duration = Duration::from_millis(20);

/// A listening socket and whose it is.
pub struct Socket {
    /// Index of the listener in the snapshot.
    pub listener: usize,
    /// The socket, non-blocking.
    pub kind: SocketKind,
}

/// What kind of socket.
pub enum SocketKind {
    /// TCP.
    Tcp(std::net::TcpListener),
    /// Unix; all workers accept from the same one.
    Unix(std::os::unix::net::UnixListener),
}

enum Acceptor {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Acceptor {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Stream, Record)>> {
        let mut record = Record::default();
        let stream = match self {
            Acceptor::Tcp(tcp) => {
                let (stream, peer) = ready!(tcp.poll_accept(cx))?;
                record.client = Some((peer.ip().to_canonical(), peer.port()));
                Stream::Tcp(stream)
            }
            Acceptor::Unix(unix) => Stream::Unix(ready!(unix.poll_accept(cx))?.0),
        };
        record.accepted = now();
        Poll::Ready(Ok((stream, record)))
    }
}

/// The accept loop of one socket.
pub(super) struct Loop {
    ctx: Rc<WorkerCtx>,
    room: Arc<Room>,
    tracker: TaskTracker,
    listener: usize,
    acceptor: Acceptor,
    deadline: Deadline,
    turned_away: Rc<Cell<usize>>,
    logged: Option<Tick>,
}

impl Loop {
    pub(super) fn new(
        ctx: Rc<WorkerCtx>,
        room: Arc<Room>,
        tracker: TaskTracker,
        socket: Socket,
    ) -> io::Result<Loop> {
        let acceptor = match socket.kind {
            SocketKind::Tcp(tcp) => Acceptor::Tcp(TcpListener::from_std(tcp)?),
            SocketKind::Unix(unix) => Acceptor::Unix(UnixListener::from_std(unix)?),
        };
        let deadline = ctx.ticker.deadline();
        let turned_away = Rc::default();
        Ok(Loop {
            ctx,
            room,
            tracker,
            listener: socket.listener,
            acceptor,
            deadline,
            turned_away,
            logged: None,
        })
    }

    /// Accepts until the worker drains, then what is queued, then closes the socket.
    pub(super) async fn run(mut self) {
        while !self.ctx.is_draining() {
            let accepted = poll_fn(|cx| {
                if let Poll::Ready(accepted) = self.acceptor.poll(cx) {
                    return Poll::Ready(Some(accepted));
                }
                // Never due; a drain wakes whoever waits on a deadline.
                let _ = self.deadline.poll(cx);
                if self.ctx.is_draining() { Poll::Ready(None) } else { Poll::Pending }
            })
            .await;
            match accepted {
                Some(Ok((stream, record))) => self.admit(stream, record),
                Some(Err(error)) if is_of_one_connection(&error) => self.ctx.cells.accept_errors.increment(),
                Some(Err(error)) => self.back_off(&error).await,
                None => {}
            }
        }
        self.accept_the_rest().await;
    }

    async fn accept_the_rest(&mut self) {
        if let Acceptor::Tcp(tcp) = &self.acceptor
            && let Err(error) = socket::refuse_handshakes(tcp)
        {
            tracing::debug!(%error, "handshakes can't be refused; one may be reset at the close");
        }
        self.deadline.set(LAST_HANDSHAKES);
        loop {
            let accepted = poll_fn(|cx| match self.acceptor.poll(cx) {
                Poll::Ready(accepted) => Poll::Ready(Some(accepted)),
                Poll::Pending => self.deadline.poll(cx).map(|()| None),
            })
            .await;
            match accepted {
                Some(Ok((stream, record))) => self.admit(stream, record),
                Some(Err(error)) if is_of_one_connection(&error) => self.ctx.cells.accept_errors.increment(),
                Some(Err(_)) | None => return,
            }
        }
    }

    fn admit(&self, stream: Stream, record: Record) {
        let place = Place::take(&self.room, &self.ctx);
        let ctx = Rc::clone(&self.ctx);
        let index = self.listener;
        if place.is_granted() {
            spawn_local(self.tracker.track_future(async move {
                let _place = place;
                let listener = &ctx.snapshot.listeners[index];
                connection::serve(Rc::clone(&ctx), listener, stream, record).await;
            }));
            return;
        }
        let listener = &ctx.snapshot.listeners[index];
        if listener.config.protocol != Protocol::Http || listener.tls.is_some() {
            // Nothing can be said before a handshake, and that costs more than what we are short of.
        } else if self.turned_away.get() >= TURNED_AWAY {
            http::connection::dismiss(&ctx, listener, &stream, record);
        } else {
            let count = Rc::clone(&self.turned_away);
            count.set(count.get() + 1);
            spawn_local(self.tracker.track_future(async move {
                let place = place;
                let cause = Cause::TooManyConnections;
                let listener = &ctx.snapshot.listeners[index];
                http::connection::turn_away(Rc::clone(&ctx), listener, stream, record, cause).await;
                drop(place);
                count.set(count.get() - 1);
            }));
        }
    }

    async fn back_off(&mut self, error: &io::Error) {
        self.ctx.cells.accept_errors.increment();
        let now = now();
        if self.logged.is_none_or(|logged| now.since(logged) >= LOG_EVERY) {
            self.logged = Some(now);
            let listener = &self.ctx.snapshot.listeners[self.listener].config.name;
            tracing::warn!(listener, %error, "accept failed; new connections wait");
        }
        // Idle upstream connections and spare pipes hold descriptors that clients could use.
        self.ctx.pool.clear(&self.ctx.cells);
        self.ctx.buffers.pipes.clear();
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
    use super::*;
    use crate::worker::fixtures::context;

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
            let kind = SocketKind::Unix(socket::listen_unix(&path).expect("listening"));
            let socket = Socket { listener: 0, kind };
            let accepting = Loop::new(Rc::clone(&ctx), Room::new(10), TaskTracker::new(), socket);
            let accepting = spawn_local(accepting.expect("registered").run());
            // The loop waits for its first connection.
            tokio::task::yield_now().await;
            // From here to the drain the event loop gets no turn.
            let _client = std::os::unix::net::UnixStream::connect(&path).expect("connects");
            ctx.drain();
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
