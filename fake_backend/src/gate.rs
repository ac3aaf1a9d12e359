//! How a fake's way in is shut: by `Running`, and by `control` at a request's word.

use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

use crate::socket::Listener;
use crate::state::{State, lock};

/// What changes when the door opens and shuts.
#[derive(Debug)]
pub(crate) struct Leaf {
    /// Kept while shut: it holds the port.
    pub(crate) listener: Arc<Listener>,
    /// Ends the accept loop.
    pub(crate) accepting: CancellationToken,
    /// Ends every connection.
    pub(crate) connections: CancellationToken,
}

/// What opens and shuts. It is gone with its door.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) state: Arc<State>,
    pub(crate) leaf: Mutex<Leaf>,
}

impl Gate {
    /// Refuses new connections; those open go on.
    pub(crate) fn stop_accepting(&self) {
        let leaf = lock(&self.leaf);
        leaf.accepting.cancel();
        leaf.listener.shut();
    }

    /// Refuses new connections and drops those open.
    pub(crate) fn stop(&self) {
        self.stop_accepting();
        lock(&self.leaf).connections.cancel();
    }
}
