//! What names have as addresses is told to all nodes, and by them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::names::{Askers, clearing, orders, writing};
use super::sharing::Together;
use crate::cluster::membership::Standing;
use crate::cluster::revision::current;
use crate::cluster::view::ClusterView;
use crate::reload::begun::now_ms;
use crate::reload::running::RunningConfig;

/// What is found within this time is written together.
const TOGETHER: Duration = Duration::from_millis(20);
/// After a store that would not take it.
const PAUSE: Duration = Duration::from_millis(500);

impl RunningConfig {
    /// Shares with other nodes who asks for which name and what comes of it, until the process drains. Called inside of the control runtime.
    pub async fn share_names(&self) {
        let Some(together) = &self.together else { return };
        let (mut views, mut configs) = (together.node.views(), self.configs());
        let mut found = self.discovery().found();
        // What it has looked at last, and whether all is written that comes of it; until when it counts as one that was cut off.
        let (mut looked, mut is_written) = (None, false);
        let (mut was_member, mut back) = (None, None::<Instant>);
        loop {
            // Before it is looked at, so that nothing is missed.
            found.mark_unchanged();
            let view = Arc::clone(&views.borrow_and_update());
            let is_member = view.standing == Standing::Member;
            if was_member == Some(false) && is_member {
                back = Some(Instant::now() + together.node.lease());
            }
            // One that has never been a member was not cut off.
            was_member = was_member.map_or(is_member.then_some(true), |_| Some(is_member));
            let is_back = back.is_some_and(|until| Instant::now() < until);
            let areas = ["name", "node"].map(|area| view.rows.touched(area));
            let now = (view.standing.clone(), areas, is_back);
            if !is_written || looked.as_ref() != Some(&now) {
                is_written = self.share_found(together, &view, is_back).await;
                looked = Some(now);
            }
            if !is_written && views.has_changed().is_ok() {
                sleep(PAUSE).await;
                continue;
            }
            let changed = tokio::select! {
                changed = views.changed() => changed,
                changed = configs.changed() => { looked = None; changed }
                changed = found.changed() => {
                    looked = None;
                    sleep(TOGETHER).await;
                    changed
                }
                () = sleep_until(back.unwrap_or_else(Instant::now)), if is_back => Ok(()),
            };
            if changed.is_err() {
                return;
            }
        }
    }

    /// Says whether all is told that there is to tell.
    async fn share_found(&self, together: &Together, view: &ClusterView, is_back: bool) -> bool {
        let discovery = self.discovery();
        if view.standing != Standing::Member {
            discovery.order(&std::collections::HashMap::new());
            return true;
        }
        let nodes = view.nodes();
        let sharing = nodes.iter().filter(|node| node.row.shares);
        let sharing = sharing.map(|node| (node.name.as_str(), node.row.boot.as_str()));
        let askers = Askers { nodes: sharing.collect(), own: &view.node, boot: &view.boot, is_back };
        discovery.order(&orders(&view.rows, &askers, &discovery.findings()));
        // With what it has just been told.
        let findings = discovery.findings();
        let is_first = |name: &str| view.first_for(name).as_deref() == Some(&*view.node);
        // Who is behind with the config does not know what is over.
        let is_current = together.in_force().map(|row| row.number) == current(&view.rows);
        let cleared = clearing(&view.rows, &askers, &findings, &is_first);
        // It will, or is not to: that is looked at again.
        let mut is_written = cleared.is_none() || is_current;
        let cleared = cleared.filter(|_| is_current);
        for transaction in writing(&view.rows, &askers, &findings, now_ms()).into_iter().chain(cleared) {
            // Where another was first its row is on its way.
            is_written &= together.node.commit(transaction).await.is_ok();
        }
        is_written
    }
}
