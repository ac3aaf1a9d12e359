//! What a scrape is written from, taken at its beginning.
//!
//! It holds what it reads: a number of somebody who is listed here is not given to another while the scrape is written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::system::SystemUse;
use crate::events::{EventKind, KindTally};
use crate::message::{RouteId, TargetId};
use crate::snapshot::{Listener, Snapshot};
use crate::targets::{Backend, Target};
use crate::telemetry::cells::{Cells, GoneReading, LiveNumbers, Readings, Sums};
use crate::telemetry::exposition::Labels;
use crate::telemetry::names::NameView;
use crate::telemetry::statsd::StatsdCounts;
use crate::telemetry::traces::TraceCounts;
use crate::telemetry::webhooks::WebhookCounts;
use crate::tls::ServedCertificate;

/// What a label says of those that have none of its kind. No name has a blank in it.
pub(super) const NO_ROUTE: &str = "no route";
/// Of those that are gone.
pub(super) const GONE_ROUTES: &str = "removed routes";
/// Of those that never came so far.
pub(super) const NO_TARGET: &str = "no target";
/// Of those that are gone.
pub(super) const GONE_BACKENDS: &str = "removed backends";

/// How this node stands to its cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterGauges {
    /// It is one of its nodes.
    pub is_member: bool,
    /// It was, or would be, and nobody answers.
    pub is_detached: bool,
    /// Nodes that are there, as far as it knows.
    pub nodes: usize,
    /// Seconds until it takes itself for gone if nobody hears of it.
    pub lease_left: f64,
    /// The revision of the config in force; 0: its own file is.
    pub revision: u64,
    /// The one that the store names; 0: none.
    pub current: u64,
    /// Backends that it probes.
    pub probed: usize,
    /// Backends that it has moved from one node to another.
    pub moves: u64,
}

/// What is known beside what workers count.
#[derive(Clone, Debug, Default)]
pub struct ControlState {
    /// Snapshots that somebody still uses.
    pub snapshots: usize,
    /// Access records that were handed over and could not be written.
    pub records_lost: u64,
    /// Client connections, and how many there may be.
    pub connections: (usize, usize),
    /// How it goes with webhooks.
    pub webhooks: Arc<[WebhookCounts]>,
    /// Names whose addresses are backends.
    pub names: Vec<NameView>,
    /// What became of traces.
    pub traces: TraceCounts,
    /// How it goes with statsd.
    pub statsd: StatsdCounts,
    /// Times of single requests that there was no room for.
    pub timings_dropped: u64,
    /// What was told of each kind of event.
    pub events: Vec<(EventKind, KindTally)>,
    /// Events that never reached standard error.
    pub events_lost: u64,
    /// Changes by hand in force, and those that have no effect.
    pub by_hand: (usize, usize),
    /// Networks that are kept out at run time.
    pub blocked: usize,
    /// How this process stands to its cluster; `None`: it stands alone.
    pub cluster: Option<ClusterGauges>,
    /// A config is on trial.
    pub on_trial: bool,
    /// The process gets traffic.
    pub is_ready: bool,
    /// Now, since 1970.
    pub unix: Duration,
    /// How long the process has been there.
    pub uptime: Duration,
    /// The certificates of the admin API: name of the file, when it begins and ends.
    pub admin_certificates: Vec<(String, [i64; 2])>,
}

/// All that there is at one moment.
pub struct Moment {
    /// The config in force.
    pub snapshot: Arc<Snapshot>,
    /// Backends that are gone from it and still used.
    pub leaving: Vec<(TargetId, Arc<Backend>)>,
    /// What each worker counts in.
    pub cells: Vec<Arc<Cells>>,
    /// The rest.
    pub control: ControlState,
    /// What the process uses.
    pub system: SystemUse,
}

/// A route, with its listener.
pub(super) struct RouteSubject {
    /// Its own and those of its ways.
    pub(super) ids: Vec<RouteId>,
    pub(super) labels: Labels,
}

/// A listener.
pub(super) struct ListenerSubject {
    pub(super) listener: Arc<Listener>,
    pub(super) labels: Labels,
    pub(super) unrouted: Labels,
    pub(super) gone: Labels,
}

/// A target.
pub(super) struct TargetSubject {
    pub(super) target: Arc<Target>,
    /// All ways that lead to it.
    pub(super) ways: Vec<RouteId>,
    pub(super) labels: Labels,
    pub(super) gone: Labels,
}

/// A backend.
pub(super) struct BackendSubject {
    pub(super) backend: Arc<Backend>,
    pub(super) labels: Labels,
}

/// What a scrape is written from.
pub struct ScrapeSources {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) sums: Sums,
    pub(super) overall: Readings,
    pub(super) gone: GoneReading,
    pub(super) control: ControlState,
    pub(super) system: SystemUse,
    pub(super) listeners: Vec<ListenerSubject>,
    pub(super) routes: Vec<RouteSubject>,
    pub(super) targets: Vec<TargetSubject>,
    pub(super) backends: Vec<BackendSubject>,
    /// Access lists with a name, and whom they have refused.
    pub(super) lists: Vec<(Labels, u64)>,
    /// Certificates that are shown to clients.
    pub(super) certificates: Vec<CertificateSubject>,
}

/// A certificate that is shown to clients.
pub(super) struct CertificateSubject {
    pub(super) labels: Labels,
    /// In seconds since 1970.
    pub(super) begins: i64,
    /// The same.
    pub(super) expires: i64,
    /// Whether it should have been renewed; `None`: that is not our business.
    pub(super) is_overdue: Option<bool>,
}

impl ScrapeSources {
    /// The number of the config that it sees.
    #[must_use]
    pub fn config_number(&self) -> u64 {
        self.snapshot.number
    }

    /// Takes what is to be read of `moment`. What it takes goes by the number of backends, so it is called where nobody waits.
    #[must_use]
    pub fn new(moment: Moment) -> ScrapeSources {
        let Moment { snapshot, leaving, cells, control, system } = moment;
        let sums = Sums::new(&cells, snapshot.number, &snapshot.given.counted());
        let (listeners, routes) = of_listeners(&snapshot);
        let (targets, backends) = of_targets(&snapshot, leaving);
        let live = LiveNumbers {
            backends: backends.iter().map(|one| one.backend.id).collect(),
            routes: routes.iter().flat_map(|one| one.ids.iter().copied()).collect(),
            ways: targets.iter().flat_map(|one| one.ways.iter().copied()).collect(),
        };
        let gone = sums.gone(&live);
        let (lists, certificates) = (access_lists(&snapshot), certificates(&snapshot, &control));
        let overall = Readings::overall(&cells);
        ScrapeSources {
            snapshot,
            sums,
            overall,
            gone,
            control,
            system,
            listeners,
            routes,
            targets,
            backends,
            lists,
            certificates,
        }
    }
}

fn of_listeners(snapshot: &Snapshot) -> (Vec<ListenerSubject>, Vec<RouteSubject>) {
    let (mut listeners, mut routes) = (Vec::new(), Vec::new());
    for listener in &snapshot.listeners {
        let name = listener.config.name.as_str();
        listeners.push(ListenerSubject {
            listener: Arc::clone(listener),
            labels: Labels::of(&[("listener", name)]),
            unrouted: Labels::of(&[("listener", name), ("route", NO_ROUTE)]),
            gone: Labels::of(&[("listener", name), ("route", GONE_ROUTES)]),
        });
        routes.extend(listener.routes().iter().map(|route| RouteSubject {
            ids: route.ids().collect(),
            labels: Labels::of(&[("listener", name), ("route", &route.config.name)]),
        }));
    }
    (listeners, routes)
}

fn of_targets(
    snapshot: &Snapshot,
    leaving: Vec<(TargetId, Arc<Backend>)>,
) -> (Vec<TargetSubject>, Vec<BackendSubject>) {
    let subject = |target: &Target, backend: &Arc<Backend>| BackendSubject {
        backend: Arc::clone(backend),
        labels: Labels::of(&[("target", &target.name), ("backend", &backend.name)]),
    };
    let (mut targets, mut backends) = (Vec::new(), Vec::new());
    let mut by_id: HashMap<TargetId, &Arc<Target>> = HashMap::new();
    let mut ways: HashMap<TargetId, Vec<RouteId>> = HashMap::new();
    for way in snapshot.listeners.iter().flat_map(|one| one.routes()).flat_map(|route| &route.destinations) {
        ways.entry(way.target.id).or_default().push(way.id);
    }
    let mut taken: HashSet<Arc<str>> = HashSet::new();
    for target in &snapshot.targets {
        targets.push(TargetSubject {
            target: Arc::clone(target),
            ways: ways.remove(&target.id).unwrap_or_default(),
            labels: Labels::of(&[("target", &target.name)]),
            gone: Labels::of(&[("target", &target.name), ("backend", GONE_BACKENDS)]),
        });
        by_id.insert(target.id, target);
        taken.extend(target.backends.iter().map(|backend| Arc::clone(&backend.identity)));
        backends.extend(target.backends.iter().map(|backend| subject(target, backend)));
    }
    for (id, backend) in leaving {
        // Of one that has a successor of its name, or no target any more, nothing is told but what became of it. The number of a target
        // that is gone may be another one's by now.
        if let Some(target) = by_id.get(&id)
            && backend.is_of(&target.state)
            && taken.insert(Arc::clone(&backend.identity))
        {
            backends.push(subject(target, &backend));
        }
    }
    (targets, backends)
}

/// Those that have a name, each once.
fn access_lists(snapshot: &Snapshot) -> Vec<(Labels, u64)> {
    let rules = snapshot.listeners.iter().flat_map(|listener| {
        let routes = listener.routes().iter();
        listener.access.iter().chain(routes.flat_map(|route| route.access.iter()))
    });
    let named = rules.filter_map(|rule| Some((rule.list.name.clone()?, rule.refused())));
    let by_name: BTreeMap<String, u64> = named.collect();
    by_name.into_iter().map(|(name, refused)| (Labels::of(&[("list", &name)]), refused)).collect()
}

fn certificates(snapshot: &Snapshot, control: &ControlState) -> Vec<CertificateSubject> {
    let mut all = BTreeMap::new();
    for listener in &snapshot.listeners {
        for certificate in listener.certificates() {
            let identity = certificate.identity();
            let is_overdue = match certificate {
                ServedCertificate::Read(_) => None,
                ServedCertificate::Live(live) => Some(live.is_overdue(SystemTime::UNIX_EPOCH + control.unix)),
            };
            let file = identity.file.display().to_string();
            let listener = listener.config.name.as_str();
            all.insert((listener, file), ([identity.begins, identity.expires], is_overdue));
        }
    }
    // No listener has a blank in its name.
    for (file, life) in &control.admin_certificates {
        all.insert(("the admin API", file.clone()), (*life, None));
    }
    let labelled = all.into_iter().map(|((listener, file), ([begins, expires], is_overdue))| {
        let labels = Labels::of(&[("listener", listener), ("certificate", &file)]);
        CertificateSubject { labels, begins, expires, is_overdue }
    });
    labelled.collect()
}
