//! The latest events, for whoever reads them other than in the log: the event stream and webhooks.
//!
//! Whoever tells an event waits for no reader: it puts the event in, wakes those who wait, and what is too old goes, read or
//! not. A reader asks for what came after the last one that it has seen, and is told how many of those are gone.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tracing::Subscriber;
use tracing_subscriber::filter::{Filtered, LevelFilter};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::event::{Event, EventReport, Saying, clip, level_of};
use super::kind::EventKind;
use crate::config::model::LogLevel;

/// Events that are kept at most.
const EVENTS: usize = 4096;
/// Bytes that they may take, roughly.
const BYTES: usize = 1024 * 1024;

/// The latest events of a process, from `info` on, whatever the log's level is.
#[derive(Debug)]
pub struct EventHistory {
    /// What tells its events from those of the process before.
    start: String,
    kept: Mutex<Kept>,
    /// The number of the latest event; 0: there was none.
    latest: watch::Sender<u64>,
}

/// Their numbers have no gaps; the last one is that of the latest event.
#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    latest: u64,
    /// By the number of the kind.
    kinds: Vec<KindTally>,
}

/// What was told of one kind of event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindTally {
    /// How many there were.
    pub count: u64,
    /// The number of the latest one; 0: there was none.
    pub latest: u64,
}

/// What there is after an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventsAfter {
    /// The oldest of them, as many as were asked for.
    pub events: Vec<Arc<Event>>,
    /// How many came before these that are gone.
    pub missed: u64,
    /// The number of the latest event of all.
    pub latest: u64,
}

impl EventHistory {
    /// Without any event.
    #[must_use]
    pub fn new() -> Arc<EventHistory> {
        let (kept, latest) = (Mutex::default(), watch::Sender::new(0));
        Arc::new(EventHistory { start: format!("{:x}", now_ms()), kept, latest })
    }

    /// That of the events that this thread tells; `None`: nobody keeps them.
    #[must_use]
    pub fn here() -> Option<Arc<EventHistory>> {
        tracing::dispatcher::get_default(|to| {
            to.downcast_ref::<HistoryLayer>().map(|layer| Arc::clone(&layer.0))
        })
    }

    /// What puts events into it: one layer of a `tracing` subscriber. Less than `info` it does not even have made.
    #[must_use]
    pub fn layer<S>(self: &Arc<Self>) -> Filtered<HistoryLayer, LevelFilter, S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        HistoryLayer(Arc::clone(self)).with_filter(LevelFilter::INFO)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing that is done under it can panic half-way.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, level: LogLevel, saying: Saying) {
        let Saying { mut text, kind: Some(kind), facts } = saying else { return };
        clip(&mut text);
        let mut event = Event { id: 0, time: now_ms(), level, kind, text, facts: facts.bounded() };
        let size = event.size();
        let mut kept = self.kept();
        event.id = kept.latest + 1;
        kept.latest = event.id;
        kept.bytes += size;
        let id = event.id;
        kept.kinds.resize(EventKind::ALL.len(), KindTally::default());
        if let Some(tally) = kept.kinds.get_mut(kind as usize) {
            *tally = KindTally { count: tally.count + 1, latest: id };
        }
        kept.events.push_back(Arc::new(event));
        while kept.events.len() > EVENTS || (kept.bytes > BYTES && kept.events.len() > 1) {
            let oldest = kept.events.pop_front();
            kept.bytes -= oldest.map_or(0, |event| event.size());
        }
        self.latest.send_replace(kept.latest);
    }

    /// The events after that of number `id` (0: all), the `most` oldest of them.
    #[must_use]
    pub fn after(&self, id: u64, most: usize) -> EventsAfter {
        let kept = self.kept();
        let gone = kept.latest - kept.events.len() as u64;
        let skipped = usize::try_from(id.saturating_sub(gone)).unwrap_or(usize::MAX);
        EventsAfter {
            events: kept.events.iter().skip(skipped).take(most).cloned().collect(),
            missed: gone.saturating_sub(id),
            latest: kept.latest,
        }
    }

    /// What was told of each kind of event since the process began.
    pub fn kinds(&self) -> impl Iterator<Item = (EventKind, KindTally)> + use<> {
        let mut kinds = self.kept().kinds.clone();
        kinds.resize(EventKind::ALL.len(), KindTally::default());
        EventKind::ALL.iter().copied().zip(kinds)
    }

    /// The number of the latest event; 0: there was none.
    #[must_use]
    pub fn latest(&self) -> u64 {
        *self.latest.borrow()
    }

    /// A reader of what comes after the event of number `id`.
    #[must_use]
    pub fn reader(self: &Arc<Self>, id: u64) -> EventReader {
        EventReader { news: self.latest.subscribe(), history: Arc::clone(self), seen: id }
    }

    /// The name of an event outside of this process: `START-N`.
    #[must_use]
    pub fn name(&self, id: u64) -> String {
        format!("{}-{id}", self.start)
    }

    /// The number that such a name stands for. 0, so that all that there is comes after it: it is an event of another process, or none.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        let number = name.rsplit_once('-').filter(|(start, _)| *start == self.start);
        number
            .and_then(|(_, number)| number.parse().ok())
            .filter(|number| *number <= self.latest())
            .unwrap_or(0)
    }

    /// The event as others get it.
    #[must_use]
    pub fn report(&self, event: &Event) -> EventReport {
        EventReport {
            id: self.name(event.id),
            time_ms: event.time,
            level: event.level.name().to_owned(),
            kind: event.kind.name().to_owned(),
            object: event.object(),
            text: event.text.clone(),
            facts: event.facts.object(),
        }
    }
}

/// Reads a history from some event on, as fast as it likes.
#[derive(Debug)]
pub struct EventReader {
    history: Arc<EventHistory>,
    news: watch::Receiver<u64>,
    /// The number of the last event that was read.
    seen: u64,
}

impl EventReader {
    /// The number of the last event that was read, or that it began behind.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The next events, at most so many, as soon as there are any. Nothing is lost by whoever waits no longer.
    pub async fn next(&mut self, most: usize) -> EventsAfter {
        let seen = self.seen;
        // It can't have gone: the history holds it.
        let _ = self.news.wait_for(|latest| *latest > seen).await;
        let next = self.history.after(seen, most);
        self.seen = next.events.last().map_or(self.seen, |event| event.id);
        next
    }
}

/// Puts what is told into a history.
#[derive(Debug)]
pub struct HistoryLayer(Arc<EventHistory>);

impl<S: Subscriber> Layer<S> for HistoryLayer {
    fn on_event(&self, told: &tracing::Event<'_>, _: Context<'_, S>) {
        self.0.add(level_of(told), Saying::of(told));
    }
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::events::EventKind;

    /// A history of what `work` tells.
    fn of(work: impl FnOnce()) -> Arc<EventHistory> {
        let history = EventHistory::new();
        let subscriber = tracing_subscriber::registry().with(history.layer());
        tracing::subscriber::with_default(subscriber, work);
        history
    }

    fn refuse(reason: &str) {
        tracing::error!(kind = EventKind::ReloadRefused.name(), reason, "reload refused: {reason}");
    }

    fn numbers(after: &EventsAfter) -> Vec<u64> {
        after.events.iter().map(|event| event.id).collect()
    }

    #[test]
    fn events_have_numbers_without_gaps_and_a_reader_gets_what_comes_after_one() {
        let history = of(|| {
            tracing::warn!(
                kind = EventKind::BackendDown.name(),
                target = "web",
                backend = "b1",
                left = 1_u64,
                "b1 is down"
            );
            tracing::debug!("for whoever debugs");
            tracing::info!("of another crate");
            refuse("no");
        });
        let all = history.after(0, usize::MAX);
        assert_eq!((numbers(&all), all.missed, all.latest), (vec![1, 2], 0, 2));
        let first = history.report(&all.events[0]);
        let object = first.object.as_deref();
        assert_eq!(
            (first.level.as_str(), first.kind.as_str(), object),
            ("warn", "backend_down", Some("web/b1"))
        );
        assert_eq!(first.facts["left"], 1);
        assert_eq!((first.text.as_str(), history.number(&first.id)), ("b1 is down", 1));
        assert_eq!(numbers(&history.after(0, 1)), [1]);
        assert_eq!(numbers(&history.after(1, 9)), [2]);
        assert_eq!((numbers(&history.after(2, 9)), history.after(7, 9)), (vec![], history.after(2, 9)));
    }

    #[test]
    fn what_is_too_old_is_gone_and_whoever_comes_too_late_is_told_how_much() {
        let history = of(|| (0..EVENTS + 10).for_each(|_| refuse("no")));
        let late = history.after(3, 1);
        assert_eq!((numbers(&late), late.missed, late.latest), (vec![11], 7, EVENTS as u64 + 10));
        assert_eq!(history.after(10, usize::MAX).missed, 0);
        let large = "x".repeat(4 * BYTES);
        let history = of(|| (0..200).for_each(|_| refuse(&large)));
        let kept = history.after(0, usize::MAX);
        assert!(kept.missed > 100 && kept.events.len() > 10, "{} are gone", kept.missed);
        assert!(history.kept().bytes <= BYTES);
        assert!(kept.events[0].facts.text("reason").is_some_and(|reason| reason.ends_with('…')));
    }

    #[test]
    fn a_name_of_another_process_or_of_nothing_stands_for_the_beginning() {
        let history = of(|| refuse("no"));
        let name = history.name(1);
        assert_eq!((history.number(&name), history.number(&history.name(0))), (1, 0));
        for other in ["", "1", "-1", "0-1", "x", &history.name(2), &format!("{name}x"), &format!("{name}-1")]
        {
            assert_eq!(history.number(other), 0, "{other}");
        }
    }

    #[test]
    fn a_reader_waits_for_what_is_new_and_is_told_what_it_has_missed() {
        let history = EventHistory::new();
        let subscriber = tracing_subscriber::registry().with(history.layer());
        let _told = tracing::subscriber::set_default(subscriber);
        assert!(Arc::ptr_eq(&EventHistory::here().expect("it is"), &history));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut reader = history.reader(0);
            let mut next = Box::pin(reader.next(9));
            let waits = std::future::poll_fn(|context| {
                std::task::Poll::Ready(next.as_mut().poll(context).is_pending())
            })
            .await;
            assert!(waits);
            refuse("no");
            assert_eq!(numbers(&next.await), [1]);
            (0..EVENTS + 2).for_each(|_| refuse("again"));
            let late = reader.next(2).await;
            assert_eq!((numbers(&late), late.missed), (vec![4, 5], 2));
            assert_eq!(reader.next(1).await.missed, 0);
        });
    }

    #[test]
    fn events_of_another_thread_go_where_those_of_its_starter_go() {
        let history = of(|| {
            let follow = crate::events::here_as_there();
            let thread = std::thread::spawn(move || {
                follow();
                refuse("no");
            });
            thread.join().expect("no panic");
        });
        assert_eq!(history.latest(), 1);
    }
}
