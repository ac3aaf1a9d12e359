//! A simulated backend while it runs: slots, the queue before them, and how it behaves at a moment.

use std::collections::VecDeque;

use super::workload::{Conduct, Fake, Phase};
use crate::tick::nanos;

/// A backend that runs.
#[derive(Debug)]
pub(super) struct RunningRequest<'a> {
    fake: &'a Fake,
    free: u32,
    queue: VecDeque<u32>,
    /// Nanoseconds that slots have been taken, in all.
    busy: u64,
    /// Requests that were sent to it.
    pub(super) requests: u64,
    /// What is due of the next request that a flaky backend spoils: at 1 it is.
    spoilt: f64,
}

/// What a backend makes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The answer begins after so many nanoseconds.
    Good(u64),
    /// 500, after so many.
    Fault(u64),
}

impl<'a> RunningRequest<'a> {
    pub(super) fn new(fake: &'a Fake) -> RunningRequest<'a> {
        RunningRequest {
            fake,
            free: fake.slots.max(1),
            queue: VecDeque::new(),
            busy: 0,
            requests: 0,
            spoilt: 0.0,
        }
    }

    /// How it behaves so many nanoseconds after the start, and for how long it has.
    fn conduct(&self, elapsed: u64) -> (Conduct, u64) {
        let elapsed = match self.fake.period {
            Some(period) => elapsed % nanos(period).max(1),
            None => elapsed,
        };
        let last = self.fake.phases.iter().rfind(|phase| nanos(phase.from) <= elapsed);
        last.map_or((Conduct::Well, elapsed), |&Phase { from, conduct }| (conduct, elapsed - nanos(from)))
    }

    pub(super) fn refuses(&self, elapsed: u64) -> bool {
        !self.fake.phases.is_empty() && self.conduct(elapsed).0 == Conduct::Refuses
    }

    /// Takes a slot, or queues the request. Says whether it got a slot.
    pub(super) fn admit(&mut self, request: u32) -> bool {
        self.requests += 1;
        let has_slot = self.free > 0;
        if has_slot {
            self.free -= 1;
        } else {
            self.queue.push_back(request);
        }
        has_slot
    }

    /// Gives a slot back; says which request gets it.
    pub(super) fn release(&mut self) -> Option<u32> {
        let next = self.queue.pop_front();
        if next.is_none() {
            self.free += 1;
        }
        next
    }

    /// What becomes of a request that gets a slot now and takes `service` where all is well; `transfer` is how long its
    /// answer keeps the slot after that.
    pub(super) fn serve(&mut self, elapsed: u64, service: u64, transfer: u64) -> Answer {
        let factor = match self.conduct(elapsed) {
            (Conduct::Well | Conduct::Refuses, _) => 1.0,
            (Conduct::Flaky(share), _) => {
                self.spoilt += share;
                if self.spoilt >= 1.0 {
                    self.spoilt -= 1.0;
                    self.busy += service;
                    return Answer::Fault(service);
                }
                1.0
            }
            (Conduct::Slow(factor), _) => factor,
            (Conduct::FailsFast(after), _) => {
                self.busy += nanos(after);
                return Answer::Fault(nanos(after));
            }
            (Conduct::Warms { factor, over }, since) => {
                let left = 1.0 - since as f64 / nanos(over).max(1) as f64;
                1.0 + (factor - 1.0) * left.max(0.0)
            }
        };
        let service = if factor == 1.0 { service } else { (service as f64 * factor) as u64 };
        self.busy += service + transfer;
        Answer::Good(service)
    }

    /// Nanoseconds that a slot of it was taken on average.
    pub(super) fn busy(&self) -> f64 {
        self.busy as f64 / f64::from(self.fake.slots.max(1))
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn requests_beyond_the_slots_wait_in_order() {
        let fake = Fake::new(2);
        let mut running = RunningRequest::new(&fake);
        assert_eq!([1, 2, 3, 4].map(|request| running.admit(request)), [true, true, false, false]);
        assert_eq!(
            [running.release(), running.release(), running.release(), running.release()],
            [Some(3), Some(4), None, None]
        );
        assert!(running.admit(5) && running.admit(6) && !running.admit(7), "there are still two slots");
    }

    #[test]
    fn a_flapping_backend_refuses_in_the_second_half_of_each_period() {
        let refuses = Phase { from: Duration::from_secs(5), conduct: Conduct::Refuses };
        let fake = Fake { phases: vec![refuses], period: Some(Duration::from_secs(10)), ..Fake::new(1) };
        let running = RunningRequest::new(&fake);
        let at = [0, 4, 5, 9, 10, 14, 15, 27].map(|second| running.refuses(second * SECOND));
        assert_eq!(at, [false, false, true, true, false, false, true, true]);
    }

    #[test]
    fn a_flaky_backend_spoils_its_share() {
        let fake = Fake::always(1, Conduct::Flaky(0.3));
        let mut running = RunningRequest::new(&fake);
        let spoilt = (0..100).filter(|_| running.serve(0, 10, 5) == Answer::Fault(10)).count();
        assert!((29..=30).contains(&spoilt), "{spoilt}");
    }

    #[test]
    fn a_cold_backend_gets_warm_evenly_and_a_failing_one_does_not_work() {
        let over = Duration::from_secs(10);
        let warms = Phase { from: Duration::from_secs(5), conduct: Conduct::Warms { factor: 11.0, over } };
        let fails = Conduct::FailsFast(Duration::from_nanos(7));
        let fails = Phase { from: Duration::from_secs(30), conduct: fails };
        let fake = Fake { phases: vec![warms, fails], ..Fake::new(4) };
        let mut running = RunningRequest::new(&fake);
        let answers = [0, 5, 10, 15, 20, 30].map(|second| running.serve(second * SECOND, 1000, 500));
        let good = [1000, 11_000, 6000, 1000, 1000].map(Answer::Good);
        assert_eq!(answers[..5], good);
        assert_eq!(answers[5], Answer::Fault(7));
        assert_eq!(running.busy(), (20_000.0 + 5.0 * 500.0 + 7.0) / 4.0);
    }
}
