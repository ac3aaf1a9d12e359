//! Flags, merged into the written form before it is validated: a flag wins over the file. A flag that would
//! change nothing, or could mean more than one target, is a problem and never silently dropped.

use std::time::Duration;

use crate::config::Flags;
use crate::config::error::Wrong;
use crate::config::model::{EventFormat, LogLevel, Protocol};
use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::{
    self, BindHost, Raw, RawBackend, RawListener, RawTarget, Spoken, WORKERS_MAX, backend_url, bind_host,
    choose, out_of_range, probe_path,
};
use crate::config::report::Report;

const BACKENDS: Spot = Spot::flag("--backends");
const PORT: Spot = Spot::flag("--port");
const ADDRESS: Spot = Spot::flag("--address");
const ALGORITHM: Spot = Spot::flag("--algorithm");
const HEALTH_PATH: Spot = Spot::flag("--health-path");
const FREQUENCY: Spot = Spot::flag("--health-check-frequency-in-seconds");
const RETRIES: Spot = Spot::flag("--health-check-max-retries");
const FREQUENCY_NAME: &str = "`--health-check-frequency-in-seconds`";
const RETRIES_NAME: &str = "`--health-check-max-retries`";
const CACHE: Spot = Spot::flag("--cache-enabled");
const CACHE_TTL: Spot = Spot::flag("--cache-timeout-in-seconds");
const WORKERS: Spot = Spot::flag("--workers");
const LOG_LEVEL: Spot = Spot::flag("--log-level");
const LOG_FORMAT: Spot = Spot::flag("--log-format");

/// Merges `flags` into `raw`.
pub(in crate::config) fn merge(raw: &mut Raw, flags: &Flags, report: &mut Report) {
    workers(raw, flags, report);
    if let Some(level) = judged(flags.log_level.as_deref(), &LOG_LEVEL, "`--log-level`", report, |text| {
        choose(text, LogLevel::ALL)
    }) {
        raw.logging = Some(level);
    }
    if let Some(format) = judged(flags.log_format.as_deref(), &LOG_FORMAT, "`--log-format`", report, |text| {
        choose(text, EventFormat::ALL)
    }) {
        raw.log_format = Some(format);
    }
    cache(raw, flags, report);
    health(raw, flags, report);
    refuse_idle_health(raw, flags, report);
    backends(raw, flags, report);
    let address = judged(flags.address.as_deref(), &ADDRESS, "`--address`", report, bind_host);
    port(raw, flags, address.as_ref(), report);
    if let Some(address) = address {
        let faulty = raw.targets.iter().any(|target| matches!(target.listener, Field::Faulty));
        let used = raw.targets.iter().any(takes_address) || flags.port.is_some() || faulty;
        if !used && !raw.targets.is_empty() {
            report
                .spot(&ADDRESS, "`--address` would change nothing: every `listener` in the file has an address of its own")
                .note("use `--port` too, or write only a port in the file");
        }
        raw.address = Some(address);
    }
    if let Some(algorithm) =
        judged(flags.algorithm.as_deref(), &ALGORITHM, "`--algorithm`", report, raw::algorithm_name)
    {
        for target in &mut raw.targets {
            target.policy.algorithm = Field::Given(algorithm.clone());
        }
        raw.algorithm = Field::Given(algorithm);
    }
    if let Some(path) =
        judged(flags.health_path.as_deref(), &HEALTH_PATH, "`--health-path`", report, probe_path)
    {
        health_path(raw, &path, report);
    }
}

fn judged<T>(
    text: Option<&str>,
    spot: &Spot,
    subject: &str,
    report: &mut Report,
    parse: impl FnOnce(&str) -> Result<T, Wrong>,
) -> Option<Written<T>> {
    match parse(text?) {
        Ok(value) => Some(Written::new(value, spot.clone())),
        Err(wrong) => {
            report.wrong(spot, subject, wrong);
            None
        }
    }
}

fn workers(raw: &mut Raw, flags: &Flags, report: &mut Report) {
    let Some(number) = flags.workers else { return };
    match u32::try_from(number).ok().filter(|number| (1..=WORKERS_MAX).contains(number)) {
        Some(number) => raw.workers = Some(Written::new(number, WORKERS)),
        None => {
            let expected = format!("a whole number from 1 to {WORKERS_MAX}");
            report.wrong(&WORKERS, "`--workers`", out_of_range(number, &expected, number == 0));
        }
    }
}

/// Whether these have an effect is looked at where the keys are that they stand for.
fn cache(raw: &mut Raw, flags: &Flags, report: &mut Report) {
    if let Some(enabled) = flags.cache_enabled {
        raw.cache_enabled = Some(Written::new(enabled, CACHE));
    }
    let Some(seconds) = flags.cache_ttl else { return };
    if (1..=raw::YEAR.as_secs()).contains(&seconds) {
        raw.cache_ttl = Some(Written::new(Duration::from_secs(seconds), CACHE_TTL));
    } else {
        let expected = format!("a whole number of seconds from 1 to {}", raw::YEAR.as_secs());
        let wrong = out_of_range(seconds, &expected, seconds == 0);
        report.wrong(&CACHE_TTL, "`--cache-timeout-in-seconds`", wrong);
    }
}

fn health(raw: &mut Raw, flags: &Flags, report: &mut Report) {
    if let Some(seconds) = flags.health_interval {
        match Duration::from_secs(seconds) {
            span if (raw::INTERVAL_MIN..=raw::DAY).contains(&span) => {
                raw.interval = Some(Written::new(span, FREQUENCY));
            }
            _ => {
                let expected = "a whole number of seconds from 1 to 86400";
                report.wrong(&FREQUENCY, FREQUENCY_NAME, out_of_range(seconds, expected, seconds == 0));
            }
        }
    }
    if let Some(count) = flags.health_fall {
        if (1..=raw::COUNT_MAX).contains(&count) {
            raw.fall = Some(Written::new(count, RETRIES));
        } else {
            let expected = format!("a whole number from 1 to {}", raw::COUNT_MAX);
            report.wrong(&RETRIES, RETRIES_NAME, out_of_range(count, &expected, count == 0));
        }
    }
}

/// Nobody would notice how often nothing is checked.
fn refuse_idle_health(raw: &Raw, flags: &Flags, report: &mut Report) {
    if raw.targets.is_empty() || raw.targets.iter().any(|target| !is_unchecked(target)) {
        return;
    }
    let frequency = flags.health_interval.map(|_| (FREQUENCY, FREQUENCY_NAME));
    let retries = flags.health_fall.map(|_| (RETRIES, RETRIES_NAME));
    for (spot, name) in frequency.into_iter().chain(retries) {
        report.spot(&spot, format!("{name} would change nothing: `health_check` is `off` everywhere"));
    }
}

fn is_unchecked(target: &RawTarget) -> bool {
    matches!(target.health_check, Some(Written { value: None, .. }))
}

fn backends(raw: &mut Raw, flags: &Flags, report: &mut Report) {
    if flags.backends.is_empty() {
        return;
    }
    let mut backends = Vec::new();
    let mut faulty = false;
    for text in flags.backends.iter().flat_map(|list| list.split(',')) {
        match judged(Some(text.trim()), &BACKENDS, "an entry of `--backends`", report, |text| {
            backend_url(text, "http")
        }) {
            Some(place) => backends.push(RawBackend::at(place)),
            None => faulty = true,
        }
    }
    let all_tcp = !backends.is_empty()
        && backends.iter().all(|backend| backend.place.value.protocol == Some(Protocol::Tcp));
    let field = if faulty { Field::Faulty } else { Field::Given(Written::new(backends, BACKENDS)) };
    match raw.targets.as_mut_slice() {
        [] if !raw.has_targets => {
            let mut target = raw::default_target(BACKENDS, field);
            if all_tcp {
                target.protocol = Field::Given(Written::new(Spoken::TCP, BACKENDS));
            }
            raw.targets.push(target);
            raw.has_targets = true;
        }
        // Its fault has been reported.
        [] => {}
        [target] => {
            target.backends = field;
            target.sources.clear();
            target.backend_files.clear();
        }
        many => ambiguous(&BACKENDS, "`--backends`", many.len(), report),
    }
}

fn port(raw: &mut Raw, flags: &Flags, address: Option<&Written<BindHost>>, report: &mut Report) {
    let Some(port) = flags.port else { return };
    match raw.targets.as_mut_slice() {
        [] => {}
        [target] => {
            let written = match &target.listener {
                Field::Given(written) => written.value.as_slice(),
                Field::Absent | Field::Faulty => &[],
            };
            if written.len() > 1 {
                report
                    .spot(
                        &PORT,
                        format!(
                            "`--port` does not say which listener it means: the file has {}",
                            written.len()
                        ),
                    )
                    .expected("a file with one listener")
                    .note("change the file instead");
                return;
            }
            // The address stays as it was written, unless the flags name one.
            let host = match (written, address) {
                (_, Some(address)) => Some(address.value),
                ([Written { value: RawListener::At(host, _), .. }], None) => Some(*host),
                _ => None,
            };
            let listener = host.map_or(RawListener::Port(port), |host| RawListener::At(host, port));
            target.listener = Field::Given(Written::new(vec![Written::new(listener, PORT)], PORT));
        }
        many => ambiguous(&PORT, "`--port`", many.len(), report),
    }
}

fn ambiguous(spot: &Spot, flag: &str, targets: usize, report: &mut Report) {
    report
        .spot(spot, format!("{flag} does not say which target it means: the file has {targets}"))
        .expected("a file with one target")
        .note("change the file instead");
}

/// Listeners that are only a port are bound at the top level's address.
fn takes_address(target: &RawTarget) -> bool {
    let is_port = |written: &Written<RawListener>| matches!(written.value, RawListener::Port(_));
    matches!(&target.listener, Field::Given(written) if written.value.iter().any(is_port))
}

fn health_path(raw: &mut Raw, path: &Written<String>, report: &mut Report) {
    let mut found = raw.targets.is_empty();
    let mut unchecked = false;
    for target in &mut raw.targets {
        // A fault in `protocol` has been reported; whether the target would be HTTP nobody knows.
        found |= matches!(target.protocol, Field::Faulty);
        if !matches!(
            target.protocol,
            Field::Given(Written { value: Spoken { protocol: Protocol::Http, .. }, .. })
        ) {
            continue;
        }
        if is_unchecked(target) {
            unchecked = true;
            continue;
        }
        found = true;
        if let Field::Given(backends) = &mut target.backends {
            for backend in &mut backends.value {
                backend.health_path = Some(path.clone());
            }
        }
    }
    if !found {
        let why = if unchecked { "`health_check` is `off`" } else { "no target speaks http" };
        report.spot(&HEALTH_PATH, format!("`--health-path` would change nothing: {why}"));
    }
}
