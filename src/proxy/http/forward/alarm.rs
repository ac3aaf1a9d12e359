//! The times that are counted from the request, not from its bytes: of one attempt, and of all of them.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::config::model::Timeouts;
use crate::message::Cause;
use crate::net::{Deadline, Ticker, now};
use crate::tick::Tick;

/// When a request, and its attempt, have taken too long. One deadline serves both.
pub struct Alarm {
    deadline: Deadline,
    attempt: Option<Duration>,
    total: Tick,
    /// What it is when that has come.
    over: Cause,
    /// What it is when the deadline has come.
    cause: Cell<Cause>,
}

impl Alarm {
    /// For a request whose head was complete at `start`, and which is over at `due` by its own word; `None`: it may take any time.
    #[must_use]
    #[inline]
    pub fn new(timeouts: &Timeouts, ticker: &Rc<Ticker>, start: Tick, due: Tick) -> Option<Box<Alarm>> {
        if timeouts.total.is_none() && timeouts.attempt.is_none() && due == Tick::NEVER {
            return None;
        }
        Some(Alarm::set_up(timeouts, ticker, start, due))
    }

    #[inline(never)]
    fn set_up(timeouts: &Timeouts, ticker: &Rc<Ticker>, start: Tick, due: Tick) -> Box<Alarm> {
        let total = timeouts.total.map_or(Tick::NEVER, |total| start.after(total));
        let (total, over) =
            if due < total { (due, Cause::GrpcTimeout) } else { (total, Cause::TotalTimeout) };
        let cause = Cell::new(over);
        let alarm = Alarm { deadline: ticker.deadline(), attempt: timeouts.attempt, total, over, cause };
        alarm.begin_wait();
        Box::new(alarm)
    }

    /// An attempt begins, on a backend that was picked at `picked`.
    pub fn begin_attempt(&self, picked: Tick) {
        let due = self.attempt.map_or(Tick::NEVER, |attempt| picked.after(attempt));
        let first = if due < self.total { Cause::AttemptTimeout } else { self.over };
        self.set(due.min(self.total), first);
    }

    /// No attempt is under way: only the total counts.
    pub fn begin_wait(&self) {
        self.set(self.total, self.over);
    }

    fn set(&self, due: Tick, cause: Cause) {
        self.cause.set(cause);
        if due == Tick::NEVER {
            self.deadline.clear();
        } else {
            self.deadline.set(due.since(now()));
        }
    }

    /// What is left of the total time at `now`; `None`: any.
    #[must_use]
    pub fn left(&self, now: Tick) -> Option<Duration> {
        (self.total != Tick::NEVER).then(|| self.total.since(now))
    }

    /// What it is when all of the time has gone: [`Cause::TotalTimeout`] or [`Cause::GrpcTimeout`].
    #[must_use]
    pub fn over(&self) -> Cause {
        self.over
    }

    /// Ready with [`Cause::AttemptTimeout`] or [`Alarm::over`].
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<Cause> {
        // A late one may have come for both.
        let cause = || if now() < self.total { self.cause.get() } else { self.over };
        self.deadline.poll(cx).map(|()| cause())
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn alarm(
        attempt: Option<u64>,
        total: Option<u64>,
        ticker: &Rc<Ticker>,
        start: Tick,
    ) -> Option<Box<Alarm>> {
        let timeouts = Timeouts {
            attempt: attempt.map(Duration::from_secs),
            total: total.map(Duration::from_secs),
            ..Timeouts::default()
        };
        Alarm::new(&timeouts, ticker, start, Tick::NEVER)
    }

    #[test]
    fn whichever_comes_first_rings_and_the_total_goes_on_over_attempts() {
        let ticker = Ticker::new();
        let start = now();
        assert!(alarm(None, None, &ticker, start).is_none());
        let alarm = alarm(Some(10), Some(25), &ticker, start).expect("both are set");
        let poll = |seconds| {
            ticker.tick(start.after(Duration::from_secs(seconds)));
            alarm.poll(&mut Context::from_waker(Waker::noop()))
        };
        assert_eq!(alarm.left(start.after(Duration::from_secs(24))), Some(Duration::from_secs(1)));
        alarm.begin_attempt(start);
        assert_eq!(poll(9), Poll::Pending);
        assert_eq!(poll(11), Poll::Ready(Cause::AttemptTimeout));
        alarm.begin_wait();
        assert_eq!(alarm.poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
        ticker.tick(start);
        alarm.begin_attempt(start.after(Duration::from_secs(20)));
        assert_eq!(poll(24), Poll::Pending);
        assert_eq!(poll(26), Poll::Ready(Cause::TotalTimeout));
    }

    #[test]
    fn the_time_that_a_call_was_given_counts_if_it_is_the_shorter_one() {
        let (ticker, start) = (Ticker::new(), now());
        for (total, given, cause) in [
            (None, 5, Cause::GrpcTimeout),
            (Some(9), 5, Cause::GrpcTimeout),
            (Some(4), 5, Cause::TotalTimeout),
        ] {
            let timeouts = Timeouts { total: total.map(Duration::from_secs), ..Timeouts::default() };
            let due = start.after(Duration::from_secs(given));
            let alarm = Alarm::new(&timeouts, &ticker, start, due).expect("it is set");
            alarm.begin_attempt(start);
            ticker.tick(start.after(Duration::from_secs(10)));
            assert_eq!(alarm.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(cause));
            assert_eq!(alarm.over(), cause);
            ticker.tick(start);
        }
    }

    #[test]
    fn one_alone_is_enough() {
        let ticker = Ticker::new();
        let start = now();
        let only = alarm(Some(10), None, &ticker, start).expect("one is set");
        assert_eq!(only.left(start), None);
        let poll = |alarm: &Alarm| alarm.poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(poll(&only), Poll::Pending);
        only.begin_attempt(start);
        ticker.tick(start.after(Duration::from_secs(11)));
        assert_eq!(poll(&only), Poll::Ready(Cause::AttemptTimeout));
        only.begin_wait();
        assert_eq!(poll(&only), Poll::Pending);
    }
}
