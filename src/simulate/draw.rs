//! Numbers drawn at random: each is the inverse of a distribution function at a number from 0 to 1.

use super::workload::{Arrivals, Burst, Class, Clients, Spread};
use crate::targets::Chance;

/// Nanoseconds in a second.
pub(super) const SECOND: f64 = 1e9;

/// A number above 0, up to 1.
fn unit(chance: &Chance) -> f64 {
    const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
    ((chance.bits() >> 11) + 1) as f64 * STEP
}

/// A number above 0 with the mean 1, as the time between two events that know nothing of each other.
pub(super) fn exponential(chance: &Chance) -> f64 {
    -unit(chance).ln()
}

/// A Weibull distribution, ready to be drawn from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weibull {
    scale: f64,
    /// 1 ÷ shape.
    power: f64,
}

impl Weibull {
    pub(super) fn new(spread: Spread) -> Weibull {
        let power = 1.0 / spread.shape;
        Weibull { scale: spread.mean / gamma(1.0 + power), power }
    }

    pub(super) fn draw(self, chance: &Chance) -> f64 {
        let exponential = exponential(chance);
        let value = if self.power == 1.0 { exponential } else { exponential.powf(self.power) };
        self.scale * value
    }
}

/// Euler's gamma function at a number of at least 1 (Lanczos, g = 7, to 15 digits).
fn gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const FIRST: f64 = 0.999_999_999_999_809_9;
    const OTHERS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let sum = OTHERS.iter().zip(1..).fold(FIRST, |sum, (part, n)| sum + part / (x + f64::from(n)));
    let t = x + G + 0.5;
    (2.0 * core::f64::consts::PI).sqrt() * t.powf(x + 0.5) * (-t).exp() * sum
}

/// Which class the next request is of, and how long it takes.
#[derive(Debug)]
pub(super) struct Service {
    /// Each class with the share of it and those before it.
    classes: Vec<(f64, Weibull)>,
}

impl Service {
    pub(super) fn new(classes: &[Class]) -> Service {
        let whole: f64 = classes.iter().map(|class| class.share).sum();
        let mut sum = 0.0;
        let classes = classes.iter().map(|class| {
            sum += class.share / whole;
            (sum, Weibull::new(class.service))
        });
        Service { classes: classes.collect() }
    }

    /// Nanoseconds.
    pub(super) fn draw(&self, chance: &Chance) -> u64 {
        let found = match &self.classes[..] {
            [(_, only)] => Some(only),
            several => {
                let point = unit(chance);
                // Shares may sum up to a little less than 1.
                several.iter().find(|(end, _)| point <= *end).or(several.last()).map(|(_, class)| class)
            }
        };
        // A cast saturates.
        found.map_or(0, |class| (class.draw(chance) * SECOND) as u64)
    }
}

/// Which client the next request is from.
#[derive(Debug)]
pub(super) struct Crowd {
    count: usize,
    /// For each client the share of it and those before it; empty when all are alike.
    shares: Vec<f64>,
}

impl Crowd {
    pub(super) fn new(clients: Clients) -> Crowd {
        let mut shares = Vec::new();
        if clients.skew != 0.0 {
            let mut sum = 0.0;
            shares.extend((1..=clients.count).map(|rank| {
                sum += f64::from(rank).powf(-clients.skew);
                sum
            }));
            shares.iter_mut().for_each(|share| *share /= sum);
        }
        Crowd { count: clients.count as usize, shares }
    }

    pub(super) fn draw(&self, chance: &Chance) -> u32 {
        let number = if self.shares.is_empty() {
            chance.below(self.count)
        } else {
            let point = unit(chance);
            self.shares.partition_point(|share| *share < point).min(self.shares.len() - 1)
        };
        u32::try_from(number).expect("below the count of clients, a u32")
    }
}

/// When the next request comes, in nanoseconds from the start of the run.
pub(super) fn arrival(now: u64, arrivals: &Arrivals, chance: &Chance) -> Option<u64> {
    let &Arrivals::Open { rate, burst } = arrivals else { return None };
    let mut left = exponential(chance) * SECOND / rate;
    let Some(Burst { factor, lasts, every }) = burst else { return Some(now.saturating_add(left as u64)) };
    let (lasts, every) = (lasts.as_nanos() as u64, (every.as_nanos() as u64).max(1));
    let mut now = now;
    // `left` is in nanoseconds at the usual rate; a burst uses it up `factor` times as fast.
    loop {
        let at = now % every;
        let (speed, end) = if at < lasts { (factor, lasts.min(every)) } else { (1.0, every) };
        let stretch = (end - at) as f64 * speed;
        if left <= stretch {
            return Some(now.saturating_add((left / speed) as u64));
        }
        left -= stretch;
        now = now.saturating_add(end - at);
    }
}

/// A client's number as a hash: any two are as unlike as hashes of what a request carries.
pub(super) fn hash(client: u32) -> u64 {
    // SplitMix64.
    let mut bits = u64::from(client).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn the_gamma_function_is_right() {
        for (x, expected) in
            [(1.0, 1.0), (2.0, 1.0), (1.5, 0.886_226_925_452_758), (5.0, 24.0), (11.0, 3_628_800.0)]
        {
            assert!((gamma(x) / expected - 1.0).abs() < 1e-12, "gamma({x}) = {}", gamma(x));
        }
    }

    #[test]
    fn a_weibull_has_the_mean_and_the_spread_that_it_was_made_for() {
        let chance = Chance::seeded(3);
        // The square of the coefficient of variation is Γ(1 + 2 ÷ k) ÷ Γ(1 + 1 ÷ k)² − 1.
        for (shape, variation) in [(0.5, 5.0), (1.0, 1.0), (2.0, 0.273)] {
            let weibull = Weibull::new(Spread { mean: 20.0, shape });
            let draws: Vec<f64> = (0..400_000).map(|_| weibull.draw(&chance)).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let square =
                draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64 / mean.powi(2);
            assert!((mean / 20.0 - 1.0).abs() < 0.02, "shape {shape}: mean {mean}");
            assert!((square / variation - 1.0).abs() < 0.1, "shape {shape}: {square}");
        }
        assert_eq!(Weibull::new(Spread { mean: 0.0, shape: 1.0 }).draw(&chance), 0.0);
    }

    #[test]
    fn classes_come_by_their_shares() {
        let class = |share, mean| Class { share, service: Spread { mean, shape: 50.0 } };
        let service = Service::new(&[class(9.0, 0.002), class(1.0, 0.1)]);
        let chance = Chance::seeded(4);
        let dear = (0..100_000).filter(|_| service.draw(&chance) > 50_000_000).count();
        assert!((9_500..10_500).contains(&dear), "{dear}");
    }

    #[test]
    fn the_busiest_of_skewed_clients_sends_what_zipf_says() {
        let chance = Chance::seeded(5);
        let count = |skew, rank| {
            let crowd = Crowd::new(Clients { count: 100, skew });
            (0..100_000).filter(|_| crowd.draw(&chance) == rank).count()
        };
        // The harmonic number of 100 is 5.187.
        assert!((18_800..19_800).contains(&count(1.0, 0)));
        assert!((9_300..10_000).contains(&count(1.0, 1)));
        assert!((900..1_100).contains(&count(0.0, 0)) && (900..1_100).contains(&count(0.0, 99)));
    }

    #[test]
    fn a_burst_brings_its_share_of_the_requests() {
        let burst = Burst { factor: 10.0, lasts: Duration::from_millis(100), every: Duration::from_secs(1) };
        let arrivals = Arrivals::Open { rate: 1_000.0, burst: Some(burst) };
        let chance = Chance::seeded(6);
        let (mut now, mut inside, mut all) = (0, 0, 0);
        while now < 100 * 1_000_000_000 {
            now = arrival(now, &arrivals, &chance).expect("an open loop");
            inside += u32::from(now % 1_000_000_000 < 100_000_000);
            all += 1;
        }
        // 1,000 in a burst and 900 outside, each second.
        assert!((186_000..194_000).contains(&all), "{all}");
        assert!((0.515..0.54).contains(&(f64::from(inside) / f64::from(all))), "{inside} of {all}");
    }
}
