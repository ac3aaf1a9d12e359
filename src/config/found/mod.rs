//! What was found, as if the file listed it: backends of names that DNS was asked for, held to what those of the file are held to.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;

use super::Loaded;
use super::effective::{Effective, EffectiveRows};
use super::model::discovery::{BackendSource, DnsKind, DnsQuestion, FoundBy};
use super::model::{BackendAddress, ListenerConfig, Portion, TargetConfig};
use super::origin::{Origin, Spot, Written};
use super::raw::{RawBackend, RawPlace, RawPortion};
use super::report::Report;
use super::validate::{BackendRules, identity, leads_to};

/// One address of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundAddress {
    /// It, with the port of its record; 0: records have none.
    pub address: SocketAddr,
    /// What the record says about its share, 1 to 256; `None`: nothing.
    pub weight: Option<u16>,
    /// How many kinds of records are preferred to it.
    pub tier: u8,
}

/// A config with all that was found.
#[derive(Clone, Debug)]
pub struct WithFound {
    /// The config. Where nothing is looked for it is the one that was given.
    pub loaded: Arc<Loaded>,
    /// Addresses that are no backends, each with its target and the reason.
    pub left_out: Vec<LeftOut>,
}

/// An address that is no backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The name of its target.
    pub target: String,
    /// What it would be called.
    pub name: String,
    /// Why not.
    pub why: &'static str,
}

impl Loaded {
    /// Every name that DNS is to be asked for, each once, in the order of the file.
    pub fn questions(&self) -> Vec<&DnsQuestion> {
        let mut seen = HashSet::new();
        let all = self.config.targets.iter().flat_map(|target| &target.sources);
        all.map(|source| &source.asks).filter(|asks| seen.insert(*asks)).collect()
    }

    /// The config with these addresses of its names, and no others, whatever was found before; `found` gives them in an order that says nothing about who was found first.
    #[must_use]
    pub fn with_found(self: &Arc<Self>, found: &dyn Fn(&DnsQuestion) -> Arc<[FoundAddress]>) -> WithFound {
        let base = self.unfound.as_ref().unwrap_or(self);
        let mut with = WithFound { loaded: Arc::clone(base), left_out: Vec::new() };
        if base.config.targets.iter().all(|target| target.sources.is_empty()) {
            return with;
        }
        let mut loaded = Loaded { unfound: Some(Arc::clone(base)), ..Loaded::clone(base) };
        let binds = |listeners: &[ListenerConfig], name: &str| {
            let own = listeners.iter().find(|listener| listener.name == name);
            own.map(|listener| listener.binds.clone()).unwrap_or_default()
        };
        for (target, rules) in loaded.config.targets.iter_mut().zip(loaded.backend_rules.iter()) {
            if target.sources.is_empty() {
                continue;
            }
            let binds = binds(&loaded.config.listeners, &target.name);
            let mut rows = EffectiveRows::default();
            let mut seen: HashSet<BackendAddress> =
                target.backends.iter().map(|backend| identity(&backend.address)).collect();
            let prefix = format!("targets.{}.", target.name);
            let mut number = first_free(&loaded.effective, &prefix);
            for source in std::mem::take(&mut target.sources) {
                let origin = origin(&loaded.effective, &prefix, &source);
                let by = Arc::new(FoundBy { asks: source.asks.clone() });
                for one in found(&source.asks).iter() {
                    let backend = written(&source, &by, one, origin.clone());
                    let address = &backend.place.value.address;
                    let why = if !seen.insert(identity(address)) {
                        Some("the target has this address already")
                    } else if binds.iter().any(|bind| leads_to(address, bind)) {
                        Some("the target itself listens there")
                    } else {
                        None
                    };
                    if let Some(why) = why {
                        let name = backend.name.map(|name| name.value).unwrap_or_default();
                        with.left_out.push(LeftOut { target: target.name.clone(), name, why });
                        continue;
                    }
                    take(target, rules, &source, number, &backend, &mut rows);
                    number += 1;
                }
                target.sources.push(source);
            }
            splice(&mut loaded.effective, &prefix, rows.into_list());
        }
        with.loaded = Arc::new(loaded);
        with
    }
}

fn take(
    target: &mut TargetConfig,
    rules: &BackendRules,
    source: &BackendSource,
    number: usize,
    backend: &RawBackend,
    rows: &mut EffectiveRows,
) {
    let mut report = Report::about("", "");
    let mut accepted = rules.accept(number, backend, &mut report, rows);
    debug_assert!(report.is_empty(), "what can be wrong with it is wrong with its source");
    accepted.probe_path.clone_from(&source.probe_path);
    target.backends.push(accepted);
}

/// The written form of one address.
fn written(source: &BackendSource, by: &Arc<FoundBy>, one: &FoundAddress, origin: Origin) -> RawBackend {
    let port = source.port.unwrap_or(one.address.port());
    let address = SocketAddr::new(one.address.ip(), port);
    let spot = Spot { origin, place: None };
    let weight = match source.asks.kind {
        DnsKind::Addresses => source.portion.weight,
        DnsKind::Services => one.weight.unwrap_or(1),
    };
    // A backup stays one; else preferred records come first, and the last kinds share a tier.
    let priority = match source.portion.priority {
        Portion::BACKUP => None,
        first => Some(u32::from(first.saturating_add(one.tier).min(Portion::BACKUP - 1))),
    };
    let place = RawPlace {
        address: BackendAddress::Host { host: address.ip().to_string(), port },
        protocol: None,
        tls: None,
    };
    RawBackend {
        name: Some(Written::new(format!("{}/{address}", source.asks.name), spot.clone())),
        place: Written::new(place, spot.clone()),
        health_path: source.probe_path.clone().map(|path| Written::new(path, spot.clone())),
        portion: RawPortion {
            weight: Some(Written::new(u32::from(weight), spot.clone())),
            backup: priority.is_none().then(|| Written::new(true, spot.clone())),
            priority: priority.map(|priority| Written::new(priority, spot.clone())),
            zone: source.portion.zone.clone().map(|zone| Written::new(zone, spot.clone())),
        },
        state: Some(Written::new(source.state, spot.clone())),
        found: Some(Arc::clone(by)),
        number: None,
    }
}

/// The number behind that of the last item of the target's list.
fn first_free(rows: &[Effective], prefix: &str) -> usize {
    let numbers = rows.iter().filter_map(|row| {
        let rest = row.path.strip_prefix(prefix)?.strip_prefix("backends[")?;
        rest.split_once(']')?.0.parse::<usize>().ok()
    });
    numbers.max().map_or(0, |last| last + 1)
}

/// Where the source is written.
fn origin(rows: &[Effective], prefix: &str, source: &BackendSource) -> Origin {
    let path = format!("{prefix}backends[{}].{}", source.number, source.asks.kind.as_str());
    rows.iter().find(|row| row.path == path).map_or(Origin::Default, |row| row.origin.clone())
}

/// Puts `new` behind the last row of the target's backends.
pub(super) fn splice(rows: &mut Vec<Effective>, prefix: &str, new: Vec<Effective>) {
    let is_backend =
        |row: &Effective| row.path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with("backends["));
    let end = rows.iter().rposition(is_backend).map_or(rows.len(), |last| last + 1);
    rows.splice(end..end, new);
}
