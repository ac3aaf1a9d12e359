//! `metrics.statsd`: who is sent numbers, and how.

use std::time::Duration;

use crate::config::error::{Wrong, one_of, quoted};
use crate::config::files::fence::PathUse;
use crate::config::hidden::without_user;
use crate::config::model::{Share, StatsdAddress, StatsdFormat};
use crate::config::origin::{Field, Written};
use crate::config::raw::address;
use crate::config::raw::bounds::{HOUR, STATSD_INTERVAL_MIN};
use crate::config::raw::reader::{Reader, is_off};
use crate::config::raw::said::choose;
use crate::config::raw::shape;
use crate::config::units;
use crate::config::yaml::Entry;

const TO_FORM: &str =
    "`udp://host:port` such as `udp://127.0.0.1:8125`, or `unix:/path` of a datagram socket";
const TIMINGS_FORM: &str = "`off`, or a share in percent from `0.0001%` to `100%`";
/// The port that everybody takes for it.
const USUAL_PORT: u16 = 8125;

/// As written.
#[derive(Debug)]
pub(in crate::config) struct RawStatsd {
    pub(in crate::config) to: Field<StatsdAddress>,
    pub(in crate::config) format: Option<Written<StatsdFormat>>,
    pub(in crate::config) interval: Option<Written<Duration>>,
    pub(in crate::config) timings: Option<Written<Option<Share>>>,
}

/// Walks `metrics.statsd`.
pub(super) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> Option<RawStatsd> {
    let section = reader.section("`metrics.statsd`", &entry.node, &shape::STATSD)?;
    let to = match section.find("to") {
        Some(entry) => Field::read(to(entry, reader)),
        None if section.is_misspelt("to") => Field::Faulty,
        None => {
            let wrong = Wrong::new("does not say where to send", "`to`, which is ".to_owned() + TO_FORM);
            let spot = reader.key_spot(entry);
            reader.report.wrong(&spot, "`metrics.statsd`", wrong);
            Field::Faulty
        }
    };
    Some(RawStatsd {
        to,
        format: section.find("format").and_then(|entry| format(entry, reader)),
        interval: section.find("interval").and_then(|entry| interval(entry, reader)),
        timings: section.find("timings").and_then(|entry| timings(entry, reader)),
    })
}

fn format(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<StatsdFormat>> {
    reader.parsed(entry, &one_of(StatsdFormat::ALL.iter().map(|(name, _)| *name)), |text| {
        // What it is called there, and nearer to the other one by its letters.
        choose(text, StatsdFormat::ALL).map_err(|wrong| match text.to_lowercase().as_str() {
            "dogstatsd" => wrong.hint("did you mean `datadog`?", "datadog"),
            _ => wrong,
        })
    })
}

fn interval(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Duration>> {
    // What health checks are told about an interval of no time is no advice here.
    if entry.node.text().and_then(|text| units::duration(text).ok()) == Some(Duration::ZERO) {
        let least = units::show_duration(STATSD_INTERVAL_MIN);
        let expected = format!("a time such as `1s` or `10s` ({least} to {})", units::show_duration(HOUR));
        let wrong = Wrong::new("is 0s, which is too small", expected);
        reader.report.wrong(
            &reader.spot(entry),
            "`interval`",
            wrong.hint(format!("write `{least}`, the shortest"), least),
        );
        return None;
    }
    reader.duration(entry, STATSD_INTERVAL_MIN..=HOUR)
}

fn to(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<StatsdAddress>> {
    let read = reader.word(entry, TO_FORM, address)?;
    let value = match read.value {
        StatsdAddress::Unix(path) => {
            StatsdAddress::Unix(reader.path(&path.to_string_lossy(), PathUse::StatsdSocket, &read.spot))
        }
        udp @ StatsdAddress::Udp { .. } => udp,
    };
    Some(Written::new(value, read.spot))
}

fn address(text: &str) -> Result<StatsdAddress, Wrong> {
    let wrong = |why: &str| Wrong::new(format!("is {}, {why}", quoted(&without_user(text))), TO_FORM);
    if let Some(path) = text.strip_prefix("unix:") {
        return address::unix_path(path).map(StatsdAddress::Unix).map_err(|why| wrong(&why));
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        let bare = wrong("which has no scheme");
        let meant = format!("udp://{text}");
        return Err(if address(&meant).is_ok() { bare.instead(&meant) } else { bare });
    };
    if !scheme.eq_ignore_ascii_case("udp") {
        return Err(wrong("which has a scheme other than `udp`"));
    }
    if let Some(plain) = rest.strip_suffix('/') {
        let meant = format!("udp://{plain}");
        let bare = wrong("which has a `/` behind the port");
        return Err(if address(&meant).is_ok() { bare.instead(&meant) } else { bare });
    }
    if rest.contains('@') {
        return Err(wrong("which has a user, and nobody is asked for one there"));
    }
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (rest, None),
    };
    if host.contains(':') && !host.starts_with('[') {
        let bare = wrong("which has an IPv6 address without brackets");
        return Err(bare.note("it is written `udp://[address]:port`"));
    }
    let Ok(plain) = address::host(host) else {
        return Err(wrong("which has a host that is neither an IP address nor a host name"));
    };
    let Some(port) = port else {
        return Err(wrong("which has no port").instead(format!("udp://{host}:{USUAL_PORT}")));
    };
    let port =
        address::port(port).ok_or_else(|| wrong("which has a port that is no number from 1 to 65535"))?;
    Ok(StatsdAddress::Udp { host: plain, port })
}

/// A share of requests, where nothing is off.
fn timings(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Option<Share>>> {
    if is_off(&entry.node) {
        return Some(Written::new(None, reader.spot(entry)));
    }
    reader.parsed_with_numbers(entry, TIMINGS_FORM, |text| {
        if text == "0%" {
            return Ok(None);
        }
        let read = units::share(text).map(Some);
        read.map_err(|wrong| Wrong { expected: Some(TIMINGS_FORM.into()), ..wrong })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_is_sent_reads_back() {
        for text in
            ["udp://127.0.0.1:8125", "udp://[::1]:1", "udp://statsd.internal:65535", "unix:/run/statsd.sock"]
        {
            assert_eq!(address(text).expect(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_address_says_what_would_be_one() {
        let hints = [
            ("127.0.0.1:8125", Some("write `udp://127.0.0.1:8125`")),
            ("udp://statsd", Some("write `udp://statsd:8125`")),
            ("udp://[::1]", Some("write `udp://[::1]:8125`")),
            ("udp://statsd:8125/", Some("write `udp://statsd:8125`")),
            ("tcp://a:1", None),
            ("udp://::1:1", None),
            ("udp://a:0", None),
            ("udp://a:99999", None),
            ("udp://:1", None),
            ("udp://u@a:1", None),
            ("udp://a:1/b", None),
            ("unix:", None),
            ("", None),
        ];
        for (text, hint) in hints {
            let wrong = address(text).expect_err(text);
            assert_eq!(wrong.hint.as_deref(), hint, "{text}");
            assert_eq!(wrong.expected.as_deref(), Some(TO_FORM), "{text}");
        }
    }
}
