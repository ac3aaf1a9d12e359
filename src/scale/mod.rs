//! Scale signals: which targets have too few backends, and which more than they need. Each second all of them are looked at, off the
//! workers; `decide` says what begins, which is one event, and what holds is kept with the target for those who ask.

mod decide;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use decide::{ScaleLoad, ScaleWatch};

use crate::config::model::ScaleConfig;
use crate::events;
use crate::net::now;
use crate::reload::Reloader;
use crate::targets::{ScaleSignal, Target};
use crate::tick::Tick;

/// How often is looked.
const STEP: Duration = Duration::from_secs(1);

/// Looks at the targets in force, by the thresholds in force, for ever.
pub async fn watch(reloader: &Reloader) {
    let mut rules = reloader.scale.subscribe();
    let mut watched = ScaleWatches::default();
    loop {
        let rules_now = rules.borrow_and_update().clone();
        if rules_now == ScaleConfig::default() && watched.is_empty() {
            // Nobody asks for it.
            if rules.changed().await.is_err() {
                return;
            }
            continue;
        }
        let targets = reloader.snapshots.current().map(|snapshot| snapshot.targets.clone());
        watched.look(&rules_now, &targets.unwrap_or_default(), now());
        tokio::time::sleep(STEP).await;
    }
}

/// What is known of each target, by name.
#[derive(Debug, Default)]
struct ScaleWatches(HashMap<Arc<str>, ScaleWatch>);

impl ScaleWatches {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Looks at each of them, and forgets those that are gone. Without rules it has nothing to know.
    fn look(&mut self, rules: &ScaleConfig, targets: &[Arc<Target>], now: Tick) {
        self.0.retain(|name, _| targets.iter().any(|target| target.name == *name));
        for target in targets {
            let watch = self.0.entry(Arc::clone(&target.name)).or_default();
            let load = load(target);
            if watch.look(rules, &load, now) {
                tell(target, watch.signal(), rules, &load);
            }
            target.set_scale_signal(watch.signal());
        }
        if *rules == ScaleConfig::default() {
            self.0.clear();
        }
    }
}

fn load(target: &Target) -> ScaleLoad {
    let in_flight = target.backends.iter().map(|backend| u64::from(backend.taken())).sum();
    let room = target.serving() as u64 * u64::from(target.limit().unwrap_or(0));
    ScaleLoad { queued: target.waiting() as u64, in_flight, room }
}

fn tell(target: &Target, signal: ScaleSignal, rules: &ScaleConfig, load: &ScaleLoad) {
    match (signal, rules.out, rules.into) {
        (ScaleSignal::Out, Some(out), _) => {
            events::scale_out(&target.name, load.queued, out.queued, out.hold)
        }
        (ScaleSignal::In, _, Some(into)) => {
            events::scale_in(&target.name, (load.in_flight, load.room), into.busy, into.hold);
        }
        (ScaleSignal::None | ScaleSignal::Out | ScaleSignal::In, _, _) => {}
    }
}
