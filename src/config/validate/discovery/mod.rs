//! Backends that are found: who is asked, and for what.

mod resolver;

use super::backend::BackendRules;
use super::show::name_of;
use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::discovery::{AddressFamily, BackendSource, DnsKind};
use crate::config::model::{BackendState, Portion};
use crate::config::origin::{Origin, Written};
use crate::config::raw::{RawBackend, RawPortion, RawSource, RawTarget};
use crate::config::report::Report;
pub(super) use resolver::accept as resolver;

/// Where more backends of a target come from.
pub(super) fn sources(
    raw: &RawTarget,
    rules: &BackendRules,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Vec<BackendSource> {
    let target = &raw.name.value;
    for (number, file) in &raw.backend_files {
        rows.note(
            format!("targets.{target}.backends[{number}].file"),
            &*file.value,
            file.spot.origin.clone(),
        );
    }
    refuse_twice(target, &raw.sources, report);
    // What will be wrong with an address is said before there is one.
    raw.sources.iter().for_each(|source| rules.try_name(&source.asks, report));
    raw.sources.iter().map(|source| accept(target, source, rules.probe_path(), report, rows)).collect()
}

fn accept(
    target: &str,
    raw: &RawSource,
    probe_path: Option<&Written<String>>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> BackendSource {
    let path = |key: &str| format!("targets.{target}.backends[{}].{key}", raw.number);
    let asks = &raw.asks.value;
    rows.note(path(asks.kind.as_str()), asks.to_string(), raw.asks.spot.origin.clone());
    if let Some(port) = &raw.port {
        rows.note(path("port"), port.value.to_string(), port.spot.origin.clone());
    }
    if asks.family != AddressFamily::Any {
        rows.note(path("family"), name_of(AddressFamily::ALL, asks.family), raw.spot.origin.clone());
    }
    let RawPortion { weight, backup, priority, zone } = &raw.portion;
    if let (Some(backup @ Written { value: true, .. }), Some(priority)) = (backup, priority) {
        let later = if priority.spot.place > backup.spot.place { &priority.spot } else { &backup.spot };
        let problem = report.spot(later, "`backup` and `priority` in one backend");
        problem.note("keep one of them; a backup comes behind every `priority`");
    }
    let state =
        rows.settle(path("state"), raw.state.as_ref(), BackendState::Up, |state| state.as_str().to_owned());
    let health_path = raw.health_path.as_ref();
    if let Some(own) = health_path {
        rows.note(path("health_path"), own.value.clone(), own.spot.origin.clone());
    }
    let weight = match asks.kind {
        DnsKind::Addresses => rows.settle(path("weight"), weight.as_ref(), 1, ToString::to_string),
        DnsKind::Services => {
            rows.note(path("weight"), "what the records say", Origin::Default);
            1
        }
    };
    let priority = match backup {
        Some(Written { value: true, spot }) => {
            rows.note(path("backup"), "true", spot.origin.clone());
            Portion::BACKUP
        }
        _ => {
            let number = rows.settle(path("priority"), priority.as_ref(), 0, ToString::to_string);
            u8::try_from(number).unwrap_or(Portion::BACKUP)
        }
    };
    if let Some(zone) = zone {
        rows.note(path("zone"), zone.value.to_string(), zone.spot.origin.clone());
    }
    BackendSource {
        asks: asks.clone(),
        port: raw.port.as_ref().and_then(|port| u16::try_from(port.value).ok()),
        portion: Portion {
            weight: u16::try_from(weight).unwrap_or(Portion::WEIGHT_MAX),
            priority,
            zone: zone.as_ref().map(|zone| std::sync::Arc::clone(&zone.value)),
        },
        probe_path: health_path.or(probe_path).map(|path| path.value.clone()),
        state,
        number: raw.number,
    }
}

/// Reports a name that would be asked for twice for the same backends.
fn refuse_twice(target: &str, sources: &[RawSource], report: &mut Report) {
    for (at, source) in sources.iter().enumerate() {
        let port = |of: &RawSource| of.port.as_ref().map(|port| port.value);
        let is_same = |other: &&RawSource| {
            let (one, other_one) = (source.asks.value.canonical(), other.asks.value.canonical());
            let is_apart = one.family != other_one.family
                && one.family != AddressFamily::Any
                && other_one.family != AddressFamily::Any;
            one.name == other_one.name
                && one.kind == other_one.kind
                && port(other) == port(source)
                && !is_apart
        };
        if sources[..at].iter().any(|other| is_same(&other)) {
            let name = quoted(&source.asks.value.name);
            let message = format!("the name {name} is there twice in the target {}", quoted(target));
            report.spot(&source.asks.spot, message).note("remove one of them");
        }
    }
}

/// Reports a target whose names, and all that is written beside them, would get nothing.
pub(super) fn refuse_all_idle(raw: &RawTarget, written: &[RawBackend], report: &mut Report) {
    let is_idle = |portion: &RawPortion| portion.weight.as_ref().is_some_and(|weight| weight.value == 0);
    let all_idle = written.iter().all(|backend| is_idle(&backend.portion))
        && raw.sources.iter().all(|source| is_idle(&source.portion));
    if let (true, Some(weight)) =
        (all_idle, raw.sources.first().and_then(|source| source.portion.weight.as_ref()))
    {
        let message = format!("all backends of the target {} have the weight 0", quoted(&raw.name.value));
        report.spot(&weight.spot, message).expected("at least one backend with a weight from 1 to 256");
    }
}
