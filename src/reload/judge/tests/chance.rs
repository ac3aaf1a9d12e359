//! Chance that repeats itself.

/// SplitMix64.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    /// Above 0, up to 1.
    pub(super) fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        #[expect(clippy::cast_precision_loss, reason = "53 bits")]
        let share = ((bits >> 11) + 1) as f64;
        share / 9_007_199_254_740_992.0
    }

    /// How many of `all` there are if each is there with this probability.
    pub(super) fn of(&mut self, all: u32, probability: f64) -> u32 {
        if probability <= 0.0 {
            return 0;
        }
        if probability >= 1.0 {
            return all;
        }
        let (scale, mut at, mut found) = (1.0 / (1.0 - probability).ln(), 0.0, 0);
        loop {
            // How many are passed over before the next one.
            at += (self.draw().ln() * scale).floor() + 1.0;
            if at > f64::from(all) {
                return found;
            }
            found += 1;
        }
    }

    /// With this mean; any multiple of it now and then.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -self.draw().ln() * mean
    }
}
