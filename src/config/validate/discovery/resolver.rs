//! `resolver`: how DNS is asked.

use crate::config::effective::EffectiveRows;
use crate::config::model::discovery::ResolverConfig;
use crate::config::origin::{Origin, Written};
use crate::config::raw::{Raw, RawResolver};
use crate::config::report::Report;
use crate::config::units::show_duration;

/// Makes it. What nobody has written is shown where somebody is asked for.
pub(in crate::config::validate) fn accept(
    raw: &Raw,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> ResolverConfig {
    let RawResolver { servers, timeout, attempts, ttl_min, ttl_max, hold, addresses } = &raw.resolver;
    let is_written = servers.is_some()
        || [timeout, ttl_min, ttl_max, hold].iter().any(|time| time.is_some())
        || [attempts, addresses].iter().any(|number| number.is_some());
    let mut unseen = EffectiveRows::default();
    let is_asked = raw.targets.iter().any(|target| !target.sources.is_empty());
    let rows = if is_written || is_asked { rows } else { &mut unseen };
    let default = ResolverConfig::default();
    let written = &raw.resolver;
    let show = |time: &std::time::Duration| show_duration(*time);
    let servers = match &written.servers {
        None => {
            rows.note("resolver.servers", "those of /etc/resolv.conf", Origin::Default);
            Vec::new()
        }
        Some(servers) => {
            let shown: Vec<String> = servers.value.iter().map(ToString::to_string).collect();
            rows.note("resolver.servers", format!("[{}]", shown.join(", ")), servers.spot.origin.clone());
            servers.value.clone()
        }
    };
    let timeout = rows.settle("resolver.timeout", written.timeout.as_ref(), default.timeout, show);
    let attempts =
        rows.settle("resolver.attempts", written.attempts.as_ref(), default.attempts, ToString::to_string);
    // Who writes one of the two means it.
    let most = written.ttl_max.as_ref().map_or(default.ttl_max, |most| most.value);
    let usual = default.ttl_min.min(most);
    let ttl_min = rows.settle("resolver.ttl_min", written.ttl_min.as_ref(), usual, show);
    let usual = default.ttl_max.max(ttl_min);
    let ttl_max = rows.settle("resolver.ttl_max", written.ttl_max.as_ref(), usual, show);
    if let (true, Some(Written { spot: most_spot, .. })) = (ttl_max < ttl_min, &written.ttl_max) {
        let (most, least) = (show_duration(ttl_max), show_duration(ttl_min));
        let message = format!("`ttl_max` is {most}, which is less than `ttl_min` ({least})");
        report.spot(most_spot, message).expected(format!("at least {least}"));
    }
    let hold = rows.settle("resolver.hold", written.hold.as_ref(), default.hold, show);
    let most = u32::try_from(default.addresses).unwrap_or(u32::MAX);
    let addresses = rows.settle("resolver.addresses", written.addresses.as_ref(), most, ToString::to_string);
    ResolverConfig { servers, timeout, attempts, ttl_min, ttl_max, hold, addresses: addresses as usize }
}
