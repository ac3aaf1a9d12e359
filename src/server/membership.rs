//! The task by which this process is one of a cluster, and its end.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::cluster::node::ClusterNode;
use crate::lasting::again;

/// How long the end of the process waits until the others know of it.
const GRACE: Duration = Duration::from_millis(1500);

/// It is one of them until the process drains.
#[derive(Debug)]
pub(super) struct MembershipEnd {
    /// Closed once the others know.
    over: Receiver<()>,
}

impl MembershipEnd {
    /// Begins, until `drain`.
    pub(super) fn start(
        control: &Runtime,
        node: &Arc<ClusterNode>,
        drain: &CancellationToken,
    ) -> MembershipEnd {
        let (alive, over) = channel::<()>();
        let (node, drain) = (Arc::clone(node), drain.clone());
        control.spawn(again("the cluster", async move || {
            // Dropped with this, once it is over for good.
            let _alive = &alive;
            node.keep(&drain).await;
        }));
        MembershipEnd { over }
    }

    /// Waits until the others know, though not for long. The process drains.
    pub(super) fn finish(self) {
        // Nothing ever comes.
        let _ = self.over.recv_timeout(GRACE);
    }
}
