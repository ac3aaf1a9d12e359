//! How latencies and sizes are spread: always the same, or drawn from a Weibull distribution, whose long
//! tail is what response times of real services look like.
//!
//! Used by `behaviour`; the random source belongs to the running fake, so a seed makes a run repeatable.

use rand::rngs::StdRng;
use rand_distr::{Distribution, Weibull};

/// A number per request: milliseconds of latency or bytes of body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// The same value each time.
    Fixed(f64),
    /// A Weibull distribution. Its mean is `scale × Γ(1 + 1 / shape)`: `scale` itself for shape 1.
    Weibull {
        /// Below 1 a long tail, 1 exponential, above 1 a hump near `scale`. Greater than 0.
        shape: f64,
        /// The value below which 63.2 % of all draws lie, in the unit of what is drawn. Greater than 0.
        scale: f64,
    },
}

/// Why a [`Spread`] cannot be drawn from.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum SpreadError {
    /// The shape is not a finite number above zero.
    #[error("the shape must be a number above 0, not {0}")]
    Shape(f64),
    /// The scale is not a finite number above zero.
    #[error("the scale must be a number above 0, not {0}")]
    Scale(f64),
}

impl Spread {
    /// A Weibull distribution.
    ///
    /// # Errors
    /// Refuses a shape or scale that is not a finite number above zero.
    pub fn weibull(shape: f64, scale: f64) -> Result<Self, SpreadError> {
        if !(shape.is_finite() && shape > 0.0) {
            return Err(SpreadError::Shape(shape));
        }
        if !(scale.is_finite() && scale > 0.0) {
            return Err(SpreadError::Scale(scale));
        }
        Ok(Self::Weibull { shape, scale })
    }

    /// One value, never below zero. A distribution that was put together with impossible numbers gives 0.
    pub(crate) fn draw(&self, chance: &mut StdRng) -> f64 {
        let drawn = match *self {
            Self::Fixed(value) => value,
            Self::Weibull { shape, scale } => {
                Weibull::new(scale, shape).map_or(0.0, |weibull| weibull.sample(chance))
            }
        };
        if drawn.is_finite() { drawn.max(0.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn weibull_has_its_mean_and_repeats_with_its_seed() {
        let spread = Spread::weibull(1.0, 20.0).expect("both are positive");
        let mut chance = StdRng::seed_from_u64(7);
        let draws: Vec<f64> = (0..20_000).map(|_| spread.draw(&mut chance)).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        assert!((19.0..21.0).contains(&mean), "mean {mean}");
        let mut again = StdRng::seed_from_u64(7);
        assert_eq!(spread.draw(&mut again), draws[0]);
    }

    #[test]
    fn impossible_numbers_are_refused() {
        assert_eq!(Spread::weibull(0.0, 1.0), Err(SpreadError::Shape(0.0)));
        assert_eq!(Spread::weibull(1.0, -1.0), Err(SpreadError::Scale(-1.0)));
        assert!(Spread::weibull(f64::NAN, 1.0).is_err());
    }
}
