//! Dates of HTTP (RFC 9110 §5.6.7), as seconds since 1970.
//!
//! All three forms are read. Names of days, months and the zone are read in any case, as RFC 9111 §4.2 asks of caches, and any zone but
//! GMT makes the date invalid. Whether the day of the week fits the date is not asked: the date is what counts.

/// Seconds since 1970, and before it below zero.
pub type HttpSeconds = i64;

/// The date that `text` is. `now` tells the century of a year with two digits: no date of that form is more than 50 years in the future.
#[must_use]
pub fn http_date(text: &[u8], now: HttpSeconds) -> Option<HttpSeconds> {
    let comma = text.iter().position(|byte| *byte == b',');
    match comma {
        Some(3) => {
            // Sun, 06 Nov 1994 08:49:37 GMT
            let rest = text.get(4..).filter(|rest| rest.len() == 25)?;
            day_name(&text[..3], false)?;
            shape(rest, b" 00 aaa 0000 00:00:00 aaa")?;
            gmt(&rest[22..])?;
            seconds(number(&rest[8..12]), month(&rest[4..7])?, number(&rest[1..3]), &rest[13..21])
        }
        Some(at) => {
            // Sunday, 06-Nov-94 08:49:37 GMT
            let rest = text.get(at + 1..).filter(|rest| rest.len() == 23)?;
            day_name(&text[..at], true)?;
            shape(rest, b" 00-aaa-00 00:00:00 aaa")?;
            gmt(&rest[20..])?;
            let (year, month) = (number(&rest[8..10]), month(&rest[4..7])?);
            let in_year = |year| seconds(year, month, number(&rest[1..3]), &rest[11..19]);
            let century = civil_year(now).div_euclid(100) * 100;
            // 50 years ahead at most, so the century before or behind ours may be meant.
            let far = now + 50 * 31_556_952;
            [century + 100, century, century - 100]
                .into_iter()
                .filter_map(|century| in_year(century + year))
                .find(|date| *date <= far)
        }
        None => {
            // Sun Nov  6 08:49:37 1994
            let rest = text.get(3..).filter(|rest| rest.len() == 21)?;
            day_name(&text[..3], false)?;
            let day = match rest.get(5..7)? {
                [b' ', digit] if digit.is_ascii_digit() => i64::from(digit - b'0'),
                two if two.iter().all(u8::is_ascii_digit) => number(two),
                _ => return None,
            };
            shape(&rest[..5], b" aaa ")?;
            shape(&rest[7..], b" 00:00:00 0000")?;
            seconds(number(&rest[17..21]), month(&rest[1..4])?, day, &rest[8..16])
        }
    }
}

/// Whether a text has digits, letters and signs where the pattern has them.
fn shape(text: &[u8], pattern: &[u8]) -> Option<()> {
    let fits = |(byte, sign): (&u8, &u8)| match sign {
        b'0' => byte.is_ascii_digit(),
        b'a' => byte.is_ascii_alphabetic(),
        _ => byte == sign,
    };
    (text.len() == pattern.len() && text.iter().zip(pattern).all(fits)).then_some(())
}

/// A number of digits that were looked at already.
fn number(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit.wrapping_sub(b'0')))
}

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";

fn day_name(text: &[u8], whole: bool) -> Option<()> {
    let name = |day: &'static str| if whole { day.as_bytes() } else { &day.as_bytes()[..3] };
    DAYS.iter().any(|day| text.eq_ignore_ascii_case(name(day))).then_some(())
}

/// 1 to 12.
fn month(text: &[u8]) -> Option<i64> {
    MONTHS.chunks(3).zip(1..).find(|(name, _)| text.eq_ignore_ascii_case(name)).map(|(_, month)| month)
}

fn gmt(text: &[u8]) -> Option<()> {
    text.eq_ignore_ascii_case(b"GMT").then_some(())
}

/// `clock` is `00:00:00` in digits.
fn seconds(year: i64, month: i64, day: i64, clock: &[u8]) -> Option<HttpSeconds> {
    let (hour, minute, second) = (number(&clock[..2]), number(&clock[3..5]), number(&clock[6..]));
    let leaps = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 => 28 + i64::from(leaps),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    // A leap second is the first of the next minute (RFC 9110 §5.6.7 allows it in the grammar).
    if !(1..=longest).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days since 1970 of a date of the Gregorian calendar: years that begin in March have their leap day last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

/// The year of a date, out of the calendar above.
fn civil_year(date: HttpSeconds) -> i64 {
    let day = date.div_euclid(86_400);
    // Never more than one off, because a year has 365.2425 days.
    let mut year = 1970 + (day * 400).div_euclid(146_097);
    while days(year, 1, 1) > day {
        year -= 1;
    }
    while days(year + 1, 1, 1) <= day {
        year += 1;
    }
    year
}

/// What `date` is in the form that is written (RFC 9110 §5.6.7: IMF-fixdate).
#[must_use]
pub(super) fn written(date: HttpSeconds) -> String {
    let (day, second) = (date.div_euclid(86_400), date.rem_euclid(86_400));
    let year = civil_year(date);
    let mut month = 1;
    while month < 12 && days(year, month + 1, 1) <= day {
        month += 1;
    }
    // 1970 began on a Thursday.
    let name = &DAYS[(day + 3).rem_euclid(7) as usize][..3];
    let at = (month as usize - 1) * 3;
    let month_name = MONTHS[at..at + 3].escape_ascii();
    let of_month = day - days(year, month, 1) + 1;
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{name}, {of_month:02} {month_name} {year:04} {hour:02}:{minute:02}:{:02} GMT", second % 60)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const THEN: HttpSeconds = 784_111_777;
    const NOW: HttpSeconds = 1_700_000_000;

    fn read(text: &str) -> Option<HttpSeconds> {
        http_date(text.as_bytes(), NOW)
    }

    #[test]
    fn rfc9110_5_6_7_all_three_forms_are_one_date() {
        for text in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(read(text), Some(THEN), "{text}");
        }
        assert_eq!(written(THEN), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(written(1_709_164_799), "Wed, 28 Feb 2024 23:59:59 GMT");
        assert_eq!(read("Wed Nov 16 08:49:37 1994"), Some(THEN + 10 * 86_400));
        assert_eq!(read("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(read("Wed, 31 Dec 1969 23:59:59 GMT"), Some(-1));
        assert_eq!(read("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
        assert_eq!(read("Sat, 31 Dec 2016 23:59:60 GMT"), Some(1_483_228_800), "a leap second");
    }

    #[test]
    fn rfc9110_5_6_7_two_digits_are_never_more_than_50_years_ahead() {
        // Now is November 2023.
        assert_eq!(read("Saturday, 01-Jan-72 00:00:00 GMT"), read("Fri, 01 Jan 2072 00:00:00 GMT"));
        assert_eq!(read("Saturday, 01-Jan-74 00:00:00 GMT"), read("Tue, 01 Jan 1974 00:00:00 GMT"));
        assert_eq!(read("Sunday, 06-Nov-23 08:49:37 GMT"), read("Mon, 06 Nov 2023 08:49:37 GMT"));
    }

    #[test]
    fn rfc9111_4_2_names_are_read_in_any_case() {
        for text in
            ["SUN, 06 Nov 1994 08:49:37 GMT", "Sun, 06 nOV 1994 08:49:37 gMT", "sUN nov  6 08:49:37 1994"]
        {
            assert_eq!(read(text), Some(THEN), "{text}");
        }
    }

    #[test]
    fn rfc9111_5_3_what_is_no_date_is_none() {
        for text in [
            "0",
            "-1",
            "",
            "now",
            "Thu, 18 Aug 2050 02:01:18 UTC",
            "Thu, 18 Aug 50 02:01:18 GMT",
            "Thu 18 Aug 2050 02:01:18 GMT",
            "Thu, 18  Aug  2050 02:01:18 GMT",
            "Thu, 18-Aug-2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02.01.18 GMT",
            "Thu, 18 Aug 2050 2:01:18 GMT",
            "Thu, 18 Aug 2050 24:01:18 GMT",
            "Thu, 31 Apr 2050 02:01:18 GMT",
            "Thu, 00 Apr 2050 02:01:18 GMT",
            "Xxx, 18 Aug 2050 02:01:18 GMT",
            "Thu, 18 Xxx 2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02:01:18 GMT ",
            "Sun Nov  6 08:49:37 94",
            "Sun Nov x6 08:49:37 1994",
            "1784111777",
            "Thursday, 18 Aug 2050 02:01:18 GMT",
            "Thu, 29 Feb 2023 00:00:00 GMT",
            "\u{fc}\u{fc}, 18 Aug 2050 02:01:18 GMT",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_second_reads_back(date in 0i64..253_402_300_800) {
            prop_assert_eq!(read(&written(date)), Some(date));
        }

        #[test]
        fn no_bytes_panic(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(http_date(&text, NOW).is_none_or(|date| date < 253_402_387_200));
        }
    }
}
