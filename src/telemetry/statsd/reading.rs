//! All samples of one moment.

use std::time::Duration;

use super::series::{SeriesKey, SeriesPart};
use crate::telemetry::cells::DurationReading;
use crate::telemetry::exposition::{FamilyHead, Labels, MetricKind, SampleSink};

/// About as many bytes as a sample takes.
const SAMPLE: usize = 64;

/// All samples of one moment. Of a histogram they are how many times there were, and what they add up to.
#[derive(Debug, Default)]
pub struct StatsdReading {
    family: &'static str,
    is_counter: bool,
    pub(super) counters: Vec<(SeriesKey, u64)>,
    /// With their values as they are written.
    pub(super) gauges: Vec<(SeriesKey, String)>,
    /// Samples since the last rest.
    fresh: usize,
}

impl StatsdReading {
    /// What it has taken waits no more.
    pub fn rest(&mut self) {
        self.fresh = 0;
    }

    fn key(&mut self, labels: &Labels, part: SeriesPart) -> SeriesKey {
        self.fresh += 1;
        SeriesKey { family: self.family, part, labels: labels.clone() }
    }

    fn gauge(&mut self, labels: &Labels, value: String) {
        let key = self.key(labels, SeriesPart::Whole);
        self.gauges.push((key, value));
    }

    fn counter(&mut self, labels: &Labels, part: SeriesPart, value: u64) {
        let key = self.key(labels, part);
        self.counters.push((key, value));
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl SampleSink for StatsdReading {
    fn begin(&mut self, head: &FamilyHead) {
        self.family = head.name;
        self.is_counter = head.kind == MetricKind::Counter;
    }

    fn count(&mut self, labels: &Labels, value: u64) {
        if self.is_counter {
            self.counter(labels, SeriesPart::Whole, value);
        } else {
            self.gauge(labels, value.to_string());
        }
    }

    fn count_of(&mut self, labels: &Labels, more: (&str, &str), value: u64) {
        let mut labels = labels.clone();
        labels.add(more);
        self.count(&labels, value);
    }

    fn number(&mut self, labels: &Labels, value: f64) {
        // There is no line for what is no number.
        if value.is_finite() {
            self.gauge(labels, value.to_string());
        }
    }

    fn time(&mut self, labels: &Labels, value: Duration) {
        if self.is_counter {
            self.counter(labels, SeriesPart::Microseconds, microseconds(value));
        } else {
            self.gauge(labels, format!("{}.{:03}", value.as_secs(), value.subsec_millis()));
        }
    }

    fn times(&mut self, labels: &Labels, reading: &DurationReading) {
        self.counter(labels, SeriesPart::Count, reading.count());
        self.counter(labels, SeriesPart::Microseconds, microseconds(reading.sum()));
    }

    fn waiting(&self) -> usize {
        self.fresh * SAMPLE
    }
}
