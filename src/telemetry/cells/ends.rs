//! How requests and connections end, good or bad: what the classes of their statuses don't say, counted on the way of failure
//! only. A good end costs nothing here.

use std::sync::atomic::{AtomicU64, Ordering};

use super::counter::Counter;
use super::table::Table;
use super::{Cells, StatusClass, TrafficCells};
use crate::message::{Blame, Cause, ListenerId, Record, TargetId};
use crate::tick::Tick;

/// How many ends a listener or a target has had, and how many of them were bad. Ends that say nothing about either are not in it: of
/// clients that leave, and of what was begun under a config before the one in force and came to no good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndTally {
    /// Requests, tunnels and connections that ended, and attempts after which another backend was tried.
    pub ended: u64,
    /// Those of them that failed by a fault of ours or of a backend: a 5xx, a connection that was cut or never stood, and, of a
    /// listener, handshakes of clients that came to nothing.
    pub bad: u64,
}

/// What an end says about those who serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saying {
    Fine,
    Bad,
    Nothing,
}

impl Saying {
    fn of(record: &Record) -> Saying {
        let is_error = StatusClass::of(record.meaning()) == StatusClass::ServerError;
        match record.cause {
            // It was said before the client left.
            Cause::ClientGone | Cause::ClientStalled if is_error => Saying::Bad,
            Cause::ClientGone | Cause::ClientStalled | Cause::Shutdown => Saying::Nothing,
            // The two don't speak the same protocol, or don't trust one another.
            Cause::TlsHandshake
            | Cause::TlsTimeout
            | Cause::ClientCertificate
            | Cause::TlsHello
            | Cause::PlainHttp
            | Cause::ProxyProtocol
            | Cause::Http2Preface => Saying::Bad,
            cause => match cause.blame() {
                Blame::Local | Blame::Backend => Saying::Bad,
                Blame::Nobody if is_error => Saying::Bad,
                Blame::Nobody | Blame::Client => Saying::Fine,
            },
        }
    }
}

/// Where an end differs from what its status says.
#[derive(Debug, Default)]
struct EndRow {
    /// Bad without a 5xx.
    hidden: Counter,
    /// A 5xx that is not bad.
    excused: Counter,
    /// No end that says anything.
    void: Counter,
    /// Bad ends without a Record of their own.
    unrecorded: Counter,
}

impl EndRow {
    fn note(&self, saying: Saying, class: StatusClass) {
        let is_error = class == StatusClass::ServerError;
        match saying {
            Saying::Bad if !is_error => self.hidden.increment(),
            Saying::Fine | Saying::Nothing if is_error => self.excused.increment(),
            Saying::Bad | Saying::Fine | Saying::Nothing => {}
        }
        if saying == Saying::Nothing {
            self.void.increment();
        }
    }

    fn clear(&self) {
        [&self.hidden, &self.excused, &self.void, &self.unrecorded].into_iter().for_each(Counter::clear);
    }
}

/// The ends of one worker that are not what their status says.
#[derive(Debug, Default)]
pub struct EndCells {
    /// What began before says nothing about the config in force.
    since: AtomicU64,
    listeners: Table<EndRow>,
    targets: Table<EndRow>,
}

impl EndCells {
    /// Another config is in force from `now` on. Only the owning worker calls this.
    pub fn begin(&self, now: Tick) {
        self.since.store(now.0, Ordering::Relaxed);
    }

    /// Notes a finished Record whose cause is not [`Cause::Done`]. Only the owning worker calls this.
    #[cold]
    pub fn note(&self, record: &Record) {
        let begun = if record.started == Tick::ZERO { record.accepted } else { record.started };
        let is_old = begun.0 < self.since.load(Ordering::Relaxed);
        let saying = if is_old { Saying::Nothing } else { Saying::of(record) };
        let class = StatusClass::of(record.meaning());
        self.listeners.entry(record.listener.0.into()).note(saying, class);
        if let Some(target) = record.target {
            self.targets.entry(target.0.into()).note(saying, class);
        }
    }

    /// Counts a connection that came to nothing and leaves no Record that says so: one that there was no room for, a handshake that the
    /// client gave up. Only the owning worker calls this.
    #[cold]
    pub fn fail_unrecorded(&self, listener: ListenerId) {
        self.listeners.entry(listener.0.into()).unrecorded.increment();
    }

    /// Counts an attempt that failed and was followed by another one. Only the owning worker calls this.
    #[cold]
    pub fn try_again(&self, target: Option<TargetId>) {
        if let Some(target) = target {
            self.targets.entry(target.0.into()).unrecorded.increment();
        }
    }

    /// Counts these anew. Only the owning worker calls this.
    pub(super) fn renew(&self, listeners: &[ListenerId], targets: &[TargetId]) {
        for id in listeners {
            self.listeners.met(id.0.into()).inspect(|row| row.clear());
        }
        for id in targets {
            self.targets.met(id.0.into()).inspect(|row| row.clear());
        }
    }
}

impl EndTally {
    fn add(&mut self, traffic: Option<&TrafficCells>, row: Option<&EndRow>) {
        let class = |class: StatusClass| traffic.map_or(0, |cells| cells.by_class[class as usize].value());
        let (mut ended, mut bad) =
            (StatusClass::ALL.into_iter().map(class).sum::<u64>(), class(StatusClass::ServerError));
        if let Some(row) = row {
            let unrecorded = row.unrecorded.value();
            // The worker writes meanwhile, one number after the other.
            ended = (ended + unrecorded).saturating_sub(row.void.value());
            bad = (bad + row.hidden.value() + unrecorded).saturating_sub(row.excused.value());
        }
        self.ended += ended;
        self.bad += bad;
    }
}

impl Cells {
    /// Adds how requests and connections of a listener have ended here.
    pub fn add_listener_ends(&self, id: ListenerId, tally: &mut EndTally) {
        let number = id.0.into();
        tally.add(self.listeners.met(number), self.ends.listeners.met(number));
    }

    /// Adds how requests, TCP connections and attempts of a target have ended here.
    pub fn add_target_ends(&self, id: TargetId, tally: &mut EndTally) {
        let number = id.0.into();
        let traffic = self.targets.met(number).map(|cells| &cells.traffic);
        tally.add(traffic, self.ends.targets.met(number));
    }
}

#[cfg(test)]
mod tests {
    use super::super::NewNumbers;
    use super::*;
    use crate::message::BackendId;

    /// What is counted of records with these causes and statuses, at their listener and at their target.
    fn tally(ends: &[(Cause, u16)]) -> (EndTally, EndTally) {
        let (listener, target) = (ListenerId(3), TargetId(40));
        let cells = Cells::default();
        for &(cause, status) in ends {
            let record = Record { listener, target: Some(target), cause, status, ..Record::default() };
            if cause != Cause::Done {
                cells.ends.note(&record);
            }
            cells.record(&record);
        }
        read(&cells, listener, target)
    }

    fn read(cells: &Cells, listener: ListenerId, target: TargetId) -> (EndTally, EndTally) {
        let mut tallies = <(EndTally, EndTally)>::default();
        cells.add_listener_ends(listener, &mut tallies.0);
        cells.add_target_ends(target, &mut tallies.1);
        tallies
    }

    #[test]
    fn what_we_or_backends_do_is_bad_and_what_clients_do_is_not() {
        for (cause, status, ended, bad) in [
            (Cause::Done, 200, 1, 0),
            (Cause::Done, 404, 1, 0),
            (Cause::Done, 503, 1, 1),
            (Cause::NoBackend, 503, 1, 1),
            (Cause::ConnectFailed, 503, 1, 1),
            // Nobody was there any more to be told, or it is TCP.
            (Cause::ConnectFailed, 0, 1, 1),
            (Cause::AnswerCut, 200, 1, 1),
            (Cause::AnswerCut, 101, 1, 1),
            (Cause::TlsHandshake, 0, 1, 1),
            (Cause::TlsHello, 400, 1, 1),
            (Cause::Http2Preface, 505, 1, 1),
            (Cause::BadHead, 400, 1, 0),
            (Cause::BadVersion, 505, 1, 0),
            (Cause::BodyTooLarge, 413, 1, 0),
            (Cause::Drained, 101, 1, 0),
            (Cause::TunnelIdle, 0, 1, 0),
            (Cause::ClientGone, 200, 0, 0),
            (Cause::ClientGone, 0, 0, 0),
            (Cause::ClientGone, 502, 1, 1),
            (Cause::Shutdown, 503, 0, 0),
            (Cause::Internal, 0, 1, 1),
        ] {
            let expected = EndTally { ended, bad };
            assert_eq!(tally(&[(cause, status)]), (expected, expected), "{cause} {status}");
        }
        let all =
            tally(&[(Cause::Done, 200), (Cause::Done, 500), (Cause::ClientGone, 0), (Cause::AnswerCut, 200)]);
        assert_eq!(all.0, EndTally { ended: 3, bad: 2 });
    }

    #[test]
    fn what_was_begun_under_the_config_before_says_nothing_when_it_fails() {
        let cells = Cells::default();
        cells.ends.begin(Tick(5));
        for (started, accepted, cause, status) in [
            (4, 1, Cause::FirstByteTimeout, 504),
            (0, 4, Cause::AnswerCut, 0),
            (4, 1, Cause::Done, 200),
            (5, 1, Cause::FirstByteTimeout, 504),
        ] {
            let target = Some(TargetId(1));
            let (started, accepted) = (Tick(started), Tick(accepted));
            let record = Record { target, cause, status, started, accepted, ..Record::default() };
            if cause != Cause::Done {
                cells.ends.note(&record);
            }
            cells.record(&record);
        }
        let expected = EndTally { ended: 2, bad: 1 };
        assert_eq!(read(&cells, ListenerId(0), TargetId(1)), (expected, expected));
    }

    #[test]
    fn attempts_that_were_followed_by_another_one_are_ends_of_their_target() {
        let (listener, target) = (ListenerId(0), TargetId(1));
        let cells = Cells::default();
        let mut record = Record { listener, target: Some(target), status: 200, ..Record::default() };
        record.attempt(BackendId(1), Tick(1)).outcome = Cause::ConnectFailed;
        record.attempt(BackendId(2), Tick(2)).outcome = Cause::Overtaken;
        record.attempt(BackendId(3), Tick(3));
        cells.record(&record);
        assert_eq!(
            read(&cells, listener, target),
            (EndTally { ended: 1, bad: 0 }, EndTally { ended: 2, bad: 1 })
        );
    }

    #[test]
    fn what_leaves_no_record_counts_and_numbers_begin_anew() {
        let (listener, target) = (ListenerId(0), TargetId(1));
        let cells = Cells::default();
        cells.ends.fail_unrecorded(listener);
        cells.ends.try_again(Some(target));
        assert_eq!(
            read(&cells, listener, target),
            (EndTally { ended: 1, bad: 1 }, EndTally { ended: 1, bad: 1 })
        );
        cells.renew(2, &NewNumbers { listeners: &[listener], targets: &[target], ..NewNumbers::default() });
        assert_eq!(read(&cells, listener, target), Default::default());
    }
}
