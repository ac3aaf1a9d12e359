//! Pools of backends: who may be picked, who is picked, and what came of it.
//!
//! `proxy` calls [`Target::pick`] and gets a [`Lease`]; `probe` reports verdicts and addresses to
//! [`TargetState`]; `server` owns the [`Registry`]. Nothing here opens a socket, reads a clock or knows
//! what HTTP is: every decision is a function of state and a [`crate::tick::Tick`].

mod adaptive;
mod answers;
mod ask;
mod backend;
mod balance;
mod board;
mod breaker;
mod budget;
mod desk;
mod dice;
mod ejection;
mod evidence;
mod gradient;
mod hash;
pub mod health;
mod hedge;
mod lease;
mod live;
mod outlier;
mod padded;
mod pick;
mod queue;
mod ready;
mod registry;
pub mod retry;
mod state;
mod status;
mod sticky;
mod sweep;
mod tally;
mod tier;
mod toll;
mod transitions;
mod tried;
mod waiting;
mod warmup;

pub use ask::Ask;
pub use backend::{Backend, Endpoint};
pub use breaker::Circuit;
pub use budget::{Budget, Saving};
pub use dice::Dice;
pub use evidence::Mark;
pub use hash::{hash, hash_address};
pub use hedge::Pace;
pub use lease::{Heard, Lease, Outcome};
pub use live::{TargetState, Transition, Verdict};
pub use padded::Padded;
pub use pick::{Pick, Target};
pub use registry::Registry;
pub use state::{Health, Source};
pub use status::BackendStatus;
pub use sticky::Pins;
pub use sweep::{Ejected, SWEEP};
pub use tried::Tried;
pub use waiting::{Queued, Ticket};

#[cfg(test)]
mod explorer;
#[cfg(test)]
mod fixtures;
