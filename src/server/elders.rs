//! Those who drain in favour of this process, and what is counted by all of one row of processes.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::admin::upgrading::desk::Draining;
use crate::events;
use crate::metrics::{CountsBook, ScrapeSources};
use crate::reload::begun::now_ms;
use crate::telemetry::exposition::CountsBefore;
use crate::upgrade::candidate::say_rest;
use crate::upgrade::{Candidate, Elder, ElderSays, Legacy};

/// The part of the state that was counted, which is told when nobody is told of it here any more.
const COUNTS: &str = "counts";
/// How often those who drain are listened to.
const LISTEN: Duration = Duration::from_secs(1);

/// What counts are taken from; `None`: nothing is in force.
pub type CountSource = Box<dyn Fn() -> Option<ScrapeSources> + Send + Sync>;

/// What a process counts with those before it and the one after it.
///
/// What an elder says is heard by one process, and is in what that one gives on: whoever gives hears them a last time, forgets them, and only then counts.
pub struct SharedCounts {
    book: Arc<CountsBook>,
    elders: Mutex<Vec<Elder>>,
    /// Held until the end: so is all that it takes counts from.
    source: Mutex<Option<CountSource>>,
    /// The process in whose favour this one drains.
    heir: Mutex<Option<Arc<UnixStream>>>,
}

impl SharedCounts {
    /// With those who drain, and what they have told.
    #[must_use]
    pub fn of(legacy: &mut Legacy) -> SharedCounts {
        let before = legacy.state.get(COUNTS).map(|text| counts_of(text)).unwrap_or_default();
        SharedCounts {
            book: Arc::new(CountsBook::new(before)),
            elders: Mutex::new(std::mem::take(&mut legacy.elders)),
            source: Mutex::default(),
            heir: Mutex::default(),
        }
    }

    /// What the processes before have counted.
    #[must_use]
    pub fn book(&self) -> Arc<CountsBook> {
        Arc::clone(&self.book)
    }

    /// From now on counts are taken from `source`.
    pub fn count_by(&self, source: CountSource) {
        *self.source.lock().unwrap_or_else(PoisonError::into_inner) = Some(source);
    }

    /// Listens to those who drain, as long as there are any.
    pub async fn keep_listening(self: Arc<Self>) {
        loop {
            sleep(LISTEN).await;
            Arc::clone(&self).listen().await;
        }
    }

    /// Hears what those who drain have to say, and forgets those who have ended.
    pub async fn listen(self: Arc<Self>) {
        if self.lock().is_empty() {
            return;
        }
        // It does not panic.
        let _ = spawn_blocking(move || listen_to(&mut self.lock(), &self.book)).await;
    }

    /// Those who drain, the oldest first.
    #[must_use]
    pub fn draining(&self) -> Vec<Draining> {
        let seconds = |since_ms: u64| now_ms().saturating_sub(since_ms) / 1000;
        let told = |elder: &Elder| Draining { process: elder.process, seconds: seconds(elder.since_ms) };
        self.lock().iter().map(told).collect()
    }

    /// The same, for the next process.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn elders(&self) -> io::Result<Vec<Elder>> {
        let copy = |elder: &Elder| {
            Ok(Elder { process: elder.process, since_ms: elder.since_ms, socket: elder.socket.try_clone()? })
        };
        self.lock().iter().map(copy).collect()
    }

    /// Has the oldest one cut what it has.
    pub fn cut_oldest(&self) {
        if let Some(oldest) = self.lock().first() {
            events::elder_cut(oldest.process);
            // If it has ended meanwhile all is well.
            let _ = oldest.cut();
        }
    }

    /// Tells `candidate` that it is alone, with all that was counted up to now. Blocks the thread.
    pub fn give_all(&self, candidate: Candidate) -> Arc<UnixStream> {
        let mut elders = self.lock();
        listen_to(&mut elders, &self.book);
        elders.clear();
        drop(elders);
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = self.book.give(|| source.as_ref()?());
        drop(source);
        let text = serde_json::to_string(&counts).unwrap_or_default();
        let heir = candidate.over(&BTreeMap::from([(COUNTS, text)]));
        *self.heir.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&heir));
        heir
    }

    /// Tells the process in whose favour this one has drained what was counted meanwhile, once nothing is counted any more. Blocks the thread.
    pub fn give_rest(&self) {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).take();
        let heir = self.heir.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(source), Some(heir)) = (source, heir) else { return };
        let rest = self.book.give_rest(source).filter(|rest| !rest.is_empty());
        if let Some(text) = rest.and_then(|rest| serde_json::to_string(&rest).ok()) {
            // Whoever does not listen misses it.
            let _ = say_rest(&heir, COUNTS, &text);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Elder>> {
        self.elders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn counts_of(text: &str) -> CountsBefore {
    // What nobody understands is counted anew.
    serde_json::from_str(text).unwrap_or_default()
}

/// Hears what they have to say, and forgets those who have ended.
fn listen_to(elders: &mut Vec<Elder>, book: &CountsBook) {
    elders.retain(|elder| {
        loop {
            match elder.listen() {
                ElderSays::Nothing => return true,
                ElderSays::Rest(text) => book.add(&counts_of(&text)),
                ElderSays::Gone => return false,
            }
        }
    });
}
