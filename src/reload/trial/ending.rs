//! What ends a trial by itself: its time, or the judge.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch::Receiver;
use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until};

use super::{ApplyFault, TrialView};
use crate::net::now;
use crate::reload::judge::past::{PAST_STEP, TrafficPast};
use crate::reload::judge::sample::{Sampler, TrafficSample};
use crate::reload::judge::{Judge, LOOK};
use crate::reload::running::RunningConfig;

/// Until a rollback that failed is tried again.
const AGAIN: Duration = Duration::from_secs(1);

impl RunningConfig {
    /// Takes back what is on trial when its time is over or it makes things worse; ends itself never. Called inside of the control
    /// runtime.
    pub async fn keep_trial(&self) {
        let mut trials = self.trial.subscribe();
        let (mut sampler, mut past) = (Sampler::default(), TrafficPast::default());
        let mut steps = interval(PAST_STEP);
        steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let on_trial = trials.borrow_and_update().clone();
            if let Some(trial) = on_trial {
                past.pause();
                self.watch_over(&trial, &mut trials, &mut sampler, &past).await;
                continue;
            }
            tokio::select! {
                // Where nothing can be applied nobody need know how it was before.
                _ = steps.tick(), if self.place.is_some() => {
                    if let Some(sample) = self.sample(&mut sampler) {
                        past.note(sample);
                    }
                }
                changed = trials.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Returns when this trial is over.
    async fn watch_over(
        &self,
        trial: &TrialView,
        trials: &mut Receiver<Option<Arc<TrialView>>>,
        sampler: &mut Sampler,
        past: &TrafficPast,
    ) {
        let begun = self.sample(sampler).filter(|_| !trial.touched.is_nothing());
        let mut judge = begun.map(|begun| Judge::new(past, &trial.touched, begun));
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let why = loop {
            tokio::select! {
                _ = trials.changed() => return,
                () = sleep_until(trial.deadline) => break "it was not confirmed in time".to_owned(),
                _ = looks.tick(), if judge.is_some() => {
                    let sample = self.sample(sampler);
                    if let Some(worse) = judge.as_mut().zip(sample).and_then(|(judge, now)| judge.look(now)) {
                        break worse.to_string();
                    }
                }
            }
        };
        while matches!(self.roll_back(Some(trial.number), &why).await, Err(ApplyFault::Refused(_))) {
            sleep(AGAIN).await;
        }
    }

    fn sample(&self, sampler: &mut Sampler) -> Option<TrafficSample> {
        let snapshot = self.reloader.snapshots.current()?;
        Some(sampler.sample(&snapshot, &self.reloader.cells, now()))
    }
}
