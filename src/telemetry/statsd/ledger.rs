//! What has been told of each counter.
//!
//! Invariant: what was told of all series of a family, together, is what they had counted, as far as datagrams have arrived; however
//! series come and go. Where counts of a series go over to another one, all of them as those of a backend that is gone, or a part, so does
//! what was told of them and the series has not counted since; and where they come back from it, so does what was told. So of no series more was told
//! than it has counted, and then their sums differ by what is to be told. A series without an heir that has counted less than was told of it begins anew.

use std::collections::{HashMap, HashSet};

use super::reading::StatsdReading;
use super::series::SeriesKey;

/// What has been told of each counter.
#[derive(Debug)]
pub struct StatsdLedger {
    /// For a label, the value under which the counts go on of those that are gone.
    heirs: &'static [(&'static str, &'static str)],
    told: HashMap<SeriesKey, u64>,
}

impl StatsdLedger {
    /// One by which nothing has been told.
    #[must_use]
    pub fn new(heirs: &'static [(&'static str, &'static str)]) -> StatsdLedger {
        StatsdLedger { heirs, told: HashMap::new() }
    }

    /// Takes all that was counted for told.
    pub fn skip(&mut self, reading: StatsdReading) {
        self.told = reading.counters.into_iter().collect();
    }

    /// What has this label counts from zero: it is somebody else's.
    pub fn renew(&mut self, label: &str, value: &str) {
        self.told.retain(|key, _| !key.has(label, value));
    }

    /// Goes over to the series that there are now.
    pub fn settle(&mut self, reading: &StatsdReading) {
        let now: HashMap<&SeriesKey, u64> =
            reading.counters.iter().map(|(key, value)| (key, *value)).collect();
        let is_over = |key: &SeriesKey, told: u64| now.get(key).is_none_or(|value| *value < told);
        let over: Vec<SeriesKey> =
            self.told.iter().filter(|(key, told)| is_over(key, **told)).map(|(key, _)| key.clone()).collect();
        for key in over {
            match self.heir(&key) {
                // It waits until it has counted more than was told.
                Some(heir) if heir == key => {}
                Some(heir) => {
                    let told = self.told.remove(&key).unwrap_or(0);
                    // As much as it can't have counted itself. The rest may have gone over too, but then the same was counted anew.
                    let kept = now.get(&key).map_or(0, |value| (*value).min(told));
                    self.told.insert(key, kept);
                    *self.told.entry(heir).or_default() += told - kept;
                }
                None => drop(self.told.remove(&key)),
            }
        }
        self.give_back(&now);
        let there: HashSet<&SeriesKey> = now.into_keys().collect();
        self.told.retain(|key, _| there.contains(key));
    }

    /// Counts come back from an heir: of two backends of one name the one that left later has it, and may be gone before the other. What was told of
    /// them comes back with them.
    fn give_back(&mut self, now: &HashMap<&SeriesKey, u64>) {
        for (key, value) in now {
            let Some(heir) = self.heir(key).filter(|heir| heir != *key) else { continue };
            let there = now.get(&heir).copied().unwrap_or(0);
            let spare = self.told.get(&heir).map_or(0, |told| told.saturating_sub(there));
            let back = spare.min(self.left(key, *value));
            if back > 0 {
                *self.told.entry(heir).or_default() -= back;
                self.tell(SeriesKey::clone(key), back);
            }
        }
    }

    /// What has been counted and not been told.
    #[must_use]
    pub(super) fn left(&self, key: &SeriesKey, value: u64) -> u64 {
        value.saturating_sub(self.told.get(key).copied().unwrap_or(0))
    }

    /// So much more has been told.
    pub fn tell(&mut self, key: SeriesKey, more: u64) {
        *self.told.entry(key).or_default() += more;
    }

    /// Where the counts of a series go once it is gone.
    fn heir(&self, key: &SeriesKey) -> Option<SeriesKey> {
        self.heirs.iter().find_map(|(label, value)| key.with(label, value))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::telemetry::exposition::{FamilyHead, Labels, MetricKind, SampleSink as _};

    const FAMILY: FamilyHead =
        FamilyHead { name: "evenkeel_upstream_requests_total", kind: MetricKind::Counter, help: "Requests." };

    /// What happens to a target.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// So many requests to the backend of this name, if there is one.
        Requests(u8, u8),
        /// It is taken out, or comes in; what it had counted stays with those that are gone.
        Swap(u8),
        /// Another one takes its name.
        Replace(u8),
        /// So much of what it had counted goes to those that are gone.
        Part(u8, u8),
        /// So much comes back: somebody who left before has the name again.
        Return(u8, u8),
        /// All is read and sent, and arrives or does not.
        Look(bool),
        /// Another target takes the name of this one, which begins anew. What was counted and not told goes with it.
        Renew,
    }

    fn steps() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..3_u8, 0..9_u8).prop_map(|(name, count)| Step::Requests(name, count)),
            2 => (0..3_u8).prop_map(Step::Swap),
            1 => (0..3_u8).prop_map(Step::Replace),
            1 => (0..3_u8, 0..9_u8).prop_map(|(name, count)| Step::Part(name, count)),
            1 => (0..3_u8, 0..9_u8).prop_map(|(name, count)| Step::Return(name, count)),
            3 => any::<bool>().prop_map(Step::Look),
            1 => Just(Step::Renew),
        ]
    }

    fn read(backends: &BTreeMap<u8, u64>, gone: u64) -> StatsdReading {
        let mut reading = StatsdReading::default();
        reading.begin(&FAMILY);
        let labels = |backend: &str| Labels::of(&[("target", "web"), ("backend", backend)]);
        backends.iter().for_each(|(name, count)| reading.count(&labels(&format!("b{name}")), *count));
        if gone > 0 {
            reading.count(&labels("removed backends"), gone);
        }
        reading
    }

    proptest! {
        #[test]
        fn what_is_told_adds_up_to_what_was_counted(all in prop::collection::vec(steps(), 0..60)) {
            let mut ledger = StatsdLedger::new(&[("backend", "removed backends")]);
            let (mut backends, mut gone, mut told, mut counted) = (BTreeMap::from([(0, 0)]), 0, 0, 0);
            for step in all.into_iter().chain([Step::Look(true)]) {
                match step {
                    Step::Requests(name, count) => if let Some(own) = backends.get_mut(&name) {
                        *own += u64::from(count);
                        counted += u64::from(count);
                    },
                    Step::Swap(name) => match backends.remove(&name) {
                        Some(own) => gone += own,
                        None => { backends.insert(name, 0); }
                    },
                    Step::Replace(name) => if let Some(own) = backends.get_mut(&name) {
                        gone += std::mem::take(own);
                    },
                    Step::Part(name, count) => if let Some(own) = backends.get_mut(&name) {
                        let part = u64::from(count).min(*own);
                        *own -= part;
                        gone += part;
                    },
                    Step::Return(name, count) => if let Some(own) = backends.get_mut(&name) {
                        let part = u64::from(count).min(gone);
                        *own += part;
                        gone -= part;
                    },
                    Step::Renew => {
                        backends.values_mut().for_each(|own| *own = 0);
                        gone = 0;
                        counted = told;
                        ledger.renew("target", "web");
                    }
                    Step::Look(arrives) => {
                        let reading = read(&backends, gone);
                        ledger.settle(&reading);
                        for (key, value) in reading.counters {
                            let more = ledger.left(&key, value);
                            if arrives && more > 0 {
                                told += more;
                                ledger.tell(key, more);
                            }
                        }
                        prop_assert!(told <= counted);
                        prop_assert!(!arrives || told == counted);
                    }
                }
            }
        }
    }

    #[test]
    fn what_was_counted_before_is_not_told_and_what_has_no_heir_begins_anew() {
        let mut ledger = StatsdLedger::new(&[]);
        ledger.skip(read(&BTreeMap::from([(0, 7)]), 0));
        let left = |ledger: &StatsdLedger, count| {
            let reading = read(&BTreeMap::from([(0, count)]), 0);
            ledger.left(&reading.counters[0].0, count)
        };
        assert_eq!((left(&ledger, 7), left(&ledger, 9)), (0, 2));
        ledger.settle(&read(&BTreeMap::from([(0, 3)]), 0));
        assert_eq!(left(&ledger, 3), 3);
    }
}
