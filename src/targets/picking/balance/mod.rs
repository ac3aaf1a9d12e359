//! How a backend is chosen out of a tier: one file per algorithm, one line each in `config::model`'s registry.
//!
//! An algorithm sees places, weights and loads, never the network. It may answer any place for which
//! [`Draw::may`] says yes; when what it drew may not be used it answers `None` and is asked again a few times,
//! before any backend will do. So nobody outside `may` decides who is eligible.

mod first;
mod hashed;
mod least_busy;
mod least_connections;
mod maglev;
mod peak_ewma;
mod power_of_two;
mod random;
pub(in crate::targets) mod rank;
mod ring_hash;
mod round_robin;
mod smooth;

use crate::config::model::Balance;
use crate::config::model::balance::algorithms;
use crate::targets::picking::tier::{Lineup, Tier};
use crate::targets::queueing::board::Wants;
use crate::targets::{Ask, TargetState};
use rank::Rank;
pub(in crate::targets) use round_robin::Cursor;

/// One pick: who is there, and for whom.
#[derive(Clone, Copy)]
pub(in crate::targets) struct Draw<'a> {
    /// The backends.
    pub(in crate::targets) tier: &'a Tier,
    /// What outlives the live set.
    pub(in crate::targets) state: &'a TargetState,
    /// The request.
    pub(in crate::targets) ask: &'a Ask<'a>,
}

impl Draw<'_> {
    /// Whether the backend at `place` may be picked for this request.
    #[inline]
    pub(in crate::targets) fn may(&self, place: usize) -> bool {
        self.tier.may(place, self.ask)
    }

    /// What is hashed; chance where the request has nothing.
    pub(in crate::targets) fn key(&self) -> u64 {
        self.ask.key.unwrap_or_else(|| self.ask.chance.bits())
    }

    /// How busy the backend at `place` would be with this request, for each unit of its weight.
    #[inline]
    pub(in crate::targets) fn load(&self, place: usize) -> f64 {
        let weight = self.tier.weights.get(place).map_or(1.0, |&weight| f64::from(weight));
        self.tier.load(place) + 1.0 / weight
    }
}

/// A way to choose.
pub(in crate::targets) trait Algorithm: Sized {
    /// What it wants to hear of leases.
    const WANTS: Wants = Wants::Nothing;
    /// How often it is asked before any backend will do. Another draw keeps its order among those that may be picked.
    const DRAWS: usize = 8;

    /// Computes what it needs for these backends. Called on control, whenever the live set changes.
    fn new(lineup: &Lineup<'_>) -> Self;

    /// The same, where this was computed for the same configured backends, perhaps with others up.
    fn anew(&self, lineup: &Lineup<'_>) -> Self {
        Self::new(lineup)
    }

    /// A place that may be picked, or `None`: what it drew may not, another draw may be luckier.
    fn draw(&self, draw: &Draw<'_>) -> Option<usize>;

    /// For [`Wants::Order`]: the order of loads that it picks the first of. Then `draw` is not called.
    fn rank(&self, lineup: &Lineup<'_>) -> Option<Rank> {
        let _ = lineup;
        None
    }
}

/// An algorithm with what it has computed for the backends of a tier.
#[derive(Debug)]
pub(in crate::targets) struct BalancePlan(Any);

macro_rules! make_plan {
    ($($(#[$doc:meta])* $name:ident $text:literal $file:ident,)*) => {
        #[derive(Debug)]
        enum Any {
            $($name($file::$name),)*
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
                    $(Any::$name(_) => <$file::$name as Algorithm>::DRAWS,)*
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
                $(Balance::$name => <$file::$name as Algorithm>::WANTS,)*
            }
        }
    };
}
algorithms!(make_plan);
