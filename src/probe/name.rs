//! Host names as backends: resolved before the first probe and every ten seconds, on the control runtime.
//!
//! One task per name, however many backends are written with it. A failed lookup keeps the last good
//! addresses; only a name that never had any takes its backends down.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::fault;
use super::subject::ProbeSubject;
use crate::config::model::BackendAddress;
use crate::events;
use crate::net::connect;
use crate::tick::Tick;

/// From the end of one lookup to the start of the next.
const INTERVAL: Duration = Duration::from_secs(10);

/// A lookup that takes longer has failed. The system's resolver gives up after 5 s per server.
const PATIENCE: Duration = Duration::from_secs(5);

/// A function that answers lookups.
type Lookup = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// Who answers lookups.
#[derive(Clone)]
pub enum Resolver {
    /// The system: hosts file, then DNS, as configured there.
    System,
    /// This function, which must not block.
    Given(Arc<Lookup>),
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Resolver::System => "System",
            Resolver::Given(_) => "Given(..)",
        })
    }
}

impl Resolver {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        match self {
            Resolver::System => {
                Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
            }
            Resolver::Given(lookup) => lookup(host),
        }
    }
}

/// The name in `address`; `None` for a literal address or a unix socket.
pub(super) fn of(address: &BackendAddress) -> Option<&str> {
    match address {
        BackendAddress::Host { host, .. } if host.parse::<IpAddr>().is_err() => Some(host),
        BackendAddress::Host { .. } | BackendAddress::Unix(_) => None,
    }
}

/// One name and the backends that are written with it.
pub(super) struct Follower<C> {
    host: String,
    resolver: Resolver,
    subjects: Vec<ProbeSubject<C>>,
    /// Whether the name ever had an address: what first probes wait for.
    resolved: watch::Sender<bool>,
}

impl<C: Fn() -> Tick> Follower<C> {
    pub(super) fn new(host: &str, resolver: &Resolver) -> Follower<C> {
        Follower {
            host: host.to_owned(),
            resolver: resolver.clone(),
            subjects: Vec::new(),
            resolved: watch::Sender::new(false),
        }
    }

    /// Adds a backend; its probes may start when the receiver says so.
    pub(super) fn add(&mut self, subject: ProbeSubject<C>) -> watch::Receiver<bool> {
        self.subjects.push(subject);
        self.resolved.subscribe()
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Looks the name up for ever.
    pub(super) async fn run(&self) {
        let mut failing = false;
        loop {
            let failure = match timeout(PATIENCE, self.resolver.lookup(&self.host)).await {
                Ok(Ok(addresses)) if addresses.is_empty() => Some("no addresses".to_owned()),
                Ok(Ok(addresses)) => {
                    self.tell(Ok(&addresses));
                    self.resolved.send_replace(true);
                    None
                }
                // Not a word about the name, only about us: nobody is told.
                Ok(Err(error)) if connect::shortage(&error).is_some() => None,
                Ok(Err(error)) => Some(fault::of_lookup(&error)),
                Err(_) => Some(format!("timeout after {}", humantime::format_duration(PATIENCE))),
            };
            if let Some(reason) = &failure {
                self.tell(Err(format!("name does not resolve: {reason}").into()));
                if *self.resolved.borrow() && !failing {
                    events::name_lost(&self.host, reason);
                }
            }
            failing = failure.is_some();
            sleep(INTERVAL).await;
        }
    }

    fn tell(&self, found: Result<&[IpAddr], Arc<str>>) {
        for subject in &self.subjects {
            subject.target.state.resolve(&subject.backend, found.clone(), subject.now());
        }
    }
}
