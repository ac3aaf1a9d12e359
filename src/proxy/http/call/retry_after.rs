//! Retry-After: when a backend wants to be asked again (RFC 9110 §10.2.3).

use std::time::{Duration, SystemTime};

use crate::message::{Head, HeaderField};

/// No date and no number of seconds that means something is longer.
const LONGEST: usize = 64;

/// How long `answer` asks to be left alone: seconds, or a date. A date is compared with the answer's own Date, so that a
/// backend's clock may be wrong; without one, with `wall`. `None`: it does not say, or what it says is no such value.
#[must_use]
pub(super) fn retry_after(answer: &Head, wall: SystemTime) -> Option<Duration> {
    let value = answer.named("retry-after").filter(|value| value.len() <= LONGEST)?;
    if !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
        // More digits than a number has: longer than anybody waits.
        let seconds = std::str::from_utf8(value).ok()?.parse().unwrap_or(u64::from(u32::MAX));
        return Some(Duration::from_secs(seconds));
    }
    let date = |value: &[u8]| httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok();
    let until = date(value)?;
    let now =
        answer.value(HeaderField::Date).filter(|value| value.len() <= LONGEST).and_then(date).unwrap_or(wall);
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(lines: &[(&str, &str)]) -> Head {
        let mut head = Head::answer(503);
        for (name, value) in lines {
            head.push(name.as_bytes(), value.as_bytes());
        }
        head
    }

    /// 1994-11-06 08:49:37, as in the RFC's examples.
    fn wall() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
    }

    #[test]
    fn seconds_and_dates() {
        for (value, expected) in [
            ("120", Some(120)),
            ("0", Some(0)),
            ("007", Some(7)),
            ("99999999999999999999999", Some(u64::from(u32::MAX))),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some(30)),
            ("Sunday, 06-Nov-94 08:50:07 GMT", Some(30)),
            ("Sun Nov  6 08:50:07 1994", Some(30)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("", None),
            ("-1", None),
            ("+5", None),
            ("1.5", None),
            ("5 s", None),
            ("soon", None),
            ("\u{fc}", None),
        ] {
            let found = retry_after(&answer(&[("Retry-After", value)]), wall());
            assert_eq!(found, expected.map(Duration::from_secs), "{value}");
        }
        assert_eq!(retry_after(&answer(&[]), wall()), None);
    }

    #[test]
    fn a_date_counts_from_the_answers_own() {
        let until = ("RETRY-AFTER", "Sun, 06 Nov 1994 10:00:10 GMT");
        let skewed = answer(&[until, ("Date", "Sun, 06 Nov 1994 10:00:00 GMT")]);
        assert_eq!(retry_after(&skewed, wall()), Some(Duration::from_secs(10)));
        let odd = answer(&[until, ("Date", "today")]);
        assert_eq!(retry_after(&odd, wall()), Some(Duration::from_secs(4233)));
    }
}
