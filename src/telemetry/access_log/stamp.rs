//! Wall-clock time of a Tick as text: RFC 3339, or as in the Common Log Format.
//!
//! The calendar is worked out once per second and worker, the text once per millisecond; the rest is copying bytes.

use super::digits;
use crate::tick::Tick;

/// The wall clock at [`Tick::ZERO`]: nanoseconds since 1970-01-01 UTC. Good until the year 2554. Another one from time to time, when
/// somebody has set the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallStart(pub u64);

/// What stands before the time in [`Stamps::opening`], and behind it.
const OPENS: &[u8] = br#"{"time":""#;
const GOES_ON: &[u8] = br#"","kind":""#;
/// How long that is with the time.
pub(super) const OPENING: usize = OPENS.len() + 24 + GOES_ON.len();

/// The last times written, as text.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    opening: Cached<48>,
    millis: Cached<24>,
    rfc: Cached<19>,
    common: Cached<26>,
}

impl Stamps {
    /// `at` as `2026-11-20T11:38:40.123Z` (RFC 3339).
    #[inline]
    pub(super) fn rfc(&mut self, start: WallStart, at: Tick) -> &[u8; 24] {
        let Stamps { millis, rfc, .. } = self;
        millis.text(milli(start, at), |milli| with_millis(rfc, milli))
    }

    /// An object of JSON that begins with the time `at`, up to the value of its second member, the kind. It is
    /// filled up to a length that takes few steps to copy: [`OPENING`] bytes count.
    #[inline(always)]
    pub(super) fn opening(&mut self, start: WallStart, at: Tick) -> &[u8; 48] {
        let Stamps { opening, rfc, .. } = self;
        opening.text(milli(start, at), |milli| {
            let mut text = [b' '; 48];
            text[..OPENS.len()].copy_from_slice(OPENS);
            text[OPENS.len()..][..24].copy_from_slice(&with_millis(rfc, milli));
            text[OPENS.len() + 24..OPENING].copy_from_slice(GOES_ON);
            text
        })
    }

    /// `at` as `20/Nov/2026:11:38:40 +0000`, the time of the Common Log Format.
    pub(super) fn common(&mut self, start: WallStart, at: Tick) -> &[u8; 26] {
        self.common.text(start.0.saturating_add(at.0) / 1_000_000_000, render_common)
    }
}

/// The millisecond since 1970 in which `at` lies.
fn milli(start: WallStart, at: Tick) -> u64 {
    start.0.saturating_add(at.0) / 1_000_000
}

/// The text of a millisecond since 1970.
fn with_millis(rfc: &mut Cached<19>, milli: u64) -> [u8; 24] {
    let mut text = *b"0000-00-00T00:00:00.000Z";
    text[..19].copy_from_slice(rfc.text(milli / 1000, render_rfc));
    text[20..23].copy_from_slice(&digits::triple(milli % 1000));
    text
}

/// The text of one point in time.
#[derive(Debug)]
struct Cached<const N: usize> {
    at: Option<u64>,
    text: [u8; N],
}

impl<const N: usize> Default for Cached<N> {
    fn default() -> Self {
        Cached { at: None, text: [0; N] }
    }
}

impl<const N: usize> Cached<N> {
    /// The text of `at`, whatever its unit is.
    #[inline(always)]
    fn text(&mut self, at: u64, render: impl FnOnce(u64) -> [u8; N]) -> &[u8; N] {
        if self.at != Some(at) {
            self.renew(at, render);
        }
        &self.text
    }

    #[cold]
    fn renew(&mut self, at: u64, render: impl FnOnce(u64) -> [u8; N]) {
        (self.at, self.text) = (Some(at), render(at));
    }
}

/// `second` after 1970 in UTC (proleptic Gregorian calendar, no leap seconds), without a fraction.
fn render_rfc(second: u64) -> [u8; 19] {
    let (year, month, day) = civil(second / 86_400);
    let mut text = *b"0000-00-00T00:00:00";
    put(&mut text, &[(0, 4, year), (5, 2, month), (8, 2, day)]);
    put_time(&mut text, 11, second);
    text
}

/// The same with the day first and the month as a word.
fn render_common(second: u64) -> [u8; 26] {
    const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let (year, month, day) = civil(second / 86_400);
    let mut text = *b"00/Jan/0000:00:00:00 +0000";
    put(&mut text, &[(0, 2, day), (7, 4, year)]);
    // A month is 1 to 12.
    let name = (month as usize - 1) * 3;
    text[3..6].copy_from_slice(&MONTHS[name..name + 3]);
    put_time(&mut text, 12, second);
    text
}

/// Hours, minutes and seconds as `00:00:00` from `place` on.
fn put_time(text: &mut [u8], place: usize, second: u64) {
    let rest = second % 86_400;
    put(text, &[(place, 2, rest / 3600), (place + 3, 2, rest / 60 % 60), (place + 6, 2, rest % 60)]);
}

/// Numbers at their places: (place, width, value).
fn put(text: &mut [u8], numbers: &[(usize, usize, u64)]) {
    for &(place, width, mut value) in numbers {
        for digit in text[place..place + width].iter_mut().rev() {
            *digit = digits::ascii(value % 10);
            value /= 10;
        }
    }
}

/// Year, month and day of a day counted from 1970-01-01.
///
/// Years are taken to begin in March, so that the leap day is the last one; 400 years have 146,097 days.
fn civil(day: u64) -> (u64, u64, u64) {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, of_year - (153 * march_month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(stamp: &mut Stamps, second: u64, nanos: u64) -> String {
        let (start, at) = (WallStart(second * 1_000_000_000), Tick(nanos));
        let text = String::from_utf8_lossy(stamp.rfc(start, at)).into_owned();
        let opening = String::from_utf8_lossy(&stamp.opening(start, at)[..OPENING]).into_owned();
        assert_eq!(opening, format!("{{\"time\":\"{text}\",\"kind\":\""));
        text
    }

    #[test]
    fn known_seconds() {
        let mut stamp = Stamps::default();
        assert_eq!(text(&mut stamp, 0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(&mut stamp, 951_782_400, 0), "2000-02-29T00:00:00.000Z");
        assert_eq!(text(&mut stamp, 1_709_251_199, 999_999_999), "2024-02-29T23:59:59.999Z");
        assert_eq!(text(&mut stamp, 1_709_251_199, 1_000_000_000), "2024-03-01T00:00:00.000Z");
        assert_eq!(text(&mut stamp, 4_102_444_799, 7_000_000), "2099-12-31T23:59:59.007Z");
        assert_eq!(text(&mut stamp, 4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn a_clock_that_was_set_shows_in_the_next_stamp() {
        let mut stamp = Stamps::default();
        let at = Tick(5_000_000_000);
        let mut both = |start: u64| {
            let rfc = String::from_utf8_lossy(stamp.rfc(WallStart(start), at)).into_owned();
            (rfc, String::from_utf8_lossy(stamp.common(WallStart(start), at)).into_owned())
        };
        let (before, after) = (both(3_600_000_000_000), both(0));
        assert_eq!(
            (before.0.as_str(), after.0.as_str()),
            ("1970-01-01T01:00:05.000Z", "1970-01-01T00:00:05.000Z")
        );
        assert_eq!((&before.1[12..20], &after.1[12..20]), ("01:00:05", "00:00:05"));
    }

    #[test]
    fn the_common_form_of_known_seconds() {
        let mut stamp = Stamps::default();
        let mut text = |second: u64| {
            let text = stamp.common(WallStart(second * 1_000_000_000), Tick(999_999_999));
            String::from_utf8_lossy(text).into_owned()
        };
        assert_eq!(text(971_186_136), "10/Oct/2000:13:55:36 +0000");
        assert_eq!(text(0), "01/Jan/1970:00:00:00 +0000");
        assert_eq!(text(1_735_689_599), "31/Dec/2024:23:59:59 +0000");
        assert_eq!(text(1_709_164_800), "29/Feb/2024:00:00:00 +0000");
    }

    #[test]
    fn every_day_for_six_hundred_years_follows_its_predecessor() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for number in 0..365 * 600 {
            assert_eq!(civil(number), (year, month, day));
            let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
            let length = match month {
                2 => 28 + u64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }
}
