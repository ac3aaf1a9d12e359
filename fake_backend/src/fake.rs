//! The builder: what a fake is called, speaks, listens on and does first. Used by tests, the demo and the
//! command.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::behaviour::Behaviour;
use crate::door::Door;
use crate::record::Recorder;
use crate::running::Running;
use crate::socket::Place;
use crate::state::{Protocol, State};
use crate::tls::TlsOptions;

/// A fake that does not run yet. By default it listens on `127.0.0.1`, on a port the kernel chooses.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
/// let backend = fake_backend::Fake::http("fake-1").start().await?;
/// let address = backend.addr();
/// # let _ = address;
/// # std::io::Result::Ok(()) }).expect("it starts");
/// ```
#[derive(Clone, Debug)]
pub struct Fake {
    id: String,
    protocol: Protocol,
    place: Result<Place, String>,
    behaviour: Behaviour,
    health_paths: Option<Vec<String>>,
    healthy: bool,
    control: bool,
    record: bool,
    refusing: bool,
    seed: Option<u64>,
    slots: Option<usize>,
    tls: Option<TlsOptions>,
}

impl Fake {
    /// An HTTP backend of this name.
    #[must_use]
    pub fn http(id: impl Into<String>) -> Self {
        Self::new(id, Protocol::Http)
    }

    /// A TCP backend of this name.
    #[must_use]
    pub fn tcp(id: impl Into<String>) -> Self {
        Self::new(id, Protocol::Tcp)
    }

    /// A UDP backend of this name.
    #[must_use]
    pub fn udp(id: impl Into<String>) -> Self {
        Self::new(id, Protocol::Udp)
    }

    /// A backend of this name and protocol.
    #[must_use]
    pub fn new(id: impl Into<String>, protocol: Protocol) -> Self {
        Self {
            id: id.into(),
            protocol,
            place: Ok(Place::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))),
            behaviour: Behaviour::default(),
            health_paths: None,
            healthy: true,
            control: false,
            record: false,
            refusing: false,
            seed: None,
            slots: None,
            tls: None,
        }
    }

    /// Listens on this address, `127.0.0.1:0` or `[::1]:8080`; one that cannot be read fails at the start.
    #[must_use]
    pub fn bind(self, address: impl AsRef<str>) -> Self {
        let address = address.as_ref();
        let place =
            address.parse().map(Place::Tcp).map_err(|_| format!("`{address}` is no address with a port"));
        Self { place, ..self }
    }

    /// Listens on this address.
    #[must_use]
    pub fn bind_addr(self, address: SocketAddr) -> Self {
        Self { place: Ok(Place::Tcp(address)), ..self }
    }

    /// Listens on a Unix socket at this path. A file that nobody listens on is replaced.
    #[must_use]
    pub fn unix(self, path: impl Into<PathBuf>) -> Self {
        Self { place: Ok(Place::Unix(path.into())), ..self }
    }

    /// Behaves like this from the start.
    #[must_use]
    pub fn behave(self, behaviour: Behaviour) -> Self {
        Self { behaviour, ..self }
    }

    /// The one path that answers 200 or 503 as health is up or down, instead of `/health` and `/ping`.
    #[must_use]
    pub fn health_path(self, path: impl Into<String>) -> Self {
        Self { health_paths: Some(vec![path.into()]), ..self }
    }

    /// Health is down from the start.
    #[must_use]
    pub fn unhealthy(self) -> Self {
        Self { healthy: false, ..self }
    }

    /// Keeps every request byte for byte, see [`Running::take_requests`].
    #[must_use]
    pub fn record(self) -> Self {
        Self { record: true, ..self }
    }

    /// Speaks TLS; clients trust [`Running::ca_pem`].
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
    /// use fake_backend::{Fake, TlsOptions};
    /// let backend = Fake::http("fake-1").tls(TlsOptions::new()).start().await?;
    /// assert!(backend.url().starts_with("https://127.0.0.1:"));
    /// # std::io::Result::Ok(()) }).expect("it starts");
    /// ```
    #[must_use]
    pub fn tls(self, options: TlsOptions) -> Self {
        Self { tls: Some(options), ..self }
    }

    /// Lets requests to `/_fake` change the behaviour, see the [crate's documentation](crate). Off by default.
    #[must_use]
    pub fn control(self) -> Self {
        Self { control: true, ..self }
    }

    /// Holds its port but refuses connections until [`Running::restart`].
    #[must_use]
    pub fn refusing(self) -> Self {
        Self { refusing: true, ..self }
    }

    /// Makes the draws of latencies and sizes repeatable.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Works on so many requests at once, each for its latency; the others wait their turn in the order they came. Health
    /// and control paths do not. Without it all are worked on at once. 0 counts as 1.
    #[must_use]
    pub fn slots(self, slots: usize) -> Self {
        Self { slots: Some(slots.max(1)), ..self }
    }

    /// Starts on the runtime of the caller.
    ///
    /// # Errors
    /// When the address cannot be read or bound, or a certificate that was given is of no use.
    #[expect(clippy::unused_async, reason = "the caller proves with its await that a runtime is there")]
    pub async fn start(self) -> io::Result<Running> {
        self.start_on(&Handle::current())
    }

    /// Starts on this runtime.
    ///
    /// # Errors
    /// When the address cannot be read or bound, or a certificate that was given is of no use.
    pub fn start_on(self, runtime: &Handle) -> io::Result<Running> {
        Ok(Running::new(self.open(runtime.clone())?, None))
    }

    /// Starts on a thread of its own, for callers without a runtime; the thread ends with the [`Running`].
    ///
    /// # Errors
    /// Like [`Self::start`], and when no thread can be started.
    pub fn start_in_thread(self) -> io::Result<Running> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let end = CancellationToken::new();
        let waiting = end.clone();
        std::thread::Builder::new()
            .name(format!("fake {}", self.id))
            .spawn(move || runtime.block_on(waiting.cancelled()))?;
        let guard = end.drop_guard();
        Ok(Running::new(self.open(handle)?, Some(guard)))
    }

    fn open(self, runtime: Handle) -> io::Result<Arc<Door>> {
        let place = self.place.map_err(|reason| io::Error::new(io::ErrorKind::InvalidInput, reason))?;
        let place = match (place, self.protocol) {
            (Place::Tcp(address), Protocol::Udp) => Place::Udp(address),
            (place, _) => place,
        };
        let seed = self.seed.unwrap_or_else(rand::random);
        let mut state = State::new(self.id, self.protocol, self.behaviour, seed);
        state.control = self.control;
        state.recorder = self.record.then(Recorder::default);
        if let Some(paths) = self.health_paths {
            state.health_paths = paths;
        }
        state.set_healthy(self.healthy);
        state.slots = self.slots.map(|slots| Semaphore::new(slots.min(Semaphore::MAX_PERMITS)));
        let address = match &place {
            Place::Tcp(address) | Place::Udp(address) => Some(address.ip()),
            Place::Unix(_) => None,
        };
        state.tls = self.tls.map(|tls| tls.build(address, self.protocol == Protocol::Http)).transpose()?;
        Door::open(&place, Arc::new(state), runtime, self.refusing)
    }
}
