//! Lines and datagrams, whatever names have in them.

use proptest::prelude::*;

use super::ledger::StatsdLedger;
use super::reading::StatsdReading;
use super::{RequestTiming, StatsdDatagrams};
use crate::config::model::{Share, StatsdFormat};
use crate::telemetry::cells::StatusClass;
use crate::telemetry::exposition::{FamilyHead, Labels, MetricKind, SampleSink as _};

const COUNTER: FamilyHead =
    FamilyHead { name: "evenkeel_requests_total", kind: MetricKind::Counter, help: "Requests." };
const GAUGE: FamilyHead = FamilyHead { name: "evenkeel_balance", kind: MetricKind::Gauge, help: "A number." };

/// What is told of a counter with this label, and of a gauge.
fn told(format: StatsdFormat, limit: usize, names: &[&str], value: f64) -> Vec<String> {
    let mut reading = StatsdReading::default();
    reading.begin(&COUNTER);
    for name in names {
        reading.count(&Labels::of(&[("target", name), ("class", "2xx")]), 7);
    }
    reading.begin(&GAUGE);
    reading.number(&Labels::none(), value);
    let mut datagrams = StatsdDatagrams::new(format, limit);
    datagrams.add(&reading, &StatsdLedger::new(&[]));
    datagrams.finish().into_iter().map(|datagram| datagram.text).collect()
}

#[test]
fn lines_are_those_of_their_dialect() {
    let of = |format, value| told(format, 1432, &["web"], value).join("\n");
    assert_eq!(of(StatsdFormat::Plain, 1.5), "evenkeel.requests.web.2xx:7|c\nevenkeel.balance:1.5|g");
    assert_eq!(
        of(StatsdFormat::Datadog, -1.0),
        "evenkeel.requests:7|c|#target:web,class:2xx\nevenkeel.balance:-1|g"
    );
    // A sign alone would mean "by so much less".
    assert!(of(StatsdFormat::Plain, -1.0).ends_with("\nevenkeel.balance:0|g\nevenkeel.balance:-1|g"));
    assert!(!of(StatsdFormat::Plain, f64::NAN).contains("balance"));
}

#[test]
fn times_are_milliseconds_with_the_share_that_was_drawn() {
    let timing = RequestTiming {
        target: "web".into(),
        share: Share::from_millionths(10_000).expect("in range"),
        class: StatusClass::Success,
        whole: std::time::Duration::from_micros(12_034),
        backend: None,
    };
    let mut datagrams = StatsdDatagrams::new(StatsdFormat::Datadog, 1432);
    datagrams.add_timings(&[timing]);
    let text = &datagrams.finish()[0].text;
    assert_eq!(text, "evenkeel.request_time:12.034|ms|@0.01|#target:web,class:2xx");
}

proptest! {
    #[test]
    fn every_line_is_one_and_no_datagram_is_too_long(
        names in prop::collection::vec("\\PC{0,300}|[\\x00-\\x7f]{0,40}", 1..30), plain: bool, limit in 600..2000_usize,
    ) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let format = if plain { StatsdFormat::Plain } else { StatsdFormat::Datadog };
        let datagrams = told(format, limit, &names, 1.0);
        let mut counters = 0;
        for datagram in &datagrams {
            prop_assert!(datagram.len() <= limit && !datagram.is_empty());
            for line in datagram.split('\n') {
                let (name, rest) = line.split_once(':').expect("a name");
                prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)));
                let mut parts = rest.split('|');
                prop_assert!(parts.next().is_some_and(|value| value.parse::<f64>().is_ok()));
                prop_assert!(matches!(parts.next(), Some("c" | "g")));
                counters += usize::from(rest.contains("|c"));
                match parts.next() {
                    None => {}
                    Some(tags) => {
                        let tags = tags.strip_prefix('#').expect("tags");
                        prop_assert_eq!(tags.split(',').count(), 2, "{}", line);
                        prop_assert!(!tags.chars().any(char::is_control));
                    }
                }
                prop_assert!(parts.next().is_none());
            }
        }
        prop_assert_eq!(counters, names.len());
    }
}
