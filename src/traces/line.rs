//! What waits to be sent, and when the next attempt is due. Nothing here knows a clock or a socket.
//!
//! Invariants: batches leave in the order in which they came; at most one is under way, which is the first and stays until it has ended;
//! what waits has at most [`ROOM`] bytes, but for that one and the latest.

use std::collections::VecDeque;
use std::time::Duration;

use super::batch::SpanBatch;
use crate::tick::Tick;

/// Bytes that may wait.
const ROOM: usize = 8 << 20;
/// How long a batch is tried.
const PATIENCE: Duration = Duration::from_secs(300);
/// After the first failure, and at most.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// Batches, and how often the first of them has failed.
#[derive(Debug, Default)]
pub(super) struct BatchLine {
    waiting: VecDeque<(SpanBatch, Tick)>,
    bytes: usize,
    failures: u32,
    next: Tick,
}

impl BatchLine {
    /// Lets one wait that came at `now`. Gives the oldest ones that there is no room for beside it, of which the first is none while it
    /// `is_under_way`: a receiver that takes its time would get nothing any more.
    pub(super) fn push(&mut self, batch: SpanBatch, now: Tick, is_under_way: bool) -> Vec<SpanBatch> {
        self.bytes += batch.body.len();
        self.waiting.push_back((batch, now));
        let oldest = usize::from(is_under_way);
        let mut dropped = Vec::new();
        while self.bytes > ROOM && self.waiting.len() > oldest + 1 {
            dropped.extend(self.take(oldest));
        }
        dropped
    }

    /// Those that were tried for long enough.
    pub(super) fn expire(&mut self, now: Tick) -> Vec<SpanBatch> {
        let mut late = Vec::new();
        while self.waiting.front().is_some_and(|(_, came)| now.since(*came) >= PATIENCE) {
            late.extend(self.shift());
        }
        late
    }

    /// The one that is to be sent next, and when; `None`: none waits.
    pub(super) fn next(&self) -> Option<(&SpanBatch, Tick)> {
        self.waiting.front().map(|(batch, _)| (batch, self.next))
    }

    /// The first was sent, or is never to be: it is taken out.
    pub(super) fn settle(&mut self) -> Option<SpanBatch> {
        self.restart();
        self.shift()
    }

    /// The first was not taken. `asked`: how long the receiver wants to be left alone; `chance`: any number.
    pub(super) fn fail(&mut self, now: Tick, asked: Option<Duration>, chance: u64) {
        let [first, most] = PAUSES;
        let pause = first.saturating_mul(1 << self.failures.min(5)).min(most);
        // From half of it on, so that not all come at once.
        let half = pause / 2;
        let spread = half.saturating_mul((chance % 1024) as u32) / 1024;
        let own = half + spread;
        let pause = asked.map_or(own, |asked| asked.clamp(own, PATIENCE));
        self.failures = self.failures.saturating_add(1);
        self.next = now.after(pause);
    }

    /// Who receives has changed: what waits is due at once.
    pub(super) fn restart(&mut self) {
        (self.failures, self.next) = (0, Tick::ZERO);
    }

    /// Lets all go.
    pub(super) fn clear(&mut self) -> Vec<SpanBatch> {
        let all = std::mem::take(self);
        all.waiting.into_iter().map(|(batch, _)| batch).collect()
    }

    fn shift(&mut self) -> Option<SpanBatch> {
        self.take(0)
    }

    fn take(&mut self, place: usize) -> Option<SpanBatch> {
        let (batch, _) = self.waiting.remove(place)?;
        self.bytes -= batch.body.len();
        Some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(bytes: usize, traces: u64) -> SpanBatch {
        SpanBatch { body: vec![0; bytes].into(), spans: 2 * traces, traces }
    }

    #[test]
    fn what_fails_is_tried_again_later_and_later_and_in_order() {
        let mut line = BatchLine::default();
        let second = 1_000_000_000;
        assert!(line.next().is_none());
        assert!(
            line.push(batch(1, 1), Tick(1), false).is_empty()
                && line.push(batch(1, 2), Tick(2), false).is_empty()
        );
        let first = |line: &BatchLine| line.next().map(|(batch, at)| (batch.traces, at.0));
        assert_eq!(first(&line), Some((1, 0)));
        let mut pauses = Vec::new();
        for _ in 0..7 {
            line.fail(Tick(second), None, 1023);
            pauses.push((first(&line).unwrap().1 - second).div_ceil(second));
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        line.fail(Tick(second), None, 0);
        assert_eq!(first(&line), Some((1, 16 * second)));
        line.fail(Tick(second), Some(Duration::from_secs(7)), 1023);
        assert_eq!(
            first(&line).map(|(_, at)| (at - second).div_ceil(second)),
            Some(30),
            "no sooner than by itself"
        );
        let mut hasty = BatchLine::default();
        hasty.push(batch(1, 1), Tick(1), false);
        hasty.fail(Tick(second), Some(Duration::ZERO), 1023);
        assert!(
            first(&hasty).is_some_and(|(_, at)| at > second + second / 2),
            "one that asks for no pause gets one"
        );
        hasty.fail(Tick(second), Some(Duration::from_secs(7)), 1023);
        assert_eq!(first(&hasty), Some((1, 8 * second)), "as long as it asks for");
        hasty.fail(Tick(second), Some(Duration::MAX), 1023);
        assert_eq!(first(&hasty), Some((1, second + 300 * second)), "within reason");
        hasty.restart();
        assert_eq!(first(&hasty), Some((1, 0)), "another receiver has asked for nothing");
        assert_eq!(line.settle().map(|batch| batch.traces), Some(1));
        assert_eq!(first(&line), Some((2, 0)));
    }

    #[test]
    fn what_is_too_much_or_too_old_goes_the_oldest_first() {
        let mut line = BatchLine::default();
        let of = |gone: Vec<SpanBatch>| gone.iter().map(|batch| batch.traces).collect::<Vec<_>>();
        for number in 1..=4 {
            assert_eq!(of(line.push(batch(ROOM / 4, number), Tick(number), false)), [0; 0]);
        }
        assert_eq!(of(line.push(batch(1, 5), Tick(5), false)), [1]);
        assert_eq!(of(line.push(batch(2 * ROOM, 6), Tick(6), false)), [2, 3, 4, 5]);
        assert_eq!(of(line.expire(Tick(5).after(PATIENCE))), [0; 0]);
        assert_eq!(of(line.expire(Tick(6).after(PATIENCE))), [6]);
        assert_eq!((line.bytes, line.clear().len()), (0, 0));
        // The one that is under way stays, and so does the latest.
        for number in 1..=4 {
            assert_eq!(of(line.push(batch(ROOM / 4, number), Tick(number), true)), [0; 0]);
        }
        assert_eq!(of(line.push(batch(1, 5), Tick(5), true)), [2]);
        assert_eq!(of(line.push(batch(2 * ROOM, 6), Tick(6), true)), [3, 4, 5]);
        assert_eq!(of(line.clear()), [1, 6]);
    }
}
