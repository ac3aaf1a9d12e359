//! What processes before this one have counted: taken out of a walk over all families, and added to a later one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::labels::{self, Labels};
use super::samples::{FamilyHead, MetricKind, SampleSink};
use crate::telemetry::cells::DurationReading;

/// The value of one series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CountBefore {
    Count(u64),
    Number(f64),
    Time(Duration),
    Times(DurationReading),
}

impl CountBefore {
    /// Both together. Of two that are not of one kind the own one counts.
    fn and(self, before: CountBefore) -> CountBefore {
        match (self, before) {
            (CountBefore::Count(one), CountBefore::Count(other)) => {
                CountBefore::Count(one.saturating_add(other))
            }
            (CountBefore::Number(one), CountBefore::Number(other)) => CountBefore::Number(one + other),
            (CountBefore::Time(one), CountBefore::Time(other)) => {
                CountBefore::Time(one.saturating_add(other))
            }
            (CountBefore::Times(mut one), CountBefore::Times(other)) => {
                one.merge(&other);
                CountBefore::Times(one)
            }
            (own, _) => own,
        }
    }

    /// What it is more than `earlier`; `None`: nothing.
    fn since(self, earlier: CountBefore) -> Option<CountBefore> {
        match (self, earlier) {
            (CountBefore::Count(now), CountBefore::Count(then)) => {
                Some(CountBefore::Count(now.saturating_sub(then))).filter(|_| now > then)
            }
            (CountBefore::Number(now), CountBefore::Number(then)) => {
                Some(CountBefore::Number(now - then)).filter(|_| now > then)
            }
            (CountBefore::Time(now), CountBefore::Time(then)) => {
                Some(CountBefore::Time(now.saturating_sub(then))).filter(|_| now > then)
            }
            (CountBefore::Times(now), CountBefore::Times(then)) => {
                Some(CountBefore::Times(now.since(&then))).filter(|_| now != then)
            }
            _ => None,
        }
    }

    fn put(self, labels: &Labels, out: &mut dyn SampleSink) {
        match self {
            CountBefore::Count(value) => out.count(labels, value),
            CountBefore::Number(value) => out.number(labels, value),
            CountBefore::Time(value) => out.time(labels, value),
            CountBefore::Times(reading) => out.times(labels, &reading),
        }
    }
}

/// The series of one family, by their labels as they are written.
type SeriesBefore = BTreeMap<String, CountBefore>;

/// What only grows: values of counters and histograms, by family and labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CountsBefore(BTreeMap<String, SeriesBefore>);

impl CountsBefore {
    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what others have counted.
    pub fn add(&mut self, more: &CountsBefore) {
        for (family, series) in &more.0 {
            let own = self.0.entry(family.clone()).or_default();
            for (labels, count) in series {
                own.entry(labels.clone()).and_modify(|own| *own = own.and(*count)).or_insert(*count);
            }
        }
    }

    /// What has come to it since it was `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &CountsBefore) -> CountsBefore {
        let of_family = |(family, series): (&String, &SeriesBefore)| {
            let then = earlier.0.get(family);
            let of_series = |(labels, now): (&String, &CountBefore)| {
                let more = match then.and_then(|then| then.get(labels)) {
                    Some(then) => now.since(*then),
                    None => Some(*now),
                };
                Some((labels.clone(), more?))
            };
            let more: SeriesBefore = series.iter().filter_map(of_series).collect();
            (!more.is_empty()).then(|| (family.clone(), more))
        };
        CountsBefore(self.0.iter().filter_map(of_family).collect())
    }
}

/// Takes what only grows out of a walk.
#[derive(Debug, Default)]
pub struct CountTaker {
    counts: CountsBefore,
    family: Option<&'static str>,
}

impl CountTaker {
    /// All of it.
    #[must_use]
    pub fn counts(self) -> CountsBefore {
        self.counts
    }

    fn take(&mut self, series: String, count: CountBefore) {
        if let Some(family) = self.family {
            self.counts.0.entry(family.to_owned()).or_default().insert(series, count);
        }
    }
}

impl SampleSink for CountTaker {
    fn begin(&mut self, head: &FamilyHead) {
        self.family = grows(head).then_some(head.name);
    }

    fn count(&mut self, labels: &Labels, value: u64) {
        self.take(labels.text().to_owned(), CountBefore::Count(value));
    }

    fn count_of(&mut self, labels: &Labels, more: (&str, &str), value: u64) {
        self.take(with(labels, more), CountBefore::Count(value));
    }

    fn number(&mut self, labels: &Labels, value: f64) {
        self.take(labels.text().to_owned(), CountBefore::Number(value));
    }

    fn time(&mut self, labels: &Labels, value: Duration) {
        self.take(labels.text().to_owned(), CountBefore::Time(value));
    }

    fn times(&mut self, labels: &Labels, reading: &DurationReading) {
        self.take(labels.text().to_owned(), CountBefore::Times(*reading));
    }

    fn waiting(&self) -> usize {
        0
    }
}

/// Whether a series of a family that this process has not counted yet is told as it was before: not that of somebody who is gone.
pub type KeepsSeries = Box<dyn Fn(&'static str, &Labels) -> bool + Send>;

/// Adds what was counted before to what goes by.
pub struct WithBefore<S> {
    out: S,
    before: Arc<CountsBefore>,
    keeps: KeepsSeries,
    family: &'static str,
    /// What was not met yet of the family that is under way.
    unmet: SeriesBefore,
}

impl<S: SampleSink> WithBefore<S> {
    /// To `out` goes all that comes, and what was counted `before`.
    pub fn new(out: S, before: Arc<CountsBefore>, keeps: KeepsSeries) -> WithBefore<S> {
        WithBefore { out, before, keeps, family: "", unmet: SeriesBefore::new() }
    }

    /// Ends the family that is under way.
    pub fn close(&mut self) {
        for (labels, count) in std::mem::take(&mut self.unmet) {
            let labels = Labels::written(labels);
            if (self.keeps)(self.family, &labels) {
                count.put(&labels, &mut self.out);
            }
        }
    }

    /// Where it all goes.
    pub fn out(&mut self) -> &mut S {
        &mut self.out
    }

    fn all(&mut self, series: &str, own: CountBefore) -> CountBefore {
        self.unmet.remove(series).map_or(own, |before| own.and(before))
    }
}

impl<S: SampleSink> SampleSink for WithBefore<S> {
    fn begin(&mut self, head: &FamilyHead) {
        self.close();
        self.family = head.name;
        if grows(head)
            && let Some(series) = self.before.0.get(head.name)
        {
            self.unmet = series.clone();
        }
        self.out.begin(head);
    }

    fn count(&mut self, labels: &Labels, value: u64) {
        self.all(labels.text(), CountBefore::Count(value)).put(labels, &mut self.out);
    }

    fn count_of(&mut self, labels: &Labels, more: (&str, &str), value: u64) {
        let all = match self.unmet.is_empty() {
            true => CountBefore::Count(value),
            false => self.all(&with(labels, more), CountBefore::Count(value)),
        };
        let CountBefore::Count(value) = all else { return };
        self.out.count_of(labels, more, value);
    }

    fn number(&mut self, labels: &Labels, value: f64) {
        self.all(labels.text(), CountBefore::Number(value)).put(labels, &mut self.out);
    }

    fn time(&mut self, labels: &Labels, value: Duration) {
        self.all(labels.text(), CountBefore::Time(value)).put(labels, &mut self.out);
    }

    fn times(&mut self, labels: &Labels, reading: &DurationReading) {
        self.all(labels.text(), CountBefore::Times(*reading)).put(labels, &mut self.out);
    }

    fn waiting(&self) -> usize {
        self.out.waiting()
    }
}

fn grows(head: &FamilyHead) -> bool {
    match head.kind {
        MetricKind::Counter | MetricKind::Histogram => true,
        MetricKind::Gauge => false,
    }
}

/// All labels as they are written.
fn with(labels: &Labels, (name, value): (&str, &str)) -> String {
    let mut series = labels.text().to_owned();
    if !series.is_empty() {
        series.push(',');
    }
    labels::put(name, value, &mut series);
    series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::cells::Durations;
    use crate::telemetry::exposition::{Exposition, TextForm};

    const REQUESTS: FamilyHead = FamilyHead { name: "requests_total", kind: MetricKind::Counter, help: "x" };
    const OPEN: FamilyHead = FamilyHead { name: "open", kind: MetricKind::Gauge, help: "x" };
    const TIMES: FamilyHead = FamilyHead { name: "times", kind: MetricKind::Histogram, help: "x" };
    const SECONDS: FamilyHead = FamilyHead { name: "cpu_total", kind: MetricKind::Counter, help: "x" };

    fn web() -> Labels {
        Labels::of(&[("target", "web")])
    }

    /// A process that has counted `count` of everything, and of some classes.
    fn walk(out: &mut dyn SampleSink, count: u64, classes: &[&str]) {
        out.begin(&REQUESTS);
        classes.iter().for_each(|class| out.count_of(&web(), ("class", class), count));
        out.begin(&OPEN);
        out.count(&Labels::none(), count);
        out.begin(&TIMES);
        let (durations, mut reading) = (Durations::default(), DurationReading::default());
        (0..count).for_each(|_| durations.record(2_000_000));
        reading.add(&durations);
        out.times(&web(), &reading);
        out.begin(&SECONDS);
        out.time(&Labels::none(), Duration::from_millis(count));
    }

    fn taken(count: u64, classes: &[&str]) -> CountsBefore {
        let mut taker = CountTaker::default();
        walk(&mut taker, count, classes);
        taker.counts()
    }

    fn text(count: u64, classes: &[&str], before: CountsBefore) -> String {
        let out = Exposition::new(TextForm::Prometheus);
        let keeps: KeepsSeries = Box::new(|_, labels| labels.pairs().all(|(_, value)| value != "gone"));
        let mut sink = WithBefore::new(out, Arc::new(before), keeps);
        walk(&mut sink, count, classes);
        sink.close();
        let text = sink.out().take();
        text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn what_was_counted_before_is_added_and_what_goes_up_and_down_is_not() {
        let before = taken(3, &["2xx", "5xx", "gone"]);
        let text = text(4, &["1xx", "2xx"], before);
        let expected = "requests_total{target=\"web\",class=\"1xx\"} 4\n\
                        requests_total{target=\"web\",class=\"2xx\"} 7\n\
                        requests_total{target=\"web\",class=\"5xx\"} 3\n\
                        open 4\n";
        assert!(text.starts_with(expected), "{text}");
        for line in [
            "times_bucket{target=\"web\",le=\"0.001\"} 0\n",
            "times_bucket{target=\"web\",le=\"0.0025\"} 7\n",
            "times_bucket{target=\"web\",le=\"+Inf\"} 7\n",
            "times_sum{target=\"web\"} 0.014000000\n",
            "times_count{target=\"web\"} 7\n",
            "cpu_total 0.007000000\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn what_comes_to_it_later_is_the_difference_and_both_are_the_whole() {
        let (given, end) = (taken(3, &["2xx"]), taken(5, &["2xx", "4xx"]));
        let rest = end.since(&given);
        assert_eq!(rest.0["requests_total"].len(), 2);
        assert!(end.since(&end).is_empty());
        let told: CountsBefore = serde_json::from_str(&serde_json::to_string(&rest).unwrap()).unwrap();
        let mut all = given;
        all.add(&told);
        assert_eq!(all, end);
    }
}
