//! What to do about a number or a time that its key does not take. The least or the most that it takes is proposed only
//! where that is near to what was meant; else the key goes, and its default holds. A hint never makes a broken service of a
//! file that was refused.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::said::{is_off, meant_number, variable};
use super::shape::ALL;
use crate::config::edit::Fix;
use crate::config::error::Wrong;
use crate::config::units;
use crate::config::yaml::{Entry, Node};

/// What a backend's port is, but for its range. Without one there is no backend.
pub(super) const BACKEND_PORT: &str = "the backend's port,";

/// What holds without a key whose least or most value nobody wants who wrote none, or no end.
fn without(key: &str, form: &str) -> Option<String> {
    let fixed = match key {
        "workers" => "remove it: then there is one for each core",
        "max_connections" => "remove it: then there are as many as the system's limit of descriptors allows",
        "port" if form != BACKEND_PORT => "remove it: then the backend's own port is asked",
        "agent" => "remove it: then no agent is asked",
        "weight" => "remove it: then the weight is 1",
        "failures" => "remove it for the default; `breaker: off` is how it never opens",
        "max_streams" => "remove it for the default; `http2: off` is how HTTP/2 is not spoken",
        "headers" | "head_size" => {
            return Some(format!("remove it: the default is {}; it can't be switched off", default(key)?));
        }
        "interval" | "health_check_interval" | "health_check_frequency_in_seconds" => {
            return Some(format!(
                "remove it: the default is {}; `health_check: off` is how nothing is checked",
                default(key)?
            ));
        }
        _ => return None,
    };
    Some(fixed.to_owned())
}

/// What holds without the only key of this name.
fn default(key: &str) -> Option<&'static str> {
    ALL.iter().flat_map(|shape| shape.keys()).find(|known| known.name == key)?.default
}

/// No port is near another one.
fn is_port(key: &str) -> bool {
    matches!(key, "port" | "agent")
}

fn removed(wrong: Wrong, entry: &Entry, words: impl Into<String>) -> Wrong {
    wrong.hint_by(words, Fix::Remove(entry.key_place))
}

/// Advice about a value that is no number. `form` is what is expected but for the range.
pub(super) fn no_number(wrong: Wrong, entry: &Entry, range: &RangeInclusive<u32>, form: &str) -> Wrong {
    let Some(text) = entry.node.text() else { return wrong };
    let or_off = form.contains("`off`");
    if !or_off && (units::is_endless(text) || is_off(&entry.node)) {
        return match without(&entry.key, form) {
            Some(words) => removed(wrong, entry, words),
            None if units::has_no_end(text) && !is_port(&entry.key) => wrong.instead(range.end().to_string()),
            None => wrong,
        };
    }
    match meant_number(text, range, form) {
        Some(meant) => wrong.instead(meant),
        None => variable(wrong, text),
    }
}

/// Advice about a number that is out of range.
pub(super) fn number(
    wrong: Wrong,
    entry: &Entry,
    number: i64,
    range: &RangeInclusive<u32>,
    form: &str,
) -> Wrong {
    if number > i64::from(*range.end()) {
        let most = range.end().to_string();
        return if is_port(&entry.key) {
            wrong
        } else {
            wrong.hint(format!("write `{most}`, the most"), most)
        };
    }
    if form.contains("`off`") {
        return if number <= 0 { wrong.instead("off") } else { wrong };
    }
    match without(&entry.key, form) {
        _ if number > 0 => wrong,
        Some(words) => removed(wrong, entry, words),
        None if is_port(&entry.key) => wrong,
        None => {
            let least = range.start().to_string();
            wrong.hint(format!("write `{least}`, the least"), least)
        }
    }
}

/// Advice about a value that is no time.
pub(super) fn no_time(
    wrong: Wrong,
    entry: &Entry,
    text: &str,
    range: &RangeInclusive<Duration>,
    or_off: bool,
) -> Wrong {
    let is_none = text.parse() == Ok(0.0);
    if or_off && (units::is_endless(text) || is_none) {
        return wrong.instead("off");
    }
    if is_none && !range.contains(&Duration::ZERO) {
        return no_time_at_all(wrong, entry);
    }
    if units::is_endless(text)
        && let Some(words) = without(&entry.key, "")
    {
        return removed(wrong, entry, words);
    }
    // `shutdown_delay: none` asks for anything but the longest.
    if units::is_endless(text) && !units::has_no_end(text) {
        let most = units::show_duration(*range.end());
        return removed(wrong, entry, format!("remove it for the default; the longest is `{most}`"));
    }
    match units::time_meant(text, range) {
        Some((words, time)) => wrong.hint(words, time),
        None => Wrong { hint: None, fix: None, ..wrong },
    }
}

/// Advice about a time that is out of range.
pub(super) fn time(
    wrong: Wrong,
    entry: &Entry,
    time: Duration,
    range: &RangeInclusive<Duration>,
    or_off: bool,
) -> Wrong {
    if time > *range.end() {
        let most = units::show_duration(*range.end());
        wrong.hint(format!("write `{most}`, the longest"), most)
    } else if or_off && time == Duration::ZERO {
        wrong.instead("off")
    } else if time == Duration::ZERO {
        no_time_at_all(wrong, entry)
    } else {
        let least = units::show_duration(*range.start());
        wrong.hint(format!("write `{least}`, the shortest"), least)
    }
}

fn no_time_at_all(wrong: Wrong, entry: &Entry) -> Wrong {
    removed(wrong, entry, without(&entry.key, "").unwrap_or_else(|| "remove it for the default".to_owned()))
}

/// Whether somebody wants no limit of a time, in any way to say so.
pub(super) fn is_no_limit(node: &Node) -> bool {
    let text = node.text().unwrap_or_default();
    is_off(node) || units::is_endless(text) || is_zero(text)
}

fn is_zero(text: &str) -> bool {
    text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse() == Ok(0.0)
}

/// Advice about a limit of a time that can't be switched off.
pub(super) fn no_limit(wrong: Wrong, entry: &Entry, most: String) -> Wrong {
    let text = entry.node.text().unwrap_or_default();
    if entry.key == "keep_alive" && !units::has_no_end(text) {
        // Who writes this wants no connection to stay; the longest time would be the opposite.
        return wrong.note(
            "keep-alive can't be switched off; this is how long a silent client is kept: a short time is `1s`, the default is `1m`",
        );
    }
    if is_zero(text) {
        return removed(wrong, entry, format!("remove it for the default; the longest is `{most}`"));
    }
    wrong.hint(format!("write `{most}`, the longest"), most)
}

/// Advice about a size that is out of range and takes no `off`, or is not zero.
pub(super) fn size(wrong: Wrong, entry: &Entry, size: u64, range: &RangeInclusive<u64>) -> Wrong {
    if size > *range.end() {
        let most = units::show_size(*range.end());
        return wrong.hint(format!("write `{most}`, the most"), most);
    }
    if let (0, Some(words)) = (size, without(&entry.key, "")) {
        return removed(wrong, entry, words);
    }
    let least = units::show_size(*range.start());
    wrong.hint(format!("write `{least}`, the least"), least)
}
