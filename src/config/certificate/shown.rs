//! Which name gets which certificate, in lines for people.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::config::model::Config;
use crate::config::model::tls::acme::OrderedCertificate;
use crate::config::model::tls::{Identity, ListenerTls, UnknownSni};

/// Certificates of one listener that are told unless all are asked for.
const TOLD: usize = 20;
/// Names of one certificate that are told.
const NAMES: usize = 8;

/// What the clients of each listener with TLS see; `all`: of however many certificates.
pub(in crate::config) fn lines(config: &Config, now: SystemTime, all: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for listener in &config.listeners {
        let Some(tls) = &listener.tls else { continue };
        lines.push(format!("certificates of listener {}", listener.name));
        let told = if all { usize::MAX } else { TOLD };
        let read = tls.identities.iter().map(|identity| line(identity, now));
        let ordered = tls.ordered.iter().map(|ordered| order_line(ordered, config));
        lines.extend(read.chain(ordered).take(told).map(|line| format!("  {line}")));
        match (tls.identities.len() + tls.ordered.len()).saturating_sub(told) {
            0 => {}
            more => lines.push(format!("  and {more} more, which `--all` tells")),
        }
        lines.push(format!("  any other name: {}", others(tls)));
    }
    lines
}

fn listed(names: &[String]) -> String {
    match names.split_at_checked(NAMES) {
        None | Some((_, [])) => names.join(", "),
        Some((first, rest)) => format!("{} and {} more", first.join(", "), rest.len()),
    }
}

/// What has been issued of it is known to the process that serves.
fn order_line(ordered: &OrderedCertificate, config: &Config) -> String {
    let OrderedCertificate { names, key, challenge, .. } = ordered;
    let host = &config.acme.directory.host;
    format!("{}: ordered from {host}, {}, proven by {}", listed(names), key.name(), challenge.name())
}

fn line(identity: &Identity, now: SystemTime) -> String {
    let Identity { file, names, facts, .. } = identity;
    let mut text = listed(names);
    if names.is_empty() {
        text.push_str("no name");
    }
    // Writing to a text does not fail.
    let _ = write!(text, ": {}, {}, {}", file.display(), facts.key, days(identity.days_left(now)));
    if let Some(staple) = &identity.staple {
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let is_over = staple.until <= i64::try_from(now).unwrap_or(i64::MAX);
        text.push_str(if is_over { ", its OCSP answer is over" } else { ", with an OCSP answer" });
    }
    if facts.chain.len() > 1 {
        let _ = write!(text, ", issued by {}", facts.chain[1..].join(", then "));
    }
    if facts.chain.len() == 1 && facts.is_self_issued {
        text.push_str(", self-signed");
    }
    text
}

fn days(left: i64) -> String {
    match left {
        1 => "1 day left".to_owned(),
        left => format!("{left} days left"),
    }
}

fn others(tls: &ListenerTls) -> String {
    let read = tls.identities.first().map(|first| first.file.display().to_string());
    let ordered = tls.ordered.first().map(|first| format!("the one for {}", listed(&first.names)));
    let first = if tls.orders_first { ordered.or(read) } else { read.or(ordered) };
    match (tls.unknown_sni, first) {
        (UnknownSni::Refuse, _) | (_, None) => "refused".to_owned(),
        (UnknownSni::Default, Some(first)) => first,
    }
}
