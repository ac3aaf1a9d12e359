//! How a line looks.

use crate::config::model::{Share, StatsdFormat};
use crate::telemetry::exposition::Labels;

/// Bytes of a label's value that are kept: a line has to fit into a datagram, and Datadog takes no more.
const VALUE_MAX: usize = 200;

/// What a line tells.
pub(super) struct StatsdLine<'l> {
    /// Without labels.
    pub(super) name: &'l str,
    pub(super) labels: &'l Labels,
    pub(super) value: &'l str,
    /// `c`, `g` or `ms`.
    pub(super) kind: &'static str,
    /// It stands for others: it was drawn with this chance.
    pub(super) share: Share,
}

impl StatsdLine<'_> {
    /// Writes it, without a line break at its end.
    pub(super) fn write(&self, format: StatsdFormat, to: &mut String) {
        // Plain statsd takes a sign as "by so much more", so that a negative value needs a zero before it.
        if format == StatsdFormat::Plain && self.kind == "g" && self.value.starts_with('-') {
            self.write_with("0", format, to);
            to.push('\n');
        }
        self.write_with(self.value, format, to);
    }

    fn write_with(&self, value: &str, format: StatsdFormat, to: &mut String) {
        to.push_str(self.name);
        if format == StatsdFormat::Plain {
            for (_, part) in self.labels.pairs() {
                to.push('.');
                put(&part, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'), to);
            }
        }
        to.push(':');
        to.push_str(value);
        to.push('|');
        to.push_str(self.kind);
        if self.share != Share::ALL {
            to.push_str("|@0.");
            let digits = format!("{:06}", self.share.millionths());
            to.push_str(digits.trim_end_matches('0'));
        }
        if format == StatsdFormat::Datadog {
            let mut before = "|#";
            for (name, tag) in self.labels.pairs() {
                to.push_str(before);
                to.push_str(name);
                to.push(':');
                put(&tag, |c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':'), to);
                before = ",";
            }
        }
    }
}

/// Writes what of `value` may stand there, and `_` for the rest. One that is empty is `_` too.
fn put(value: &str, fits: impl Fn(char) -> bool, to: &mut String) {
    let end = to.len() + VALUE_MAX;
    let before = to.len();
    for character in value.chars() {
        let character = if fits(character) { character } else { '_' };
        if to.len() + character.len_utf8() > end {
            break;
        }
        to.push(character);
    }
    if to.len() == before {
        to.push('_');
    }
}
