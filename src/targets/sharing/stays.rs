//! How long requests stay on the backends of a target: by Little's law, from how many are there and how many come.

use std::collections::HashMap;
use std::time::Duration;

use crate::message::BackendId;
use crate::targets::Target;
use crate::targets::resilience::attempt_counts::Reading;
use crate::tick::Tick;

/// Seconds over which it is looked at.
const SPAN: f64 = 10.0;
/// Requests without which nothing is known.
const ENOUGH: f64 = 10.0;

/// What is known of one target.
#[derive(Debug, Default)]
pub struct Stays {
    readings: HashMap<BackendId, Reading>,
    looked: Option<Tick>,
    /// Seconds that requests were there, all together; what is old counts less and less.
    there: f64,
    /// Requests that came, in the same manner.
    came: f64,
}

impl Stays {
    /// Looks again, some time after the last look.
    pub fn look(&mut self, target: &Target, now: Tick) {
        let passed = self.looked.replace(now).map(|before| now.since(before).as_secs_f64());
        let mut there = 0;
        let mut readings = HashMap::with_capacity(target.backends.len());
        let mut came = 0;
        for backend in &target.backends {
            let reading = backend.attempt_counts().read();
            let before = self.readings.get(&backend.id).copied().unwrap_or(reading);
            there += u64::from(backend.in_flight());
            came += u64::from(reading.since(before).attempts);
            readings.insert(backend.id, reading);
        }
        self.readings = readings;
        let Some(passed) = passed else { return };
        let stays = (-passed / SPAN).exp();
        self.there = self.there * stays + there as f64 * passed;
        self.came = self.came * stays + came as f64;
    }

    /// How long a request stays on average; `None`: too few have come.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        (self.came >= ENOUGH).then(|| Duration::from_secs_f64(self.there / self.came))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::{Balance, Policy, TargetConfig};
    use crate::targets::fixtures::{target, unprobed};
    use crate::targets::{Ask, Chance, Heard, Outcome, Pick, Tried};

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Four requests a look, of which each stays so long.
    fn mean(stay: u64, looks: u64) -> Option<Duration> {
        let target =
            target(&TargetConfig { balance: Policy::from(Balance::LeastConnections), ..unprobed(3) });
        let (mut stays, mut under_way) = (Stays::default(), Vec::new());
        for tick in 0..looks * 100 {
            let now = Tick(1_000_000_000).after(ms(tick));
            if tick % 25 == 0 {
                let Pick::Lease(lease) = target.pick(&Ask::new(&Tried::new(), &Chance::seeded(1), now))
                else {
                    panic!("any is free")
                };
                under_way.push((tick + stay, lease));
            }
            let over;
            (over, under_way) = under_way.into_iter().partition(|(end, _)| *end <= tick);
            for (_, lease) in over {
                lease.note_answer(Heard::GOOD, now);
                lease.finish(Outcome::Success, now);
            }
            if tick % 100 == 50 {
                stays.look(&target, now);
            }
        }
        stays.mean()
    }

    #[test]
    fn it_is_known_from_what_is_there_and_what_comes() {
        assert_eq!(mean(50, 3), None);
        for stay in [50, 200, 1_000] {
            let mean = mean(stay, 200).expect("many have come").as_millis();
            assert!(mean.abs_diff(u128::from(stay)) <= u128::from(stay / 10), "{mean} of {stay}");
        }
    }
}
