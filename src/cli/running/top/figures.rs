//! Figures as they are shown: few digits, and never wider than their column.

/// A rate in at most five characters.
pub(super) fn rate(rate: f64) -> String {
    match rate {
        _ if rate <= 0.0 => "0".to_owned(),
        _ if rate < 9.95 => format!("{rate:.1}"),
        _ if rate < 9_999.5 => format!("{rate:.0}"),
        _ if rate < 999_500.0 => format!("{:.0}k", rate / 1e3),
        _ if rate < 999_500_000.0 => format!("{:.0}M", rate / 1e6),
        _ => "much".to_owned(),
    }
}

/// A count in at most five characters.
pub(super) fn count(count: u64) -> String {
    match count {
        0..100_000 => count.to_string(),
        100_000..10_000_000 => format!("{}k", count / 1_000),
        10_000_000..10_000_000_000 => format!("{}M", count / 1_000_000),
        _ => "much".to_owned(),
    }
}

/// A part of a whole in at most five characters.
pub(super) fn percent(share: f64) -> String {
    let share = share * 100.0;
    match share {
        _ if share <= 0.0 => "0%".to_owned(),
        _ if share < 0.1 => "<0.1%".to_owned(),
        _ if share < 9.95 => format!("{share:.1}%"),
        _ => format!("{share:.0}%"),
    }
}

/// The latest of these rates as one character each, `width` of them; the newest is at the right.
pub(super) fn sparkline(rates: impl ExactSizeIterator<Item = f64>, width: usize, steps: &[char]) -> String {
    let skipped = rates.len().saturating_sub(width);
    let shown: Vec<f64> = rates.skip(skipped).collect();
    let most = shown.iter().copied().fold(0.0, f64::max);
    let blank = width - shown.len();
    let sign = |rate: &f64| match steps {
        [.., last] if *rate > 0.0 => {
            let place = (1..=steps.len()).find(|step| {
                rate / most
                    <= super::track::to_float(*step as u64) / super::track::to_float(steps.len() as u64)
            });
            place.map_or(*last, |step| steps[step - 1])
        }
        _ => ' ',
    };
    std::iter::repeat_n(' ', blank).chain(shown.iter().map(sign)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_whatever_they_say() {
        assert_eq!(
            [0.0, 0.04, 9.94, 9.96, 1234.5, 12_345.0, 2e6].map(rate),
            ["0", "0.0", "9.9", "10", "1234", "12k", "2M"]
        );
        assert_eq!([0, 99_999, 123_456, 12_345_678].map(count), ["0", "99999", "123k", "12M"]);
        assert_eq!([0.0, 0.0001, 0.012, 0.5, 1.0].map(percent), ["0%", "<0.1%", "1.2%", "50%", "100%"]);
        for power in 0..30 {
            let many = 9.9999 * 10_f64.powi(power);
            assert!(rate(many).len() <= 5, "{many}: {}", rate(many));
        }
        for power in 0..64 {
            assert!(count((1 << power) - 1).len() <= 5, "{power}");
        }
    }

    #[test]
    fn a_sparkline_ends_with_what_is_newest() {
        let steps = ['1', '2', '3', '4'];
        let line = |rates: &[f64], width| sparkline(rates.iter().copied(), width, &steps);
        assert_eq!(line(&[1.0, 2.0, 0.0, 4.0], 6), "  12 4");
        assert_eq!(line(&[9.0, 1.0, 1.0], 2), "44");
        assert_eq!(line(&[], 2), "  ");
        assert_eq!(line(&[0.0], 1), " ");
        assert_eq!(sparkline([1.0].into_iter(), 1, &[]), " ");
    }
}
