//! Times and sizes: from their written form and back. Pure text; called by the walker, flags and `check`.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::error::{Wrong, quoted};
use super::model::Share;

/// What a time looks like, for messages.
const TIME_FORM: &str = "a time such as `250ms`, `2s`, `1m` or `1h`";
/// What a size looks like, for messages.
const SIZE_FORM: &str = "a size such as `512B`, `64KiB`, `10MiB` or `1GB`";
/// What a share looks like, for messages.
pub(super) const SHARE_FORM: &str = "a share in percent from `0.0001%` to `100%`";

/// Units of time in nanoseconds, smallest first.
const TIME_UNITS: &[(&str, u128)] =
    &[("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000)];
/// Units of size in bytes, largest first; a size is shown in the first that divides it.
const SIZE_UNITS: &[(&str, u128)] = &[
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

/// Reads `250ms`, `2s`, `1.5s`, `1m30s`, `1h`. A bare number is refused: nobody can tell its unit.
pub(super) fn duration(text: &str) -> Result<Duration, Wrong> {
    let wrong = || Wrong::new(format!("is {}, which is not a time", quoted(text)), TIME_FORM);
    let mut rest = text;
    let mut total: u128 = 0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let (number, after) = leading_number(rest);
        if number.is_empty() {
            return Err(wrong());
        }
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        if unit.is_empty() {
            let bare = Wrong::new(format!("is {}, a number without a unit", quoted(text)), TIME_FORM);
            return Err(bare.hint(
                format!("write `{text}s` for seconds or `{text}ms` for milliseconds"),
                format!("{text}s"),
            ));
        }
        let Some(&(_, nanos)) = TIME_UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(match meant_time_unit(unit) {
                Some((times, meant)) => scaled(number, times)
                    .map_or_else(wrong, |number| wrong().instead(format!("{number}{meant}"))),
                None => wrong(),
            });
        };
        total = scale(number, nanos).and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        rest = next;
    }
    let nanos = u64::try_from(total)
        .map_err(|_| Wrong::new(format!("is {}, which is too long", quoted(text)), TIME_FORM))?;
    Ok(Duration::from_nanos(nanos))
}

/// Reads a bare number of seconds, as the older keys have it, or a time with a unit.
pub(super) fn seconds(text: &str) -> Result<Duration, Wrong> {
    let (number, rest) = leading_number(text);
    if number.is_empty() || !rest.is_empty() {
        return duration(text);
    }
    scale(number, 1_000_000_000)
        .and_then(|nanos| u64::try_from(nanos).ok())
        .map(Duration::from_nanos)
        .ok_or_else(|| Wrong::new(format!("is {}, which is too long", quoted(text)), "a number of seconds"))
}

/// Reads `10MiB`, `64KiB`, `1GB`, and a bare number as bytes. Upper and lower case are the same.
pub(super) fn size(text: &str) -> Result<u64, Wrong> {
    let wrong = || Wrong::new(format!("is {}, which is not a size", quoted(text)), SIZE_FORM);
    let (number, unit) = leading_number(text);
    if number.is_empty() {
        return Err(wrong());
    }
    let word = unit.trim_start();
    let bytes = if unit.is_empty() {
        1
    } else if let Some(&(_, bytes)) = SIZE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
        bytes
    } else {
        let letter = unit.chars().next().map_or(' ', |c| c.to_ascii_uppercase());
        return Err(if unit.len() == 1 && matches!(letter, 'K' | 'M' | 'G' | 'T') {
            wrong().hint(
                format!(
                    "write `{number}{letter}iB` (powers of 1024) or `{number}{letter}B` (powers of 1000)"
                ),
                format!("{number}{letter}iB"),
            )
        } else if SIZE_UNITS.iter().any(|(name, _)| word != unit && name.eq_ignore_ascii_case(word)) {
            wrong().instead(format!("{number}{word}"))
        } else {
            wrong()
        });
    };
    scale(number, bytes).and_then(|bytes| u64::try_from(bytes).ok()).ok_or_else(wrong)
}

/// Reads `1%`, `0.5%`. A bare number is refused: 0.1 may mean a tenth or a thousandth.
pub(super) fn share(text: &str) -> Result<Share, Wrong> {
    let (number, unit) = leading_number(text);
    if number.is_empty() {
        return Err(Wrong::new(format!("is {}, which is not a share", quoted(text)), SHARE_FORM));
    }
    if unit.is_empty() {
        let bare = Wrong::new(format!("is {}, a number without `%`", quoted(text)), SHARE_FORM);
        return Err(bare.note("one in ten is `10%`, one in a thousand is `0.1%`"));
    }
    let millionths = scale(number, 10_000).filter(|_| unit == "%");
    let share = millionths.map(|count| u32::try_from(count).ok().and_then(Share::from_millionths));
    share
        .ok_or_else(|| Wrong::new(format!("is {}, which is not a share", quoted(text)), SHARE_FORM))?
        .ok_or_else(|| Wrong::new(format!("is {}, which is out of range", quoted(text)), SHARE_FORM))
}

/// Reads a whole number of percent in a range: `125%`. A bare number is refused: 1.25 could mean two things.
pub(super) fn percent(text: &str, range: &RangeInclusive<u32>) -> Result<u32, Wrong> {
    let expected = || format!("a percentage from `{}%` to `{}%`", range.start(), range.end());
    let wrong = |why: &str| Wrong::new(format!("is {}, {why}", quoted(text)), expected());
    let (number, unit) = leading_number(text);
    if !number.is_empty() && unit.is_empty() {
        let meant = match number.parse::<u32>() {
            Ok(whole) => Some(u128::from(whole)),
            Err(_) => scale(number, 100),
        };
        let bare = wrong("a number without `%`");
        let within = |percent: &u128| u32::try_from(*percent).is_ok_and(|percent| range.contains(&percent));
        return Err(match meant.filter(within) {
            Some(percent) => bare.instead(format!("{percent}%")),
            None => bare,
        });
    }
    if number.is_empty() || number.contains('.') || unit != "%" {
        let wrong = wrong("which is not a whole percentage");
        let meant = unit.trim() == "%" && number.parse::<u32>().is_ok_and(|number| range.contains(&number));
        return Err(if meant { wrong.instead(format!("{number}%")) } else { wrong });
    }
    let percent = number.parse::<u32>().ok().filter(|percent| range.contains(percent));
    percent.ok_or_else(|| wrong("which is out of range"))
}

/// The same where 20 can mean nothing but 20 %: `20%`, `20`. A fraction is refused still.
pub(super) fn percent_or_number(text: &str, range: &RangeInclusive<u32>) -> Result<u32, Wrong> {
    match leading_number(text) {
        (number, "") if !number.is_empty() && !number.contains('.') => {
            let percent = number.parse::<u32>().ok().filter(|percent| range.contains(percent));
            percent.ok_or_else(|| {
                let expected = format!("a percentage from `{}%` to `{}%`", range.start(), range.end());
                Wrong::new(format!("is {}, which is out of range", quoted(text)), expected)
            })
        }
        _ => percent(text, range),
    }
}

/// A time as it would be written: the longest unit that divides it.
pub(super) fn show_duration(time: Duration) -> String {
    let nanos = time.as_nanos();
    let whole = TIME_UNITS.iter().rev().find(|(_, unit)| nanos != 0 && nanos.is_multiple_of(*unit));
    match whole {
        Some((name, unit)) => format!("{}{name}", nanos / unit),
        None if nanos == 0 => "0s".into(),
        None => format!("{}s", time.as_secs_f64()),
    }
}

/// A size as it would be written: the largest unit that divides it.
pub(super) fn show_size(bytes: u64) -> String {
    let bytes = u128::from(bytes);
    let whole = SIZE_UNITS.iter().find(|(_, unit)| bytes != 0 && bytes.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{bytes}B"), |(name, unit)| format!("{}{name}", bytes / unit))
}

/// The expression for every text that [`duration`] reads, made of one for a number.
pub(super) fn time_pattern(number: &str) -> String {
    let units: Vec<&str> = TIME_UNITS.iter().map(|(name, _)| *name).collect();
    format!("(?:{number}(?:{}))+", units.join("|"))
}

/// The expression for every text that [`size`] reads, made of one for a number.
pub(super) fn size_pattern(number: &str) -> String {
    let units: Vec<String> = SIZE_UNITS.iter().map(|(name, _)| any_case(name)).collect();
    format!("{number}(?:{})?", units.join("|"))
}

/// The expression for `word` in upper, lower or mixed case.
pub(super) fn any_case(word: &str) -> String {
    let letter = |c: char| {
        if c.is_ascii_alphabetic() {
            format!("[{}{}]", c.to_ascii_uppercase(), c.to_ascii_lowercase())
        } else {
            c.to_string()
        }
    };
    word.chars().map(letter).collect()
}

/// Splits digits with at most one point from what follows.
fn leading_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let sound = number.starts_with(|c: char| c.is_ascii_digit())
        && number.ends_with(|c: char| c.is_ascii_digit())
        && number.matches('.').count() <= 1;
    if sound { (number, rest) } else { ("", text) }
}

/// `number` × `unit` in whole units of 1, exactly; `None` when it does not fit. Digits after the ninth decimal are dropped.
fn scale(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut total = whole.parse::<u128>().ok()?.checked_mul(unit)?;
    let mut place = 1_u128;
    for digit in fraction.bytes().take(9) {
        place *= 10;
        total = total.checked_add(unit * u128::from(digit - b'0') / place)?;
    }
    Some(total)
}

/// Spelled-out units.
fn meant_time_unit(unit: &str) -> Option<(u32, &'static str)> {
    match unit.trim().to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" | "second" | "seconds" => Some((1, "s")),
        "m" | "min" | "mins" | "minute" | "minutes" => Some((1, "m")),
        "h" | "hr" | "hour" | "hours" => Some((1, "h")),
        "d" | "day" | "days" => Some((24, "h")),
        "w" | "week" | "weeks" => Some((24 * 7, "h")),
        "ms" | "msec" | "millis" | "milliseconds" => Some((1, "ms")),
        _ => None,
    }
}

/// A number as it is written for a unit that is so many times smaller.
fn scaled(number: &str, times: u32) -> Option<String> {
    match times {
        1 => Some(number.to_owned()),
        _ => Some(number.parse::<u32>().ok()?.checked_mul(times)?.to_string()),
    }
}

/// What somebody probably meant who wrote `text`, in words and as a time in `range`.
pub(super) fn time_meant(text: &str, range: &RangeInclusive<Duration>) -> Option<(String, String)> {
    let within = |time: &String| duration(time).is_ok_and(|time| range.contains(&time));
    let one = |time: String| (format!("write `{time}`"), time);
    let text = text.trim_end_matches([',', ';']);
    if is_endless(text) {
        let most = show_duration(*range.end());
        return Some((format!("write `{most}`, the longest"), most));
    }
    let (number, unit) = leading_number(text);
    if number.is_empty() {
        return None;
    }
    if unit.is_empty() {
        let (seconds, millis) = (format!("{number}s"), format!("{number}ms"));
        return match (within(&seconds), within(&millis)) {
            (true, true) => {
                Some((format!("write `{seconds}` for seconds or `{millis}` for milliseconds"), seconds))
            }
            (true, false) => Some(one(seconds)),
            (false, true) => Some(one(millis)),
            (false, false) => None,
        };
    }
    if within(&text.to_owned()) {
        return Some(one(text.to_owned()));
    }
    let (times, unit) = meant_time_unit(unit)?;
    let time = format!("{}{unit}", scaled(number, times)?);
    if within(&time) {
        return Some(one(time));
    }
    let too_long = duration(&time).is_ok_and(|time| time > *range.end());
    let most = show_duration(*range.end());
    too_long.then(|| (format!("write `{most}`, the longest"), most))
}

/// Words for a time or a number that has no end.
pub(super) fn is_endless(text: &str) -> bool {
    let word = text.trim_start_matches(['.', '-']).to_lowercase();
    ["infinite", "infinity", "inf", "never", "none", "unlimited", "forever", "disabled", "disable", "1"]
        .contains(&word.as_str())
        && (word != "1" || text == "-1")
}

/// Those of them that can't mean that nothing is done.
pub(super) fn has_no_end(text: &str) -> bool {
    let word = text.trim_start_matches(['.', '-']).to_lowercase();
    text == "-1" || ["infinite", "infinity", "inf", "unlimited", "forever"].contains(&word.as_str())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        let table = [
            ("250ms", 250),
            ("2s", 2_000),
            ("1.5s", 1_500),
            ("0.1s", 100),
            ("1m", 60_000),
            ("1m30s", 90_000),
            ("1h", 3_600_000),
            ("1h1m1s1ms", 3_661_001),
            ("0s", 0),
        ];
        for (text, millis) in table {
            assert_eq!(duration(text).unwrap(), Duration::from_millis(millis), "{text}");
        }
    }

    #[test]
    fn odd_times_are_refused_with_advice() {
        for text in
            ["", "s", "-1s", ".5s", "5.s", "1..2s", "2 s", "1d", "1s2", "x", "9999999999999999h", "1e3s"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(
            duration("2").unwrap_err().hint.unwrap(),
            "write `2s` for seconds or `2ms` for milliseconds"
        );
        assert_eq!(duration("5min").unwrap_err().hint.unwrap(), "write `5m`");
        assert_eq!(duration("2 s").unwrap_err().hint.unwrap(), "write `2s`");
    }

    #[test]
    fn a_bare_number_is_seconds_where_the_older_keys_allow_it() {
        assert_eq!(seconds("2").unwrap(), Duration::from_secs(2));
        assert_eq!(seconds("0.5").unwrap(), Duration::from_millis(500));
        assert_eq!(seconds("250ms").unwrap(), Duration::from_millis(250));
        assert!(seconds("two").is_err());
        assert!(seconds("99999999999999999999").is_err());
    }

    #[test]
    fn sizes_are_exact() {
        let table: [(&str, u64); 9] = [
            ("10MiB", 10 << 20),
            ("64KiB", 64 << 10),
            ("1GB", 1_000_000_000),
            ("1gib", 1 << 30),
            ("512B", 512),
            ("512", 512),
            ("1.5KiB", 1_536),
            ("0", 0),
            ("2TiB", 2 << 40),
        ];
        for (text, bytes) in table {
            assert_eq!(size(text).unwrap(), bytes, "{text}");
        }
        for text in ["", "KiB", "-1", "1XB", "10 MiB", "99999999999TiB"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert!(size("10M").unwrap_err().hint.unwrap().contains("`10MiB`"));
    }

    #[test]
    fn shares_are_exact() {
        let table =
            [("1%", 10_000), ("0.5%", 5_000), ("100%", 1_000_000), ("0.0001%", 1), ("33.3333%", 333_333)];
        for (text, millionths) in table {
            assert_eq!(share(text).unwrap().millionths(), millionths, "{text}");
            assert_eq!(share(text).unwrap().to_string(), text);
        }
        for text in
            ["", "%", "-1%", "0%", "0.00001%", "100.0001%", "1 %", "1%%", "1/100", "9999999999999999%"]
        {
            assert!(share(text).is_err(), "{text}");
        }
        assert!(share("0.1").unwrap_err().note.unwrap().contains("`10%`"));
    }

    #[test]
    fn percentages_are_whole_and_in_range() {
        let read = |text| percent(text, &(101..=1_000));
        assert_eq!([read("101%").unwrap(), read("125%").unwrap(), read("1000%").unwrap()], [101, 125, 1_000]);
        for text in ["", "%", "100%", "1001%", "125.5%", "125 %", "-125%", "9999999999%", "125%%", "x"] {
            assert!(read(text).is_err(), "{text}");
        }
        for text in ["125", "1.25"] {
            assert_eq!(read(text).unwrap_err().hint.unwrap(), "write `125%`", "{text}");
        }
        assert_eq!(read("1").unwrap_err().hint, None);
    }

    #[test]
    fn a_whole_number_can_be_a_percentage_and_a_fraction_cannot() {
        let read = |text| percent_or_number(text, &(1..=100));
        assert_eq!([read("20%").unwrap(), read("20").unwrap(), read("100").unwrap()], [20, 20, 100]);
        for text in ["", "%", "0", "101", "0%", "-1", "1.5", "20 %", "9999999999", "x"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert_eq!(read("0.2").unwrap_err().hint.unwrap(), "write `20%`");
    }

    #[test]
    fn what_is_shown_reads_back() {
        for millis in [0, 1, 999, 1_000, 1_500, 60_000, 90_000, 3_600_000] {
            let time = Duration::from_millis(millis);
            assert_eq!(duration(&show_duration(time)).unwrap(), time);
        }
        for bytes in [0, 1, 240, 1_000, 1_024, 32 << 10, 10 << 20, 5_000_000] {
            assert_eq!(size(&show_size(bytes)).unwrap(), bytes);
        }
        assert_eq!(show_duration(Duration::from_secs(90)), "90s");
        assert_eq!(show_size(32 << 10), "32KiB");
    }
}
