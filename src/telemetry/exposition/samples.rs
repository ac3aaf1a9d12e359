//! What families are, and who takes their samples.

use std::time::Duration;

use super::labels::Labels;
use crate::telemetry::cells::DurationReading;

/// What a family of metrics is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Times, counted in buckets.
    Histogram,
}

impl MetricKind {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

/// What is said of a family before its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyHead {
    /// The name of its samples; that of a counter ends in `_total`.
    pub name: &'static str,
    /// What it is.
    pub kind: MetricKind,
    /// One line for people.
    pub help: &'static str,
}

/// Takes samples, family by family: whoever writes them for a reader who asks, or sends them to one who does not.
pub trait SampleSink {
    /// Begins a family: the samples from now on are its.
    fn begin(&mut self, head: &FamilyHead);

    /// A sample.
    fn count(&mut self, labels: &Labels, value: u64);

    /// A sample with one label more.
    fn count_of(&mut self, labels: &Labels, more: (&str, &str), value: u64);

    /// A sample that may be a fraction.
    fn number(&mut self, labels: &Labels, value: f64);

    /// A sample that is a time.
    fn time(&mut self, labels: &Labels, value: Duration);

    /// The samples of a histogram.
    fn times(&mut self, labels: &Labels, reading: &DurationReading);

    /// How many bytes, or about, wait to be taken away.
    fn waiting(&self) -> usize;
}
