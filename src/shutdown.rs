//! How the process is told to end: beforehand, politely, then not.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The signals; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    /// It serves as before, and will drain when `shutdown_delay` is over.
    pub leaving: CancellationToken,
    /// Accept nothing new, finish what is under way.
    pub drain: CancellationToken,
    /// Cut what is still under way.
    pub cut: CancellationToken,
    /// Another process has the sockets and serves: it is told before `drain`, and what is given up then is not closed for others.
    pub succeeded: CancellationToken,
    /// What is waited for, for a while, when all has ended.
    pub last: TaskTracker,
}

impl Shutdown {
    /// Nobody has asked for anything yet.
    #[must_use]
    pub fn new() -> Shutdown {
        Shutdown::default()
    }

    /// The next step: drains at the first call, cuts at the second.
    pub fn advance(&self) {
        if self.drain.is_cancelled() {
            self.cut.cancel();
        } else {
            self.drain.cancel();
        }
    }
}
