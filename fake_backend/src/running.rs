//! The handle on a fake that runs: where it is, what it saw, what it does next, and its end. Dropping it stops
//! the fake.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::DropGuard;

use crate::behaviour::Behaviour;
use crate::door::Door;
use crate::record::{Recorded, Recorder};
use crate::socket::Place;
use crate::state::{Protocol, Stats};
use crate::tls::Handshake;

/// A fake that runs. All methods may be called from any thread; none blocks but [`Self::wait_for_blocking`].
#[derive(Debug)]
pub struct Running {
    door: Arc<Door>,
    /// Ends the thread of a fake that has its own. Dropped after the door, so that its tasks see the end.
    _thread: Option<DropGuard>,
}

/// A condition that did not come true in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLate {
    /// How long it was waited for.
    pub waited: Duration,
    /// How the counters stood then.
    pub stats: Stats,
}

impl fmt::Display for TooLate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "still not so after {:?}: {:?}", self.waited, self.stats)
    }
}

impl std::error::Error for TooLate {}

impl Running {
    pub(crate) fn new(door: Arc<Door>, thread: Option<DropGuard>) -> Self {
        Self { door, _thread: thread }
    }

    /// The address it listens on, or would, while it is stopped.
    ///
    /// # Panics
    /// When it listens on a Unix socket.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        match self.door.place {
            Place::Tcp(address) | Place::Udp(address) => address,
            Place::Unix(_) => panic!("{} listens on a Unix socket, which has no address", self.id()),
        }
    }

    /// The port it listens on.
    ///
    /// # Panics
    /// When it listens on a Unix socket.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.addr().port()
    }

    /// The path of its Unix socket.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.door.place {
            Place::Tcp(_) | Place::Udp(_) => None,
            Place::Unix(path) => Some(path),
        }
    }

    /// Where it listens, as a URL: `http://127.0.0.1:8080`, `tcp://127.0.0.1:9090`, with TLS `https://` and
    /// `tls://`, or `unix:/path`.
    #[must_use]
    pub fn url(&self) -> String {
        let address = match &self.door.place {
            Place::Tcp(address) | Place::Udp(address) => address,
            Place::Unix(path) => return format!("unix:{}", path.display()),
        };
        let scheme = match (self.door.state.protocol, &self.door.state.tls) {
            (Protocol::Http, None) => "http",
            (Protocol::Http, Some(_)) => "https",
            (Protocol::Tcp, None) => "tcp",
            (Protocol::Tcp, Some(_)) => "tls",
            (Protocol::Udp, _) => "udp",
        };
        format!("{scheme}://{address}")
    }

    /// The CA certificate to trust, in PEM; none without TLS, or with a certificate that was given.
    #[must_use]
    pub fn ca_pem(&self) -> Option<&str> {
        self.door.state.tls.as_ref()?.ca_pem.as_deref()
    }

    /// Its name, as in `Hello from <id>`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.door.state.id
    }

    /// Behaves like this from the next request on.
    pub fn behave(&self, behaviour: Behaviour) {
        self.door.state.behave(behaviour);
    }

    /// What would happen to the next request.
    #[must_use]
    pub fn behaviour(&self) -> Behaviour {
        self.door.state.behaviour().as_ref().clone()
    }

    /// Whether health paths answer 200 or 503.
    pub fn set_healthy(&self, healthy: bool) {
        self.door.state.set_healthy(healthy);
    }

    /// All counters now.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.door.state.stats()
    }

    /// Requests read so far, health and control paths not counted. TCP: connections served.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.stats().requests
    }

    /// Requests to health paths so far.
    #[must_use]
    pub fn probes(&self) -> u64 {
        self.stats().probes
    }

    /// Connections accepted so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.stats().connections
    }

    /// Connections open now.
    #[must_use]
    pub fn open_connections(&self) -> u64 {
        self.stats().open
    }

    /// A copy of the recorded requests, oldest first; empty without [`Fake::record`](crate::Fake::record).
    #[must_use]
    pub fn last_requests(&self) -> Vec<Recorded> {
        self.door.state.recorder.as_ref().map_or_else(Vec::new, Recorder::copy)
    }

    /// The recorded requests, oldest first; the record starts afresh.
    #[must_use]
    pub fn take_requests(&self) -> Vec<Recorded> {
        self.door.state.recorder.as_ref().map_or_else(Vec::new, Recorder::take)
    }

    /// A copy of the recorded TLS handshakes, oldest first; empty without [`Fake::record`](crate::Fake::record).
    #[must_use]
    pub fn last_handshakes(&self) -> Vec<Handshake> {
        self.door.state.recorder.as_ref().map_or_else(Vec::new, Recorder::handshakes)
    }

    /// Waits until the counters fulfil the condition.
    ///
    /// # Errors
    /// When they do not within `deadline`.
    pub async fn wait_for(
        &self,
        condition: impl Fn(&Stats) -> bool,
        deadline: Duration,
    ) -> Result<Stats, TooLate> {
        let waited = tokio::time::timeout(deadline, self.door.state.watch(condition)).await;
        waited.map_err(|_| TooLate { waited: deadline, stats: self.stats() })
    }

    /// Like [`Self::wait_for`] for callers without a runtime: blocks the thread.
    ///
    /// # Errors
    /// When the condition is not fulfilled within `deadline`.
    #[expect(clippy::disallowed_methods, reason = "waits for a condition outside of any runtime")]
    pub fn wait_for_blocking(
        &self,
        condition: impl Fn(&Stats) -> bool,
        deadline: Duration,
    ) -> Result<Stats, TooLate> {
        let start = Instant::now();
        loop {
            let stats = self.stats();
            if condition(&stats) {
                return Ok(stats);
            }
            if start.elapsed() >= deadline {
                return Err(TooLate { waited: deadline, stats });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Refuses connections from now on and drops the open ones, as if the process were killed. The port stays
    /// reserved. When it returns, connects are refused; open connections end as soon as their tasks run.
    pub fn stop(&self) {
        self.door.stop();
    }

    /// Refuses connections from now on; open ones are served further.
    pub fn stop_accepting(&self) {
        self.door.stop_accepting();
    }

    /// Listens again on the same port or path after [`Self::stop`] or [`Self::stop_accepting`].
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub fn restart(&self) -> io::Result<()> {
        self.door.restart()
    }

    /// Closes every connection that waits for its next request (HTTP).
    pub fn close_idle(&self) {
        self.door.state.cut_idle();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.door.stop();
    }
}
