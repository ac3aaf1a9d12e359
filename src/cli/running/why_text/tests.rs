use serde_json::Map;

use super::*;
use crate::admin::requests::report::{DecidingKey, NearbyEvent, ShownLine};
use crate::events::EventReport;
use crate::reload::plan::PlannedPlace;

fn summary(path: &str) -> RequestSummary {
    RequestSummary {
        id: "0123456789abcdef0123456789abcdef".into(),
        time_ms: 1_795_441_200_007,
        kind: "http".into(),
        kept_for: "failed".into(),
        listener: "public".into(),
        target: Some("web".into()),
        backend: Some("b2".into()),
        method: Some("GET".into()),
        host: Some("shop.example".into()),
        path: Some(path.into()),
        status: Some(503),
        cause: Some("connect_failed".into()),
        duration_ms: 12.5,
        attempts: 2,
        ..RequestSummary::default()
    }
}

fn step(step: &str, at_ms: f64, took_ms: Option<f64>, text: &str) -> StoryStep {
    StoryStep { step: step.into(), at_ms, took_ms, text: text.into() }
}

fn whole(path: &str) -> RequestStory {
    let event = EventReport {
        id: "a-1".into(),
        time_ms: 0,
        level: "warn".into(),
        kind: "backend_down".into(),
        object: None,
        text: "backend web/b2 is down: connection refused".into(),
        facts: Map::new(),
    };
    RequestStory {
        summary: summary(path),
        verdict: "No backend could be reached. It was tried on `b1` (connect_failed), `b2` (connect_failed)."
            .into(),
        fault: "backend".into(),
        headers: vec![ShownLine { name: "User-Agent".into(), value: "curl/8.5".into() }],
        steps: vec![
            step("accept", -1500.0, None, "from 192.0.2.7:4711"),
            step("head", 0.0, Some(0.5), ""),
            step("attempt", 1.0, Some(5.0), "1: b1, 2 in flight: connect_failed"),
            step("connect", 1.0, Some(5.0), "in vain"),
            step("end", 12.5, None, "503, connect_failed, 120 bytes out"),
        ],
        config: vec![DecidingKey {
            key: "targets.web.retries.attempts".into(),
            value: "3".into(),
            place: PlannedPlace { text: "evenkeel.yaml:12".into(), file: None, line: None },
        }],
        events: vec![NearbyEvent { at_ms: -2000.0, event }],
        ..RequestStory::default()
    }
}

#[test]
fn a_story_is_told_in_eighty_columns() {
    assert_eq!(
        story(&whole("/a?b=*")),
        "\
GET shop.example/a?b=*
503 connect_failed after 12.5 ms, by the fault of the backend
  No backend could be reached. It was tried on `b1` (connect_failed), `b2`
  (connect_failed).

  2026-11-23T13:40:00.007Z  id 0123456789abcdef0123456789abcdef
  kept as one that failed
  User-Agent: curl/8.5

     at ms   took ms
 -1500.000            accept                        from 192.0.2.7:4711
     0.000     0.500  head         █
     1.000     5.000  attempt       ██████          1: b1, 2 in flight:
                                                    connect_failed
     1.000     5.000    connect     ██████          in vain
    12.500            end                           503, connect_failed, 120
                                                    bytes out

config
  targets.web.retries.attempts: 3 (evenkeel.yaml:12)

what else happened within ten seconds
  -2.000 s WARN backend web/b2 is down: connection refused
"
    );
}

#[test]
fn whatever_a_client_wrote_no_line_is_longer_and_no_character_steers() {
    let evil = "/\u{1b}[2J\u{202e}\u{9b}\r\n\u{e0041}".repeat(200);
    let mut hostile = whole(&evil);
    hostile.headers[0].value.clone_from(&evil);
    hostile.steps[1].text.clone_from(&evil);
    hostile.events[0].event.text.clone_from(&evil);
    hostile.config[0].value.clone_from(&evil);
    let requests = vec![summary(&evil), RequestSummary { method: None, ..summary("") }];
    for text in [story(&hostile), list(&RequestList { requests, more: true })] {
        assert!(!text.contains(|sign| crate::message::steers(sign) && sign != '\n'));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("\\u{1b}[2J\\u{202e}\\u{9b}\\r\\n\\u{e0041}"), "{text}");
        assert!(text.lines().count() < 300);
    }
}

#[test]
fn a_list_has_what_is_needed_to_ask_on() {
    let requests = vec![summary("/a"), RequestSummary { method: None, target: None, ..summary("") }];
    assert_eq!(
        list(&RequestList { requests, more: true }),
        "\
0123456789abcdef0123456789abcdef  2026-11-23T13:40:00.007Z  503 connect_failed
    failed, 12.5 ms, web/b2, 2 attempts
    GET shop.example/a
0123456789abcdef0123456789abcdef  2026-11-23T13:40:00.007Z  503 connect_failed
    failed, 12.5 ms, listener public, 2 attempts
there are more: -n COUNT
"
    );
}

#[test]
fn text_is_broken_at_blanks_and_what_has_none_is_cut() {
    assert_eq!(wrapped("", 10), [""]);
    assert_eq!(wrapped("one two three", 9), ["one two", "three"]);
    assert_eq!(wrapped(&"x".repeat(25), 10), ["x".repeat(10), "x".repeat(10), "x".repeat(5)]);
    assert_eq!(wrapped("ab 0123456789 c", 10), ["ab", "0123456789", "c"]);
}
