//! Finds out now and then which requests are slow, for the workers' flight recorders.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Runtime;

use crate::lasting::again;
use crate::net::now;
use crate::reload::Reloader;
use crate::telemetry::cells::Readings;
use crate::telemetry::recorder::{LOOK, SlowFinder};

/// Goes on doing so until the process ends.
pub(super) fn mark(control: &Runtime, reloader: &Arc<Reloader>) {
    let (finder, reloader) = (Arc::<Mutex<SlowFinder>>::default(), Arc::clone(reloader));
    let look = async move || {
        let mut looks = tokio::time::interval(LOOK);
        loop {
            looks.tick().await;
            look(&finder, &reloader);
        }
    };
    control.spawn(again("finding out what is slow", look));
}

fn look(finder: &Mutex<SlowFinder>, reloader: &Reloader) {
    let Some(snapshot) = reloader.snapshots.current().filter(|current| !current.recorders.is_empty()) else {
        return;
    };
    let readings = Readings::sum(&reloader.cells);
    let targets = snapshot.targets.iter().map(|target| target.id);
    let durations = targets.filter_map(|id| Some((id, &readings.target(id)?.stages.duration)));
    let mut finder = finder.lock().unwrap_or_else(PoisonError::into_inner);
    finder.look(durations, now(), &reloader.snapshots.observers().slow);
}
