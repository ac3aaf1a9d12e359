//! Slow start: a backend that came back gets its share little by little, so that cold caches and pools can fill.
//!
//! The share grows linearly with time, from a tenth: what gets no traffic never warms up. It is taken by refusal: a
//! draw of a cold backend counts with that probability, otherwise another one is drawn. So it works alike under
//! every algorithm and needs neither timers nor new tables.

use std::time::Duration;

use crate::targets::Ask;
use crate::targets::picking::hash::again;
use crate::tick::Tick;

/// The least share of its share that a backend gets.
const FLOOR: f64 = 0.1;

/// The backends of a tier that are not at their full share yet.
#[derive(Debug)]
pub(in crate::targets) struct Warmup {
    span: Duration,
    /// From then on all are at their full share.
    until: Tick,
    /// By place: since when it is back; `None`: it was never away.
    since: Vec<Option<Tick>>,
}

impl Warmup {
    /// For backends that came back at these moments, each of which takes `span`. `None` when nobody is to be spared: all
    /// were there all the time, or all came back together, or `span` is zero.
    #[must_use]
    pub(in crate::targets) fn new(span: Duration, since: Vec<Option<Tick>>) -> Option<Warmup> {
        let newest = since.iter().flatten().max().copied()?;
        let spared = |since: &Option<Tick>| since.is_some_and(|since| newest.since(since) < span);
        if span.is_zero() || since.iter().all(spared) {
            return None;
        }
        Some(Warmup { span, until: newest.after(span), since })
    }

    /// What part of its share the backend at `place` gets at `now`: 0.1 to 1.
    #[must_use]
    pub(in crate::targets) fn share(&self, place: usize, now: Tick) -> f64 {
        match self.since.get(place) {
            Some(Some(since)) if now < self.until => {
                (now.since(*since).as_secs_f64() / self.span.as_secs_f64()).clamp(FLOOR, 1.0)
            }
            Some(_) | None => 1.0,
        }
    }

    /// Whether this draw of the backend at `place` counts. A request with a key always gets the same answer at the same
    /// share, and with a greater share no other than yes: keys come home one by one and stay.
    #[must_use]
    pub(in crate::targets) fn admits(&self, place: usize, ask: &Ask<'_>) -> bool {
        if ask.now >= self.until {
            return true;
        }
        let share = self.share(place, ask.now);
        match ask.key {
            _ if share >= 1.0 => true,
            None => ask.chance.happens(share),
            Some(key) => {
                // Other bits than those that chose the place.
                let bits = again(key, u32::MAX);
                #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
                let draw = (bits >> 11) as f64 / (1_u64 << 53) as f64;
                draw < share
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::{Chance, Tried};

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_share_grows_in_a_line_from_a_tenth() {
        let warmup = Warmup::new(Duration::from_secs(10), vec![None, Some(Tick(100 * SECOND))]).expect("one");
        for (second, share) in
            [(100, 0.1), (101, 0.1), (102, 0.2), (105, 0.5), (109, 0.9), (110, 1.0), (200, 1.0)]
        {
            assert!((warmup.share(1, Tick(second * SECOND)) - share).abs() < 1e-9, "after {second}");
            assert!((warmup.share(0, Tick(second * SECOND)) - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn who_comes_back_together_is_not_spared() {
        let span = Duration::from_secs(10);
        let back = |seconds: &[Option<u64>]| {
            let ticks = seconds.iter().map(|second| second.map(|second| Tick(second * SECOND))).collect();
            Warmup::new(span, ticks).is_some()
        };
        assert!(!back(&[]) && !back(&[None, None]));
        assert!(!back(&[Some(1), Some(2)]), "nobody else could take the load");
        assert!(back(&[Some(1), None]) && back(&[Some(1), Some(50)]));
        assert!(Warmup::new(Duration::ZERO, vec![None, Some(Tick(1))]).is_none());
    }

    #[test]
    fn a_key_that_came_home_stays() {
        let warmup = Warmup::new(Duration::from_secs(10), vec![Some(Tick(0)), None]).expect("one");
        let (tried, chance) = (Tried::new(), Chance::seeded(1));
        let mut home = 0;
        for key in (0..1_000_u64).map(|key| key.wrapping_mul(0x2545_f491_4f6c_dd1d)) {
            let admitted: Vec<bool> = (0..=10)
                .map(|second| {
                    let ask = Ask { key: Some(key), ..Ask::new(&tried, &chance, Tick(second * SECOND)) };
                    warmup.admits(0, &ask)
                })
                .collect();
            assert!(admitted.is_sorted() && admitted[10], "{admitted:?}");
            home += usize::from(admitted[5]);
        }
        assert!((450..=550).contains(&home), "{home} of 1,000 at half its share");
    }
}
