//! How busy backends are, second by second.

use crate::tick::Tick;

/// A second.
const SECOND: f64 = 1e9;

/// What one backend has worked, in nanoseconds of one of its slots.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    done: u64,
    under_way: u64,
    /// When those under way began, added up.
    begun: u64,
    /// All that it had worked a second ago.
    before: u64,
}

/// How much busier one backend is than another one.
#[derive(Debug)]
pub(super) struct WorkTimes {
    backends: Vec<Work>,
    slots: u32,
    /// By how many points the busiest and the idlest of a second differ.
    apart: Vec<f64>,
}

impl WorkTimes {
    /// Of so many backends, with so many slots each.
    pub(super) fn of(backends: usize, slots: u32) -> WorkTimes {
        WorkTimes { backends: vec![Work::default(); backends], slots, apart: Vec::new() }
    }

    pub(super) fn begin(&mut self, place: usize, now: Tick) {
        let work = &mut self.backends[place];
        work.under_way += 1;
        work.begun += now.0;
    }

    /// One ends that has worked so many nanoseconds.
    pub(super) fn end(&mut self, place: usize, service: u64, now: Tick) {
        let work = &mut self.backends[place];
        work.under_way -= 1;
        work.begun -= now.0 - service;
        work.done += service;
    }

    /// A second is over, which `counts` or does not.
    pub(super) fn second(&mut self, now: Tick, counts: bool) {
        let (mut idlest, mut busiest) = (f64::MAX, 0.0_f64);
        for work in &mut self.backends {
            let total = work.done + (work.under_way * now.0 - work.begun);
            let share = (total - work.before) as f64 / SECOND / f64::from(self.slots) * 100.0;
            (idlest, busiest) = (idlest.min(share), busiest.max(share));
            work.before = total;
        }
        if counts {
            self.apart.push(busiest - idlest);
        }
    }

    /// The median of all seconds that count, in points; 0 where there was none.
    pub(super) fn apart(&mut self) -> f64 {
        self.apart.sort_by(f64::total_cmp);
        self.apart.get(self.apart.len() / 2).copied().unwrap_or(0.0)
    }
}
