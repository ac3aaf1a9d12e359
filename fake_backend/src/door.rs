//! The listening socket of one fake and its accept loop: opened, shut (connects are refused), opened again on
//! the same port, and the end of all connections. Driven by `Running`.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::behaviour::Ending;
use crate::gate::{Gate, Leaf};
use crate::socket::{Listener, Place, Socket};
use crate::state::{Protocol, State, lock};
use crate::stream::Stream;
use crate::tls::{self, Met};
use crate::wire::Wire;
use crate::{http, tcp, udp};

/// The pause after a failed accept: descriptors are short, or the network is.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A fake's way in.
#[derive(Debug)]
pub(crate) struct Door {
    /// Where it listens, with the port it got.
    pub(crate) place: Place,
    pub(crate) state: Arc<State>,
    runtime: Handle,
    gate: Arc<Gate>,
}

impl Door {
    /// Binds and, unless `shut`, accepts, with all tasks on `runtime`.
    pub(crate) fn open(
        place: &Place,
        state: Arc<State>,
        runtime: Handle,
        shut: bool,
    ) -> io::Result<Arc<Self>> {
        let _context = runtime.enter();
        let (listener, place) = Listener::open(place)?;
        let leaf = Leaf {
            listener: Arc::new(listener),
            accepting: CancellationToken::new(),
            connections: CancellationToken::new(),
        };
        let gate = Arc::new(Gate { state: state.clone(), leaf: Mutex::new(leaf) });
        let door = Arc::new(Self { place, state, runtime: runtime.clone(), gate });
        if shut {
            door.stop_accepting();
        } else {
            door.accept(&lock(&door.gate.leaf));
        }
        Ok(door)
    }

    /// See [`Gate::stop_accepting`].
    pub(crate) fn stop_accepting(&self) {
        self.gate.stop_accepting();
    }

    /// See [`Gate::stop`].
    pub(crate) fn stop(&self) {
        self.gate.stop();
    }

    /// Listens again where it did. Nothing happens when it never stopped.
    pub(crate) fn restart(self: &Arc<Self>) -> io::Result<()> {
        let mut leaf = lock(&self.gate.leaf);
        if !leaf.accepting.is_cancelled() {
            return Ok(());
        }
        let _context = self.runtime.enter();
        // The old socket holds the port until the new one has it.
        leaf.listener = Arc::new(Listener::open(&self.place)?.0);
        leaf.accepting = CancellationToken::new();
        if leaf.connections.is_cancelled() {
            leaf.connections = CancellationToken::new();
        }
        self.accept(&leaf);
        Ok(())
    }

    fn accept(&self, leaf: &Leaf) {
        let (listener, connections) = (leaf.listener.clone(), leaf.connections.clone());
        let accepting = leaf.accepting.clone();
        if let Some(socket) = listener.datagrams() {
            self.runtime.spawn(udp::serve(socket, self.state.clone(), accepting));
            return;
        }
        // Weak: a door that is gone needs no accept loop, and the loop must not keep it.
        let gate = Arc::downgrade(&self.gate);
        let state = self.state.clone();
        self.runtime.spawn(async move {
            loop {
                let accepted = tokio::select! {
                    biased;
                    () = accepting.cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                match accepted {
                    Ok(socket) => {
                        let number = state.count(|counters| &counters.connections);
                        let open = Open(state.clone());
                        tokio::spawn(serve(socket, number, open, gate.clone(), connections.clone()));
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                }
            }
        });
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop();
        if let Place::Unix(path) = &self.place {
            // Someone may have removed it already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// One open connection, counted as closed on every way out.
#[derive(Debug)]
struct Open(Arc<State>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.count(|counters| &counters.closed);
    }
}

async fn serve(socket: Socket, number: u64, open: Open, gate: std::sync::Weak<Gate>, cut: CancellationToken) {
    let state = open.0.clone();
    // Declared first, so dropped last: the socket is closed before the connection counts as closed.
    let _open = open;
    let conversation = async move {
        // Boxed, so that a connection does not carry the room of its handshake for good.
        let (stream, facts, failed) = match Box::pin(tls::meet(socket, &state, number)).await {
            Met::Clear(socket) => (Stream::Clear(socket), None, false),
            Met::Secure(stream, facts) => (Stream::Secure(stream), Some(facts), false),
            Met::Failed(socket) => (Stream::Clear(socket), None, true),
        };
        let mut wire = Wire::new(stream, state.clone(), number, facts);
        let ending = match state.protocol {
            _ if failed => Ending::Close,
            Protocol::Http => http::serve(&mut wire, &state, &gate).await,
            // Of UDP there are no connections.
            Protocol::Tcp | Protocol::Udp => tcp::serve(&mut wire, &state).await,
        };
        wire.end(ending).await;
    };
    cut.run_until_cancelled(conversation).await;
}
