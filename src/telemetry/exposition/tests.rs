//! What is written is what is read.

use std::time::Duration;

use proptest::prelude::*;

use super::strict::read;
use super::*;
use crate::telemetry::cells::Durations;

const REQUESTS: FamilyHead =
    FamilyHead { name: "e_requests_total", kind: MetricKind::Counter, help: "Requests \\ by\nclass." };
const TIMES: FamilyHead = FamilyHead { name: "e_time_seconds", kind: MetricKind::Histogram, help: "Times." };
const OPEN: FamilyHead = FamilyHead { name: "e_open", kind: MetricKind::Gauge, help: "Open now." };

#[test]
fn each_form_names_counters_in_its_way_and_one_says_where_it_ends() {
    let written = |form| {
        let mut out = Exposition::new(form);
        out.begin(&REQUESTS);
        out.count_of(&Labels::of(&[("route", "a\"b\\c\nd")]), ("class", "2xx"), 7);
        out.begin(&OPEN);
        out.number(&Labels::none(), 0.5);
        out.number(&Labels::of(&[("l", "é")]), f64::INFINITY);
        out.time(&Labels::of(&[("l", "t")]), Duration::from_nanos(1_000_000_007));
        out.finish();
        out.take()
    };
    let rest = "# HELP e_open Open now.\n# TYPE e_open gauge\ne_open 0.5\ne_open{l=\"é\"} +Inf\ne_open{l=\"t\"} 1.000000007\n";
    let sample = "e_requests_total{route=\"a\\\"b\\\\c\\nd\",class=\"2xx\"} 7\n";
    assert_eq!(
        written(TextForm::Prometheus),
        format!(
            "# HELP e_requests_total Requests \\\\ by\\nclass.\n# TYPE e_requests_total counter\n{sample}{rest}"
        )
    );
    assert_eq!(
        written(TextForm::OpenMetrics),
        format!(
            "# HELP e_requests Requests \\\\ by\\nclass.\n# TYPE e_requests counter\n{sample}{rest}# EOF\n"
        )
    );
}

#[test]
fn a_histogram_has_its_edges_all_of_it_and_the_sum() {
    let times = Durations::default();
    for nanos in [50_000, 50_001, 2_000_000_000, 60_000_000_000] {
        times.record(nanos);
    }
    let mut reading = DurationReading::default();
    reading.add(&times);
    let mut out = Exposition::new(TextForm::Prometheus);
    out.begin(&TIMES);
    out.times(&Labels::of(&[("target", "web")]), &reading);
    let text = out.take();
    let read = read(&text, false).expect("it can be read");
    let bucket = |edge: &str| {
        let all = &read["e_time_seconds"].samples;
        all.iter().find(|(_, labels, _)| labels.last().is_some_and(|(_, le)| le == edge)).map(|one| one.2)
    };
    assert_eq!((bucket("0.00005"), bucket("0.00025"), bucket("2.5")), (Some(1.0), Some(2.0), Some(3.0)));
    assert_eq!((bucket("30.0"), bucket("+Inf")), (Some(3.0), Some(4.0)));
    assert!(text.contains("e_time_seconds_sum{target=\"web\"} 62.000100001\n"), "{text}");
    for (edge, text) in EDGES.iter().zip(EDGE_TEXTS) {
        let seconds: f64 = text.parse().expect("a number");
        assert!((seconds * 1e9 - *edge as f64).abs() < 1e-3, "{edge} {text}");
    }
}

#[test]
fn the_reader_of_these_tests_is_strict() {
    let head = "# HELP a A.\n# TYPE a gauge\n";
    assert!(read(&format!("{head}a{{x=\"1\",y=\"\"}} -1\n"), false).is_ok());
    for wrong in [
        "a 1\n".to_owned(),
        format!("{head}b 1\n"),
        format!("{head}a 1"),
        format!("{head}a 1\na 2\n"),
        format!("{head}{head}"),
        format!("{head}a{{x=\"\\t\"}} 1\n"),
        format!("{head}a{{x=\"1\",x=\"2\"}} 1\n"),
        format!("{head}a{{}} 1\n"),
        format!("{head}a{{x=\"1\"}}1\n"),
        format!("{head}a x\n"),
        format!("{head}# EOF\n"),
        "# HELP a A.\n# TYPE a counter\na_total 1\n".to_owned(),
        "# HELP a_total A.\n# TYPE a_total counter\na_total -1\n".to_owned(),
        "# HELP h A.\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\n".to_owned(),
        "# HELP h A.\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 2\n".to_owned(),
    ] {
        assert!(read(&wrong, false).is_err(), "{wrong}");
    }
    assert!(read("# HELP a A.\n# TYPE a counter\na_total 1\n# EOF\n", true).is_ok());
    assert!(read(head, true).is_err(), "it has no end");
}

proptest! {
    #[test]
    fn whatever_names_there_are_they_are_read_back(
        values in prop::collection::btree_set(any::<String>(), 1..6),
        counts in prop::collection::vec(any::<u32>(), 6),
        cuts in any::<u8>(),
        is_open in any::<bool>(),
    ) {
        let mut out = Exposition::new(if is_open { TextForm::OpenMetrics } else { TextForm::Prometheus });
        let (mut text, mut labels) = (String::new(), Labels::none());
        out.begin(&REQUESTS);
        for (place, (value, count)) in values.iter().zip(&counts).enumerate() {
            labels.set(&[("route", value), ("listener", "x")]);
            out.count_of(&labels, ("class", value), (*count).into());
            if cuts >> place & 1 == 1 {
                text += &out.take();
            }
        }
        out.begin(&OPEN);
        out.number(&Labels::none(), f64::from(counts[0]) / 8.0);
        out.finish();
        text += &out.take();
        let families = read(&text, is_open).map_err(TestCaseError::fail)?;
        let family = &families[if is_open { "e_requests" } else { "e_requests_total" }];
        let got: Vec<(&str, &str, f64)> =
            family.samples.iter().map(|(_, labels, value)| (&*labels[0].1, &*labels[2].1, *value)).collect();
        let expected: Vec<(&str, &str, f64)> =
            values.iter().zip(&counts).map(|(value, count)| (&**value, &**value, f64::from(*count))).collect();
        prop_assert_eq!(got, expected);
    }
}
