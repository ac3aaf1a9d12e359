//! A worker whose vital tasks die, each in its own way.

use std::cell::RefCell;
use std::future::pending;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::task::{Context, Wake, Waker};

use super::handover::NewConnection;
use super::*;
use crate::message::{ListenerId, Peer};
use crate::net::socket::{self, Accepted};
use crate::proxy::fixtures::context;
use crate::proxy::request_queue::{LastInLine, RequestTicket};

/// Far more than anything here takes.
const LONG: Duration = Duration::from_secs(20);

/// Whoever wakes it panics.
struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic!("a bomb");
    }
}

/// No change is coming.
fn unchanged() -> Changes {
    changes().1
}

/// How a worker has ended that was sabotaged while it served.
fn ended(
    ctx: &Rc<WorkerCtx>,
    sockets: Vec<Socket>,
    ends: Ends,
    shutdown: &Shutdown,
    sabotage: impl Future<Output = ()>,
) -> io::Result<u64> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    runtime.expect("a runtime").block_on(async {
        let serving = serve(ctx, sockets, ConnectionLimits::new(10), ends, unchanged(), shutdown, LONG);
        let worker = tokio::time::timeout(LONG, serving);
        tokio::select! {
            biased;
            outcome = worker => outcome.expect("it serves on"),
            () = async { sabotage.await; pending().await } => Ok(0),
        }
    })
}

/// The same for one that nobody drains, as a text.
fn fault(
    ctx: &Rc<WorkerCtx>,
    sockets: Vec<Socket>,
    ends: Ends,
    sabotage: impl Future<Output = ()>,
) -> String {
    let outcome = ended(ctx, sockets, ends, &Shutdown::new(), sabotage);
    outcome.expect_err("nobody told it to end").to_string()
}

/// The ends of a single worker.
fn alone(ctx: &WorkerCtx) -> Ends {
    link(&[Arc::clone(&ctx.cells)]).remove(0)
}

fn listening(path: &Path) -> Vec<Socket> {
    vec![Socket {
        id: SocketId(0),
        listener: ListenerId(0),
        kind: SocketKind::Unix(socket::listen_unix(path).expect("listening")),
        is_lent: false,
    }]
}

#[test]
fn a_worker_ends_with_its_ticker() {
    let ctx = context();
    let deadline = ctx.ticker.deadline();
    deadline.set(Duration::ZERO);
    let bomb = Waker::from(Arc::new(Bomb));
    assert!(deadline.poll(&mut Context::from_waker(&bomb)).is_pending());
    assert_eq!(
        fault(&ctx, Vec::new(), alone(&ctx), async {}),
        "a worker can't go on: its ticker has panicked"
    );
}

#[test]
fn a_worker_ends_with_its_request_queue() {
    let ctx = context();
    let bomb = Waker::from(Arc::new(Bomb));
    let mut tickets: Vec<RequestTicket> = (0..1000).map(|_| RequestTicket::default()).collect();
    // So many at once that some have to wait for the next round.
    for ticket in &mut tickets {
        let _ =
            ctx.request_queue.poll_pass(&Context::from_waker(&bomb), ticket, &LastInLine::default(), || 1000);
    }
    assert_eq!(
        fault(&ctx, Vec::new(), alone(&ctx), async {}),
        "a worker can't go on: its request queue has panicked"
    );
}

#[test]
fn a_worker_ends_with_its_housekeeping() {
    let ctx = context();
    // It wants to hand over lines, and can't.
    let held = ctx.log.borrow_mut();
    let said = fault(&ctx, Vec::new(), alone(&ctx), async {});
    drop(held);
    assert_eq!(said, "a worker can't go on: its housekeeping has panicked");
}

#[test]
fn a_worker_ends_with_an_accept_loop() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("web.sock");
    let ctx = context();
    let sockets = listening(&path);
    let client = RefCell::new(None);
    let sabotage = async {
        ctx.break_view();
        *client.borrow_mut() = UnixStream::connect(&path).ok();
    };
    let said = fault(&ctx, sockets, alone(&ctx), sabotage);
    assert_eq!(said, "a worker can't go on: its accept loop has panicked");
}

#[test]
fn a_worker_ends_with_its_mailbox() {
    let ctx = context();
    let mut ends = link(&[Arc::clone(&ctx.cells), Arc::default()]);
    let other = ends.remove(1);
    let (near, _far) = UnixStream::pair().expect("a pair of sockets");
    let listener = Arc::clone(&*ctx.here(ListenerId(0)).expect("there is one"));
    let connection = NewConnection { socket: Accepted::Unix(near), peer: Peer::default(), listener };
    ctx.break_view();
    assert!(other.neighbours.relieve(connection, 100, 100).is_none(), "it is handed over");
    let said = fault(&ctx, Vec::new(), ends.remove(0), async {});
    assert_eq!(said, "a worker can't go on: its mailbox has panicked");
}

#[test]
fn a_worker_whose_ticker_dies_in_the_drain_does_not_pass_for_finished() {
    let ctx = context();
    let shutdown = Shutdown::new();
    // Somebody who hands over goes on, so that the drain is not done.
    let mut ends = link(&[Arc::clone(&ctx.cells), Arc::default()]);
    let (_other, own) = (ends.remove(1), ends.remove(0));
    let deadline = ctx.ticker.deadline();
    let sabotage = async {
        deadline.set(Duration::ZERO);
        let bomb = Waker::from(Arc::new(Bomb));
        assert!(deadline.poll(&mut Context::from_waker(&bomb)).is_pending());
    };
    shutdown.drain.cancel();
    let outcome = ended(&ctx, Vec::new(), own, &shutdown, sabotage);
    assert_eq!(outcome.expect_err("it failed").to_string(), "a worker can't go on: its ticker has panicked");
}

#[test]
fn a_worker_that_drains_ends_well_with_all_that_it_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("web.sock");
    let ctx = context();
    let (sockets, shutdown) = (listening(&path), Shutdown::new());
    let _client = UnixStream::connect(&path).expect("connects");
    let sabotage = async {
        while ctx.cells.connections.accepted.value() == 0 {
            tokio::task::yield_now().await;
        }
        shutdown.drain.cancel();
    };
    ended(&ctx, sockets, alone(&ctx), &shutdown, sabotage).expect("nothing went wrong");
}
