//! Host names as backends: resolved before the first probe and every ten seconds, on the control runtime.
//!
//! One task per name, however many backends are written with it. A failed lookup keeps the last good
//! addresses; only a name that never had any takes its backends down.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// One name and the backends that are written with it, under whatever config.
///
/// Invariants of what is [known](Known): a backend that follows is told of every lookup that ends after it came, and when it
/// comes of what the lookups so far have amounted to; so nothing is looked up for it.
pub(super) struct Follower<C> {
    host: String,
    resolver: Resolver,
    known: Mutex<Known<C>>,
    /// Whether the name ever had an address: what first probes wait for.
    resolved: watch::Sender<bool>,
}

struct Known<C> {
    /// By the backend's number.
    subjects: HashMap<u32, ProbeSubject<C>>,
    /// The last good addresses; as long as there were none, why.
    found: Option<Result<Vec<IpAddr>, Arc<str>>>,
}

/// A backend that follows a name, until this is dropped.
pub(super) struct Following<C: Fn() -> Tick> {
    follower: Arc<Follower<C>>,
    id: u32,
}

impl<C: Fn() -> Tick> Following<C> {
    /// Says when probes may start.
    pub(super) fn resolved(&self) -> watch::Receiver<bool> {
        self.follower.resolved.subscribe()
    }
}

impl<C: Fn() -> Tick> Drop for Following<C> {
    fn drop(&mut self) {
        self.follower.known().subjects.remove(&self.id);
    }
}

impl<C: Fn() -> Tick> Follower<C> {
    pub(super) fn new(host: &str, resolver: &Resolver) -> Follower<C> {
        Follower {
            host: host.to_owned(),
            resolver: resolver.clone(),
            known: Mutex::new(Known { subjects: HashMap::new(), found: None }),
            resolved: watch::Sender::new(false),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known<C>> {
        // A panic in between leaves backends that were not told; the next lookup tells them.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a backend follow the name.
    pub(super) fn follow(self: &Arc<Self>, subject: ProbeSubject<C>) -> Following<C> {
        let mut known = self.known();
        if let Some(found) = &known.found {
            subject.resolve(found.as_deref().map_err(Arc::clone));
        }
        let id = subject.backend.id.0;
        known.subjects.insert(id, subject);
        Following { follower: Arc::clone(self), id }
    }

    /// Whether anybody is written with it.
    pub(super) fn is_followed(&self) -> bool {
        !self.known().subjects.is_empty()
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
        let mut known = self.known();
        match (&known.found, &found) {
            // The last good ones stay.
            (Some(Ok(_)), Err(_)) => {}
            _ => known.found = Some(found.clone().map(<[IpAddr]>::to_vec)),
        }
        known.subjects.values().for_each(|subject| subject.resolve(found.clone()));
    }
}
