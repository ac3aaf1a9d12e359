//! Which name gets which certificate, in lines for people.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::config::model::Config;
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
        lines.extend(tls.identities.iter().take(told).map(|identity| format!("  {}", line(identity, now))));
        match tls.identities.len().saturating_sub(told) {
            0 => {}
            more => lines.push(format!("  and {more} more, which `--all` tells")),
        }
        lines.push(format!("  any other name: {}", others(tls)));
    }
    lines
}

fn line(identity: &Identity, now: SystemTime) -> String {
    let Identity { file, names, facts, .. } = identity;
    let mut text = match names.split_at_checked(NAMES) {
        None | Some((_, [])) => names.join(", "),
        Some((first, rest)) => format!("{} and {} more", first.join(", "), rest.len()),
    };
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
    match (tls.unknown_sni, tls.identities.first()) {
        (UnknownSni::Refuse, _) | (_, None) => "refused".to_owned(),
        (UnknownSni::Default, Some(first)) => first.file.display().to_string(),
    }
}
