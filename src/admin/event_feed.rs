//! A stream of events, as browsers know it (`text/event-stream`, Server-Sent Events of the HTML standard).
//!
//! It holds no event that its client has not taken: each piece is made when the one before has gone, out of the history. So a client
//! that is slow costs nothing but its connection. Once the history has let go of what it did not take, the stream ends.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Bytes};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::exchange::pieces::pieces;
use crate::events::{self, Event, EventHistory, EventKind, EventReader, EventsAfter};

/// Without an event for so long, a comment says that the stream is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a client that has lost its stream is to wait before it comes again.
const RETRY: Duration = Duration::from_secs(1);
/// Events in one piece.
const PIECE: usize = 16;

/// What is left of a stream.
pub(super) struct EventFeed {
    history: Arc<EventHistory>,
    reader: EventReader,
    kinds: Vec<EventKind>,
    drains: CancellationToken,
    /// Who reads.
    who: String,
    progress: Progress,
}

/// How far a stream has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Nothing was sent.
    Opening,
    /// What is gone was so before the client came.
    Resuming,
    /// What is gone the client was too slow for.
    Following,
}

impl EventFeed {
    /// Of events of these `kinds` (none: all), until the process drains.
    pub(super) fn new(
        history: Arc<EventHistory>,
        reader: EventReader,
        kinds: Vec<EventKind>,
        drains: CancellationToken,
        who: String,
    ) -> EventFeed {
        EventFeed { history, reader, kinds, drains, who, progress: Progress::Opening }
    }

    /// The same as the body of an answer.
    pub(super) fn body(self) -> impl Body<Data = Bytes, Error = Infallible> + Send + 'static {
        pieces(self, EventFeed::next)
    }

    /// The next piece, and the rest; `None`: it has ended.
    async fn next(mut self) -> Option<(Bytes, EventFeed)> {
        if self.progress == Progress::Opening {
            self.progress = Progress::Resuming;
            let text = format!("retry: {}\nid: {}\n\n", RETRY.as_millis(), self.place());
            return Some((text.into(), self));
        }
        let mut heartbeat = pin!(sleep(HEARTBEAT));
        loop {
            let drains = self.drains.clone();
            let next = tokio::select! {
                biased;
                next = self.reader.next(PIECE) => next,
                () = drains.cancelled() => return None,
                () = heartbeat.as_mut() => {
                    let text = format!(": nothing new\nid: {}\n\n", self.place());
                    return Some((text.into(), self));
                }
            };
            if next.missed > 0 && self.progress == Progress::Following {
                events::event_reader_dropped(
                    &self.who,
                    &format!("{} events were gone before it took them", next.missed),
                );
                return None;
            }
            self.progress = Progress::Following;
            let text = self.piece(&next);
            if !text.is_empty() {
                return Some((text.into(), self));
            }
        }
    }

    /// Where a client goes on that has got all so far.
    fn place(&self) -> String {
        self.history.name(self.reader.seen())
    }

    /// Events as text; what is gone is one too.
    fn piece(&self, next: &EventsAfter) -> String {
        let mut text = String::new();
        // Writing to a String can't fail.
        if let Some(first) = next.events.first().filter(|_| next.missed > 0) {
            let place = self.history.name(first.id - 1);
            let _ = write!(text, "id: {place}\nevent: missed\ndata: {{\"missed\":{}}}\n\n", next.missed);
        }
        for event in next.events.iter().filter(|event| is_of(&self.kinds, event)) {
            let report = self.history.report(event);
            // A report has texts for keys, so it is always JSON; and JSON has no line breaks.
            let data = serde_json::to_string(&report).unwrap_or_default();
            let _ = write!(text, "id: {}\nevent: {}\ndata: {data}\n\n", report.id, report.kind);
        }
        text
    }
}

/// Whether somebody who wants these kinds wants this event; no kinds: all of them.
pub(super) fn is_of(kinds: &[EventKind], event: &Event) -> bool {
    kinds.is_empty() || kinds.contains(&event.kind)
}

#[cfg(test)]
mod tests {
    use tracing::subscriber::DefaultGuard;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// A history of what this thread tells from now on.
    fn history() -> (Arc<EventHistory>, DefaultGuard) {
        let history = EventHistory::new();
        let subscriber = tracing_subscriber::registry().with(history.layer());
        (history, tracing::subscriber::set_default(subscriber))
    }

    fn feed(history: &Arc<EventHistory>, after: u64, kinds: &[EventKind]) -> EventFeed {
        let reader = history.reader(after);
        EventFeed::new(
            Arc::clone(history),
            reader,
            kinds.to_vec(),
            CancellationToken::new(),
            "uid 7".to_owned(),
        )
    }

    /// Does `work` where time passes as fast as it is waited for.
    fn run(work: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(work);
    }

    async fn piece(feed: EventFeed) -> (String, EventFeed) {
        let (piece, rest) = feed.next().await.expect("it goes on");
        (String::from_utf8(piece.to_vec()).expect("text"), rest)
    }

    #[test]
    fn a_stream_says_where_it_begins_then_events_of_its_kinds_and_that_it_is_alive() {
        let (history, _told) = history();
        events::access_log_works();
        run(async {
            let (text, rest) = piece(feed(&history, 1, &[EventKind::RecordsDropped])).await;
            let start = history.name(1);
            assert_eq!(text, format!("retry: 1000\nid: {start}\n\n"));
            events::access_log_reopened();
            events::records_dropped(7);
            let (text, rest) = piece(rest).await;
            let (id, data) = (history.name(3), text.split("data: ").nth(1).unwrap_or_default());
            assert!(text.starts_with(&format!("id: {id}\nevent: records_dropped\ndata: {{")), "{text}");
            assert!(text.ends_with("}\n\n") && text.matches('\n').count() == 4, "{text}");
            let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
            assert_eq!((&data["id"], &data["facts"]["dropped"]), (&id.into(), &7.into()));
            // What is not wanted is not told again either.
            events::access_log_reopened();
            let (text, _) = piece(rest).await;
            assert_eq!(text, format!(": nothing new\nid: {}\n\n", history.name(4)));
        });
    }

    #[test]
    fn who_comes_too_late_is_told_how_much_is_gone_and_who_is_too_slow_is_dropped() {
        let (history, _told) = history();
        (0..4099).for_each(|_| events::access_log_reopened());
        run(async {
            let (_, rest) = piece(feed(&history, 1, &[])).await;
            let (text, rest) = piece(rest).await;
            let gone = format!("id: {}\nevent: missed\ndata: {{\"missed\":2}}\n\n", history.name(3));
            assert!(text.starts_with(&gone), "{text}");
            assert_eq!(text.matches("event: access_log_reopened\n").count(), PIECE);
            (0..PIECE).for_each(|_| events::access_log_reopened());
            let (_, rest) = piece(rest).await;
            (0..4096).for_each(|_| events::access_log_reopened());
            assert!(rest.next().await.is_none());
        });
        let last = history.after(history.latest() - 1, 1);
        let told =
            "an event stream was closed, uid 7 does not keep up: 4080 events were gone before it took them";
        assert_eq!(last.events[0].text, told);
    }

    #[test]
    fn it_ends_with_the_process_and_not_before_the_last_event() {
        let (history, _told) = history();
        run(async {
            let feed = feed(&history, 0, &[]);
            let drains = feed.drains.clone();
            let (_, rest) = piece(feed).await;
            events::draining("SIGTERM", Duration::ZERO);
            drains.cancel();
            let (text, rest) = piece(rest).await;
            assert!(text.contains("event: draining\n"), "{text}");
            assert!(rest.next().await.is_none());
        });
    }
}
