//! Lines, packed into datagrams.

use super::ledger::StatsdLedger;
use super::line::StatsdLine;
use super::reading::StatsdReading;
use super::series::SeriesKey;
use super::timings::RequestTiming;
use crate::config::model::{Share, StatsdFormat};
use crate::telemetry::exposition::Labels;

/// What is sent at once.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StatsdDatagram {
    /// Its lines, with a line break between any two.
    pub text: String,
    /// By how much more of which counters it tells.
    pub counters: Vec<(SeriesKey, u64)>,
}

/// Datagrams in the making.
#[derive(Debug)]
pub struct StatsdDatagrams {
    format: StatsdFormat,
    /// Most bytes of one.
    limit: usize,
    ready: Vec<StatsdDatagram>,
    open: StatsdDatagram,
    /// The line in the making.
    line: String,
}

impl StatsdDatagrams {
    /// None yet, in this dialect, each of at most so many bytes, in which the longest line fits.
    #[must_use]
    pub fn new(format: StatsdFormat, limit: usize) -> StatsdDatagrams {
        StatsdDatagrams {
            format,
            limit,
            ready: Vec::new(),
            open: StatsdDatagram::default(),
            line: String::new(),
        }
    }

    /// What of a reading has not been told, and what goes up and down as it is.
    pub fn add(&mut self, reading: &StatsdReading, ledger: &StatsdLedger) {
        for (key, value) in &reading.counters {
            let left = ledger.left(key, *value);
            if left > 0 {
                self.put(key, &left.to_string(), "c");
                self.open.counters.push((key.clone(), left));
            }
        }
        for (key, value) in &reading.gauges {
            self.put(key, value, "g");
        }
    }

    /// The times of single requests.
    pub fn add_timings(&mut self, timings: &[RequestTiming]) {
        for timing in timings {
            let target = if timing.target.is_empty() { "no target" } else { &*timing.target };
            let labels = Labels::of(&[("target", target), ("class", timing.class.name())]);
            let times =
                [("evenkeel.request_time", Some(timing.whole)), ("evenkeel.backend_time", timing.backend)];
            for (name, time) in times {
                let Some(time) = time else { continue };
                // In milliseconds.
                let value = format!("{}.{:03}", time.as_millis(), time.subsec_micros() % 1000);
                self.line(&StatsdLine {
                    name,
                    labels: &labels,
                    value: &value,
                    kind: "ms",
                    share: timing.share,
                });
            }
        }
    }

    fn put(&mut self, key: &SeriesKey, value: &str, kind: &'static str) {
        let name = key.name();
        self.line(&StatsdLine { name: &name, labels: &key.labels, value, kind, share: Share::ALL });
    }

    /// A line that is never split.
    fn line(&mut self, line: &StatsdLine<'_>) {
        self.line.clear();
        line.write(self.format, &mut self.line);
        if !self.open.text.is_empty() {
            if self.open.text.len() + 1 + self.line.len() > self.limit {
                self.ready.push(std::mem::take(&mut self.open));
            } else {
                self.open.text.push('\n');
            }
        }
        self.open.text.push_str(&self.line);
    }

    /// All of them.
    #[must_use]
    pub fn finish(mut self) -> Vec<StatsdDatagram> {
        if !self.open.text.is_empty() {
            self.ready.push(self.open);
        }
        self.ready
    }
}
