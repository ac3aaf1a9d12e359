//! Any bytes as what a backend's agent says.

use evenkeel::targets::state::health::agent::{AgentReport, MOST_SHARE};

/// Any bytes as an agent's line.
pub fn agent(bytes: &[u8]) {
    let report = AgentReport::read(bytes);
    for text in [&report.remark, &report.strange].into_iter().flatten() {
        assert!(!text.is_empty() && text.chars().count() <= 100);
        assert!(!text.chars().any(char::is_control), "a log would obey this: {text:?}");
    }
    assert!(report.share.is_none_or(|share| share <= MOST_SHARE));
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    assert_eq!(report, AgentReport::read(line), "behind the end of the line nothing counts");

    // What was understood, said once more in its plainest form, is understood alike.
    let mut again: Vec<String> = Vec::new();
    again.extend(report.share.map(|share| format!("{share}%")));
    again.extend(report.standing.map(|standing| standing.as_str().to_owned()));
    again.extend(report.mode.map(|mode| mode.as_str().to_owned()));
    let again = AgentReport::read(again.join(" ").as_bytes());
    assert_eq!((again.share, again.standing, again.mode), (report.share, report.standing, report.mode));
    assert_eq!(again.strange, None);
    assert_eq!(again.is_empty(), report.is_empty());
}
