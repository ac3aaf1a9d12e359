//! The algorithm that a target is configured with, and what it has computed for a tier.

use crate::config::model::Balance;
use crate::config::model::balance::algorithms;
use crate::targets::picking::candidates::Lineup;
use crate::targets::queueing::wants::Wants;

use super::algorithm::{Algorithm, Draw};
use super::rank::Rank;

/// An algorithm with what it has computed for the backends of a tier.
#[derive(Debug)]
pub(in crate::targets) struct BalancePlan(Any);

macro_rules! make_plan {
    ($($(#[$doc:meta])* $name:ident $text:literal $file:ident,)*) => {
        #[derive(Debug)]
        enum Any {
            $($name(super::$file::$name),)*
        }

        impl BalancePlan {
            /// What `algorithm` computes for `lineup`; `before`: what was computed for the same configured backends.
            pub(in crate::targets) fn new(algorithm: Balance, lineup: &Lineup<'_>, before: Option<&BalancePlan>) -> BalancePlan {
                match (algorithm, before.map(|plan| &plan.0)) {
                    $(
                        (Balance::$name, Some(Any::$name(before))) => BalancePlan(Any::$name(before.anew(lineup))),
                        (Balance::$name, _) => BalancePlan(Any::$name(Algorithm::new(lineup))),
                    )*
                }
            }

            /// See [`Algorithm::draw`].
            #[inline]
            pub(in crate::targets) fn draw(&self, draw: &Draw<'_>) -> Option<usize> {
                match &self.0 {
                    $(Any::$name(algorithm) => algorithm.draw(draw),)*
                }
            }

            /// See [`Algorithm::DRAWS`].
            pub(in crate::targets) fn draws(&self) -> usize {
                match &self.0 {
                    $(Any::$name(_) => <super::$file::$name as Algorithm>::DRAWS,)*
                }
            }

            /// See [`Algorithm::rank`].
            pub(in crate::targets) fn rank(&self, lineup: &Lineup<'_>) -> Option<Rank> {
                match &self.0 {
                    $(Any::$name(algorithm) => algorithm.rank(lineup),)*
                }
            }
        }

        /// See [`Algorithm::WANTS`].
        pub(in crate::targets) const fn wants(algorithm: Balance) -> Wants {
            match algorithm {
                $(Balance::$name => <super::$file::$name as Algorithm>::WANTS,)*
            }
        }
    };
}
algorithms!(make_plan);
