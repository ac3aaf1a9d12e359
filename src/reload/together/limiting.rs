//! Limits for all that count together, over all nodes: each gives out its part, by what is asked of it and of the others.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::limits::{Demand, is_news, part};
use super::sharing::Together;
use crate::cluster::membership::Standing;
use crate::cluster::rows;
use crate::cluster::view::ClusterView;
use crate::net::now;
use crate::reload::running::RunningConfig;
use crate::store::shared::{RowChange, RowCondition, Transaction};

const ROWS: &str = "load/";
/// How often parts are made anew.
const TICK: Duration = Duration::from_millis(250);

/// `load/NODE`: what is asked of a node. It goes with its lease.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct LoadRow {
    /// By the name of a limit: requests per second that it was asked for.
    #[serde(default)]
    limits: BTreeMap<String, f64>,
}

impl RunningConfig {
    /// Has limits for all hold over all nodes, until the process drains.
    pub async fn follow_limits(&self) {
        let Some(together) = &self.together else { return };
        let mut demands = HashMap::<String, Demand>::new();
        let (mut ticks, mut before) = (interval(TICK), Instant::now());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let secs = before.elapsed().as_secs_f64();
            before = Instant::now();
            let load = self.share_limits(together, &mut demands, secs);
            // With what the others know now: it may be gone with a lease that is over.
            let told = told(&together.node.view());
            let differs = |name: &String| {
                let of = |row: &LoadRow| row.limits.get(name).copied().unwrap_or(0.0);
                is_news(of(&told), of(&load))
            };
            if load.limits.keys().chain(told.limits.keys()).any(differs) {
                tell(together, &load).await;
            }
        }
    }

    /// Sets the parts of this node; says what is asked of it.
    fn share_limits(&self, together: &Together, demands: &mut HashMap<String, Demand>, secs: f64) -> LoadRow {
        let Some(snapshot) = self.reloader.snapshots.current() else { return LoadRow::default() };
        let view = together.node.view();
        let loads = Loads::of(&view);
        let (mut load, mut known) = (LoadRow::default(), HashMap::new());
        for (limit, state) in snapshot.rates.by_name() {
            if !limit.is_for_all() {
                continue;
            }
            state.buckets.count_asked();
            let mut demand = demands.remove(&limit.name).unwrap_or_default();
            let own = demand.look(state.buckets.asked(), secs);
            known.insert(limit.name.clone(), demand);
            state.give_part(limit, loads.part(&limit.name, own), now());
            load.limits.insert(limit.name.clone(), (own * 10.0).round() / 10.0);
        }
        *demands = known;
        load
    }
}

/// What is asked of all nodes, as this one knows it.
struct Loads {
    own: String,
    is_member: bool,
    /// Those of the others, by name.
    others: BTreeMap<String, LoadRow>,
}

impl Loads {
    fn of(view: &ClusterView) -> Loads {
        let nodes = view.nodes().into_iter().filter(|node| node.row.shares && node.name != *view.node);
        let load = |name: &str| {
            let row = view.rows.get(&format!("{ROWS}{name}"));
            row.and_then(|row| rows::read::<LoadRow>(&row.value)).unwrap_or_default()
        };
        Loads {
            own: view.node.to_string(),
            is_member: view.standing == Standing::Member,
            others: nodes.map(|node| (node.name.clone(), load(&node.name))).collect(),
        }
    }

    /// The part of this node of the limit of this name, where so much is asked of it.
    fn part(&self, limit: &str, own: f64) -> f64 {
        if !self.is_member {
            // How much is asked of the others nobody says: as many parts as there were nodes.
            return 1.0 / (self.others.len() + 1) as f64;
        }
        let asked = |load: &LoadRow| load.limits.get(limit).copied().filter(|asked| asked.is_finite());
        let others =
            self.others.iter().map(|(name, load)| (name.as_str(), asked(load).unwrap_or(0.0).max(0.0)));
        part(&self.own, &others.chain([(self.own.as_str(), own)]).collect())
    }
}

/// What the others know of this node.
fn told(view: &ClusterView) -> LoadRow {
    let row = view.rows.get(&format!("{ROWS}{}", view.node));
    row.and_then(|row| rows::read(&row.value)).unwrap_or_default()
}

/// Tells the others what is asked of this node, if it is one of them. What they did not get they get with the next turn.
async fn tell(together: &Together, load: &LoadRow) {
    let view = together.node.view();
    let Some(lease) = together.node.lent().filter(|_| view.standing == Standing::Member) else { return };
    let name = format!("{ROWS}{}", view.node);
    let conditions = vec![RowCondition { name: name.clone(), changed: view.rows.changed(&name) }];
    let changes = vec![RowChange::Put { name, value: rows::write(load), lease: Some(lease) }];
    let _ = together.node.commit(Transaction { conditions, changes }).await;
}
