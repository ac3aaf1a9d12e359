//! What a reload would do to this very process, found out without doing it.
//!
//! The next snapshot is prepared as for a reload, compared with the one in force, and dropped. New addresses are bound and let go
//! at once, without listening, so that nobody connects to a process that would not serve.

use std::time::SystemTime;

use super::Reloader;
use super::difference::difference;
use super::objects::objects;
use super::plan::{Plan, PlanVerdict};
use super::{Refused, restarts};
use crate::config::{Effective, Loaded};

impl Reloader {
    /// What putting `loaded` into force would do. Nothing changes. `rows` are those of the config in force.
    pub async fn plan(&self, loaded: &Loaded, rows: &[Effective]) -> Plan {
        let _turn = self.turn.lock().await;
        let state = self.state();
        let deployed = &state.deployed;
        let mut refused: Vec<Refused> = restarts(&deployed.config, &loaded.config)
            .into_iter()
            .map(|key| Refused::Restart { key })
            .collect();
        if self.shutdown.drain.is_cancelled() {
            refused.push(Refused::Ending);
        }
        let draft = self.snapshots.prepare(&loaded.config);
        let next = draft.snapshot();
        let matching = deployed.places.compare(next);
        refused.extend(deployed.places.try_out(&matching).into_iter().map(Refused::Bind));
        refused.extend(deployed.logs.try_out(loaded.config.access_log.as_ref()).map(Refused::AccessLog));
        let addresses = deployed.places.changes(&matching);
        drop(state);
        let before = self.snapshots.current();
        let differing = difference(rows, &loaded.effective);
        let objects = before.map(|before| objects(&before, next, &differing)).unwrap_or_default();
        let verdict = match (refused.is_empty(), objects.is_empty() && addresses.is_empty()) {
            (false, _) => PlanVerdict::Refused,
            (true, true) => PlanVerdict::Unchanged,
            (true, false) => PlanVerdict::Taken,
        };
        let problems = refused.iter().map(|refused| refused.fault(&loaded.effective)).collect();
        let warnings = loaded.all_warnings(SystemTime::now());
        Plan { verdict, objects, addresses, problems, warnings, over: Vec::new() }
    }
}
