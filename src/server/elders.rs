//! Those who drain in favour of this process, and what is counted, and purged, by all of one row of processes.

use std::collections::BTreeMap;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::stored;
use crate::admin::upgrading::desk::Draining;
use crate::cache::store::CacheStore;
use crate::events;
use crate::metrics::{CountsBook, ScrapeSources};
use crate::reload::begun::now_ms;
use crate::telemetry::exposition::CountsBefore;
use crate::upgrade::candidate::say_rest;
use crate::upgrade::{Candidate, Elder, ElderSays, Legacy};

/// The part of the state that was counted, which is told when nobody is told of it here any more.
const COUNTS: &str = "counts";
/// The part of the state that comes last of all.
const END: &str = "end";
/// How often those who drain are listened to, and how often one that drains looks for what it has to say.
const LISTEN: Duration = Duration::from_millis(250);

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
    /// Where answers are stored.
    store: OnceLock<Arc<CacheStore>>,
    /// What was purged in the process before since it has given what it had stored.
    purged: Mutex<Option<String>>,
    is_cut_short: bool,
    /// The process in whose favour this one drains.
    heir: Mutex<Option<Arc<UnixStream>>>,
}

impl SharedCounts {
    /// With those who drain, and what they have told. `is_cut_short`: the one before has ended before it had said all.
    #[must_use]
    pub fn of(legacy: &mut Legacy, is_cut_short: bool) -> SharedCounts {
        let before = legacy.state.get(COUNTS).map(|text| counts_of(text)).unwrap_or_default();
        SharedCounts {
            book: Arc::new(CountsBook::new(before)),
            elders: Mutex::new(std::mem::take(&mut legacy.elders)),
            source: Mutex::default(),
            store: OnceLock::new(),
            purged: Mutex::new(legacy.state.remove(stored::PURGES)),
            is_cut_short,
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

    /// What is purged in the processes before this one is purged in `store`, too, and the one after it is told what is purged there.
    pub fn purge_in(&self, store: Arc<CacheStore>) {
        if let Some(told) = self.purged.lock().unwrap_or_else(PoisonError::into_inner).take() {
            stored::purge_as(&store, &told);
        }
        if self.is_cut_short {
            store.doubt();
        }
        // There is one for as long as the process lives.
        let _ = self.store.set(store);
    }

    /// Where answers are stored.
    #[must_use]
    pub fn store(&self) -> Option<&Arc<CacheStore>> {
        self.store.get()
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
        let _ = spawn_blocking(move || self.listen_to(&mut self.lock())).await;
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
        self.listen_to(&mut elders);
        elders.clear();
        drop(elders);
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = self.book.give(|| source.as_ref()?());
        drop(source);
        let text = serde_json::to_string(&counts).unwrap_or_default();
        let mut late = BTreeMap::from([(COUNTS, text)]);
        late.extend(
            self.store().and_then(|store| stored::purged(store)).map(|purged| (stored::PURGES, purged)),
        );
        let heir = candidate.over(&late);
        if let Some(store) = self.store() {
            // What is purged from here on at the other one is not told here.
            store.doubt();
        }
        *self.heir.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&heir));
        heir
    }

    /// Tells the process in whose favour this one drains what is purged here meanwhile, until the process ends.
    pub async fn keep_telling_purges(self: Arc<Self>) {
        loop {
            sleep(LISTEN).await;
            let this = Arc::clone(&self);
            // It does not panic.
            let _ = spawn_blocking(move || this.tell_purges()).await;
        }
    }

    fn tell_purges(&self) {
        // Whoever is told something is told it as a whole.
        let heir = self.heir.lock().unwrap_or_else(PoisonError::into_inner);
        let purged = self.store().and_then(|store| stored::purged(store));
        if let Some((heir, purged)) = heir.as_ref().zip(purged)
            && say_rest(heir, stored::PURGES, &purged).is_err()
        {
            // It may have come in part. Whoever hears that there is no more doubts all that it has from here.
            let _ = heir.shutdown(Shutdown::Both);
        }
    }

    /// Tells the process in whose favour this one has drained what was counted meanwhile, once nothing is counted any more. Blocks the thread.
    pub fn give_rest(&self) {
        self.tell_purges();
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).take();
        let heir = self.heir.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(source), Some(heir)) = (source, heir) else { return };
        let rest = self.book.give_rest(source).filter(|rest| !rest.is_empty());
        if let Some(text) = rest.and_then(|rest| serde_json::to_string(&rest).ok()) {
            // Whoever does not listen misses it.
            let _ = say_rest(&heir, COUNTS, &text);
        }
        let _ = say_rest(&heir, END, "");
    }

    /// Hears what they have to say, and forgets those who have ended.
    fn listen_to(&self, elders: &mut Vec<Elder>) {
        elders.retain(|elder| {
            loop {
                match elder.listen() {
                    ElderSays::Nothing => return true,
                    ElderSays::Rest(parts) => {
                        if let Some(text) = parts.get(COUNTS) {
                            self.book.add(&counts_of(text));
                        }
                        if let Some((store, told)) = self.store().zip(parts.get(stored::PURGES)) {
                            stored::purge_as(store, told);
                        }
                        if parts.contains_key(END) {
                            return false;
                        }
                    }
                    ElderSays::Gone => {
                        // It has not said what it has purged at last.
                        self.store().inspect(|store| store.doubt());
                        return false;
                    }
                }
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Elder>> {
        self.elders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn counts_of(text: &str) -> CountsBefore {
    // What nobody understands is counted anew.
    serde_json::from_str(text).unwrap_or_default()
}
