//! Metrics as text: the format of Prometheus (0.0.4) and OpenMetrics (1.0.0). Pure: numbers in, text out, piece by piece.

mod accept;
mod before;
mod labels;
mod samples;
#[cfg(test)]
pub(crate) mod strict;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::time::Duration;

use super::cells::{DurationReading, EDGES};

pub use accept::TextForm;
pub use before::{CountTaker, CountsBefore, KeepsSeries, WithBefore};
pub use labels::Labels;
pub use samples::{FamilyHead, MetricKind, SampleSink};

/// How an upper edge is written, in the order of [`EDGES`].
const EDGE_TEXTS: [&str; EDGES.len()] = [
    "0.00005", "0.00025", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0",
    "2.5", "10.0", "30.0",
];

/// Text in the making. Whoever takes what is there goes on with an empty one, in the middle of a family too.
#[derive(Debug)]
pub struct Exposition {
    form: TextForm,
    text: String,
    name: &'static str,
}

impl Exposition {
    /// Without a word yet.
    #[must_use]
    pub fn new(form: TextForm) -> Exposition {
        Exposition { form, text: String::new(), name: "" }
    }

    /// The end of all: in the one form that says so.
    pub fn finish(&mut self) {
        if self.form == TextForm::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
    }

    /// What is there.
    #[must_use]
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// A sample but for its value.
    fn start(&mut self, suffix: &str, labels: &Labels, more: Option<(&str, &str)>) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        let own = labels.text();
        if !own.is_empty() || more.is_some() {
            self.text.push('{');
            self.text.push_str(own);
            if let Some((name, value)) = more {
                if !own.is_empty() {
                    self.text.push(',');
                }
                labels::put(name, value, &mut self.text);
            }
            self.text.push('}');
        }
        self.text.push(' ');
    }

    fn seconds(&mut self, value: Duration) {
        let _ = writeln!(self.text, "{}.{:09}", value.as_secs(), value.subsec_nanos());
    }
}

impl SampleSink for Exposition {
    fn begin(&mut self, head: &FamilyHead) {
        let FamilyHead { name, kind, help } = *head;
        self.name = name;
        let family = match (self.form, kind) {
            (TextForm::OpenMetrics, MetricKind::Counter) => name.strip_suffix("_total").unwrap_or(name),
            (TextForm::OpenMetrics | TextForm::Prometheus, _) => name,
        };
        self.text.push_str("# HELP ");
        self.text.push_str(family);
        self.text.push(' ');
        labels::escape(help, &mut self.text);
        self.text.push_str("\n# TYPE ");
        self.text.push_str(family);
        self.text.push(' ');
        self.text.push_str(kind.name());
        self.text.push('\n');
    }

    fn count(&mut self, labels: &Labels, value: u64) {
        self.start("", labels, None);
        // Writing to a String can't fail.
        let _ = writeln!(self.text, "{value}");
    }

    fn count_of(&mut self, labels: &Labels, more: (&str, &str), value: u64) {
        self.start("", labels, Some(more));
        let _ = writeln!(self.text, "{value}");
    }

    fn number(&mut self, labels: &Labels, value: f64) {
        self.start("", labels, None);
        let _ = if value.is_infinite() {
            writeln!(self.text, "{}Inf", if value > 0.0 { "+" } else { "-" })
        } else {
            writeln!(self.text, "{value}")
        };
    }

    fn time(&mut self, labels: &Labels, value: Duration) {
        self.start("", labels, None);
        self.seconds(value);
    }

    fn times(&mut self, labels: &Labels, reading: &DurationReading) {
        let mut so_far = 0;
        for (edge, count) in EDGE_TEXTS.iter().zip(reading.buckets()) {
            so_far += count;
            self.start("_bucket", labels, Some(("le", edge)));
            let _ = writeln!(self.text, "{so_far}");
        }
        let count = reading.count();
        self.start("_bucket", labels, Some(("le", "+Inf")));
        let _ = writeln!(self.text, "{count}");
        self.start("_sum", labels, None);
        self.seconds(reading.sum());
        self.start("_count", labels, None);
        let _ = writeln!(self.text, "{count}");
    }

    fn waiting(&self) -> usize {
        self.text.len()
    }
}
