//! What backends are to all nodes: told to the probes of this one, and by them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::health::{Probers, clearing, orders, writing};
use super::sharing::Together;
use crate::cluster::membership::Standing;
use crate::cluster::revision::current;
use crate::cluster::view::ClusterView;
use crate::probe::desk::ProbeOrders;
use crate::reload::begun::now_ms;
use crate::reload::running::RunningConfig;

/// What is found out within this time is written together.
const TOGETHER: Duration = Duration::from_millis(20);
/// After a store that would not take it.
const PAUSE: Duration = Duration::from_millis(500);

impl RunningConfig {
    /// Shares with other nodes who probes what and what comes of it, until the process drains.
    pub async fn follow_health(&self) {
        let Some(together) = &self.together else { return };
        let desk = Arc::clone(&self.reloader.probe_desk);
        desk.share();
        let (mut views, mut configs) = (together.node.views(), self.configs());
        // What it has looked at last, and whether all is written that comes of it.
        let (mut looked, mut is_written) = (None, false);
        loop {
            // Before it is looked at, so that nothing is missed.
            let finding = desk.finding();
            let view = Arc::clone(&views.borrow_and_update());
            let now = (view.standing.clone(), view.rows.touched("health"), view.rows.touched("node"));
            if !is_written || looked.as_ref() != Some(&now) {
                is_written = self.share_health(together, &view).await;
                looked = Some(now);
            }
            tokio::select! {
                changed = views.changed() => if changed.is_err() { return },
                changed = configs.changed() => match changed {
                    Ok(()) => looked = None,
                    Err(_) => return,
                },
                () = finding => {
                    looked = None;
                    sleep(TOGETHER).await;
                }
                () = sleep(PAUSE), if !is_written => {}
            }
        }
    }

    /// Says whether all is told that there is to tell.
    async fn share_health(&self, together: &Together, view: &ClusterView) -> bool {
        let desk = &self.reloader.probe_desk;
        if view.standing != Standing::Member {
            desk.order(ProbeOrders::default());
            return true;
        }
        let Some(snapshot) = self.reloader.snapshots.current() else { return true };
        let probed = snapshot.targets.iter().filter(|target| target.config.health.is_some());
        let identities: Vec<Arc<str>> =
            probed.flat_map(|target| &target.backends).map(|backend| Arc::clone(&backend.identity)).collect();
        let nodes = view.nodes();
        let sharing = nodes.iter().filter(|node| node.row.shares).map(|node| node.name.as_str());
        let probers = Probers { nodes: sharing.collect(), own: &view.node };
        desk.order(orders(&view.rows, &probers, &identities));
        let there: HashSet<&Arc<str>> = identities.iter().collect();
        let mut found = desk.found();
        found.retain(|identity, _| there.contains(identity));
        let mut is_written = true;
        // Who is behind with the config does not know what is over.
        let is_current = together.in_force().map(|row| row.number) == current(&view.rows);
        let cleared = clearing(&view.rows, &probers, &identities).filter(|_| is_current);
        for transaction in writing(&view.rows, &probers, &found, now_ms()).into_iter().chain(cleared) {
            // Where another was first its row is on its way.
            is_written &= together.node.commit(transaction).await.is_ok();
        }
        is_written
    }
}
