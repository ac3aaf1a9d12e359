//! What was found, as if the file listed it: backends of names that DNS was asked for, held to what those of the file are held to.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

use super::Loaded;
use super::effective::{Effective, EffectiveRows};
use super::model::discovery::{BackendSource, DnsKind, DnsQuestion, FoundBy};
use super::model::{BackendAddress, Bind, Config, Portion, TargetConfig};
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

    /// The config with these addresses of its names, and no others, whatever was found before; `found` gives them in an order that says nothing
    /// about who was found first.
    #[must_use]
    pub fn with_found(self: &Arc<Self>, found: &dyn Fn(&DnsQuestion) -> Arc<[FoundAddress]>) -> WithFound {
        let base = self.unfound.as_ref().unwrap_or(self);
        let mut with = WithFound { loaded: Arc::clone(base), left_out: Vec::new() };
        if base.config.targets.iter().all(|target| target.sources.is_empty()) {
            return with;
        }
        let mut loaded = Loaded { unfound: Some(Arc::clone(base)), ..Loaded::clone(base) };
        let places = RowPlaces::of(&base.effective);
        let doors = doors(&base.config);
        let mut new_rows = Vec::new();
        for (target, rules) in loaded.config.targets.iter_mut().zip(loaded.backend_rules.iter()) {
            if target.sources.is_empty() {
                continue;
            }
            let Some(place) = places.by_target.get(target.name.as_str()) else { continue };
            let binds = doors.get(target.name.as_str()).map(Vec::as_slice).unwrap_or_default();
            let mut rows = EffectiveRows::default();
            let mut seen: HashSet<BackendAddress> =
                target.backends.iter().map(|backend| identity(&backend.address)).collect();
            let mut number = place.free;
            for source in std::mem::take(&mut target.sources) {
                let origin =
                    place.origins.get(&source.number).map_or(Origin::Default, |origin| (*origin).clone());
                let by = Arc::new(FoundBy { asks: source.asks.clone() });
                for one in found(&source.asks).iter() {
                    let backend = written(&source, &by, one, origin.clone());
                    let address = &backend.place.value.address;
                    let why = if !seen.insert(identity(address)) {
                        Some("the target has this address already")
                    } else if binds.iter().any(|bind| leads_to(address, bind)) {
                        Some("a listener that leads to the target is there")
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
            new_rows.push((place.end, rows.into_list()));
        }
        new_rows.sort_by_key(|(end, _)| *end);
        let mut rows = Vec::with_capacity(base.effective.len());
        let mut at = 0;
        for (end, new) in new_rows {
            rows.extend_from_slice(&base.effective[at..end]);
            rows.extend(new);
            at = end;
        }
        rows.extend_from_slice(&base.effective[at..]);
        loaded.effective = rows;
        with.loaded = Arc::new(loaded);
        with
    }
}

/// Where the listeners are by which clients come to each target.
fn doors(config: &Config) -> HashMap<&str, Vec<&Bind>> {
    let mut doors: HashMap<&str, Vec<&Bind>> = HashMap::new();
    for listener in &config.listeners {
        let targets: HashSet<&str> = listener.routes.iter().flat_map(|route| route.targets()).collect();
        for target in targets {
            doors.entry(target).or_default().extend(&listener.binds);
        }
    }
    doors
}

/// Where the rows of targets with sources are.
struct RowPlaces<'r> {
    by_target: HashMap<&'r str, RowPlace<'r>>,
}

#[derive(Default)]
struct RowPlace<'r> {
    /// The number behind that of the last item of the list.
    free: usize,
    /// Behind the last row of an item.
    end: usize,
    /// Where the sources are written, by their numbers.
    origins: HashMap<usize, &'r Origin>,
}

impl<'r> RowPlaces<'r> {
    fn of(rows: &'r [Effective]) -> RowPlaces<'r> {
        const BACKENDS: &str = ".backends[";
        let mut by_target: HashMap<&str, RowPlace<'_>> = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            let Some(rest) = row.path.strip_prefix("targets.") else { continue };
            let Some((target, rest)) =
                rest.rfind(BACKENDS).map(|dot| (&rest[..dot], &rest[dot + BACKENDS.len()..]))
            else {
                continue;
            };
            let Some((Ok(number), key)) =
                rest.split_once("].").map(|(number, key)| (number.parse::<usize>(), key))
            else {
                continue;
            };
            let place = by_target.entry(target).or_default();
            place.free = place.free.max(number + 1);
            place.end = at + 1;
            if [DnsKind::Addresses, DnsKind::Services].iter().any(|kind| kind.as_str() == key) {
                place.origins.insert(number, &row.origin);
            }
        }
        RowPlaces { by_target }
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
