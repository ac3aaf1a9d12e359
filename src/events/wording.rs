//! How long a sentence may be, and how names, reasons and spans are fitted into it.

use std::time::Duration;

/// Characters of a sentence: with time and level in front of it a line has no more than 160.
pub(super) const SENTENCE: usize = 125;
/// What is always shown of a reason, however long the names are.
pub(super) const REASON: usize = 40;
/// Characters of a name that stands in a sentence without a reason.
const NAME: usize = 32;

/// Milliseconds, as fields have them.
pub(super) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A span as people say it: two figures are enough.
pub(super) fn rough(span: Duration) -> String {
    let tenths = (millis(span) + 50) / 100;
    let seconds = (millis(span) + 500) / 1000;
    match seconds {
        _ if span < Duration::from_secs(1) => format!("{}ms", millis(span)),
        _ if tenths < 100 && !tenths.is_multiple_of(10) => format!("{}.{}s", tenths / 10, tenths % 10),
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// As much of `text` as there is `room` for.
pub(super) fn clipped(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

/// The same of a name: names that are alike differ at either end.
pub(super) fn shortened(name: &str, room: usize) -> String {
    let count = name.chars().count();
    if count <= room {
        return name.to_owned();
    }
    let kept = room.saturating_sub(1);
    let (head, tail) = (kept - kept / 2, kept / 2);
    name.chars().take(head).chain(['…']).chain(name.chars().skip(count - tail)).collect()
}

/// A name in a sentence without a reason.
pub(super) fn name(name: &str) -> String {
    shortened(name, NAME)
}

/// `start`, the names with slashes between, `middle`, a reason and `end`, in at most [`SENTENCE`] characters: what is too long of the
/// names goes first, as far as it takes for [`REASON`] characters of the reason, and then what is too long of the reason. What else
/// there is, is short: it is never left out.
pub(super) fn sentence(start: &str, names: &[&str], middle: &str, reason: &str, end: &str) -> String {
    let length = |text: &str| text.chars().count();
    let fixed = length(start) + length(middle) + length(end) + names.len().saturating_sub(1);
    let mut room = SENTENCE.saturating_sub(fixed + length(reason).min(REASON));
    // The shortest first, so that what it leaves is there for the others.
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|&nth| length(names[nth]));
    let mut shown = vec![String::new(); names.len()];
    for (done, nth) in order.into_iter().enumerate() {
        shown[nth] = shortened(names[nth], room / (names.len() - done));
        // Where there is no room at all, of each a sign that it was there.
        room = room.saturating_sub(length(&shown[nth]));
    }
    let head = format!("{start}{}{middle}", shown.join("/"));
    let room = SENTENCE.saturating_sub(length(&head) + length(end));
    format!("{head}{}{end}", clipped(reason, room.max(REASON)))
}

/// The first three of some lines, and how many more there are.
pub(super) fn listed(lines: &[String]) -> String {
    const SHOWN: usize = 3;
    if lines.is_empty() {
        return "nothing differs".to_owned();
    }
    let text = lines.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("; ");
    match lines.len() {
        0..=SHOWN => text,
        more => format!("{text}; and {} more", more - SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_two_figures() {
        let told = |millis| rough(Duration::from_millis(millis));
        let all = [0, 350, 999, 1_000, 1_449, 9_960, 12_345, 59_499, 59_500, 72_000, 3_599_000, 7_260_000];
        let expected =
            ["0ms", "350ms", "999ms", "1s", "1.4s", "10s", "12s", "59s", "1m00s", "1m12s", "59m59s", "2h01m"];
        assert_eq!(all.map(told), expected);
    }

    #[test]
    fn a_long_name_keeps_both_of_its_ends() {
        assert_eq!(shortened("payments-production-eu-west-017", 12), "paymen…t-017");
        assert_eq!(shortened("web", 3), "web");
        assert_eq!(shortened("website", 1), "…");
        let long = ["t".repeat(300), "b".repeat(300)];
        let both =
            sentence("backend ", &[&long[0], &long[1]], " is down: ", &"r".repeat(300), " (1 of 2 left)");
        assert_eq!(both.chars().count(), SENTENCE);
        assert_eq!(both.matches('r').count(), REASON - 1, "something of the reason is always shown");
        let one = sentence("backend ", &["web", &long[1]], " is down: ", "refused", " (1 of 2 left)");
        assert!(one.chars().count() == SENTENCE && one.contains(" web/bb"), "{one}");
        let end = format!("; {}", "e".repeat(SENTENCE));
        let full = sentence("keys of ", &["one", "another"], ": ", &"r".repeat(300), &end);
        assert_eq!(full, format!("keys of …/…: {}…{end}", "r".repeat(REASON - 1)), "too long, and whole");
        assert_eq!(sentence("TLS with ", &["a"], " failed: ", "no", ""), "TLS with a failed: no");
    }
}
