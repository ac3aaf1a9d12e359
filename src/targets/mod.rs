//! Pools of backends: who may be picked, who is picked, and what came of it.
//!
//! `proxy` calls [`Target::pick`] and gets a [`Lease`]; `probe` reports verdicts and addresses to
//! [`TargetState`]; `server` owns the [`Registry`]. Nothing here opens a socket, reads a clock or knows
//! what HTTP is: every decision is a function of state and a [`crate::tick::Tick`].
//!
//! Each folder decides one thing: `state` whether a backend is up, `picking` which one a request gets, `queueing` who holds
//! a place at one and who waits for it, `resilience` what failures lead to, `sharing` what several nodes are to one another's backends.

pub mod picking;
pub mod queueing;
pub mod resilience;
pub mod sharing;
pub mod state;

pub use picking::ask::Ask;
pub use picking::chance::Chance;
pub use picking::hash::{hash, hash_address};
pub use picking::peek::Prospect;
pub use picking::pick::{Pick, Target};
pub use picking::sticky::Pins;
pub use picking::tried::Tried;
pub use queueing::lease::{Heard, Outcome};
pub use queueing::waiting::{QueueTicket, Queued};
pub use resilience::breaker::Circuit;
pub use resilience::budget::{Budget, BudgetShare};
pub use resilience::evidence::Mark;
pub use resilience::hedge::HedgePace;
pub use resilience::standing::StandingWords;
pub use resilience::sweep::Ejected;
pub use resilience::window::SWEEP;
pub use state::decide::{Health, Source};
pub use state::departure::Departure;
pub use state::endpoint::Endpoint;
pub use state::health::last_probe::LastProbe;
pub use state::objects::{Backend, Lease};
pub use state::padded::Padded;
pub use state::registry::{Gone, Prepared, Registry};
pub use state::scale_signal::ScaleSignal;
pub use state::settled::{ProbeWord, ProbeWords};
pub use state::status::{BackendCondition, BackendStatus, InputStatus, TargetStatus};
pub use state::tally::TargetTally;
pub use state::target_state::{TargetState, Transition, Verdict};

#[cfg(test)]
mod explorer;
#[cfg(test)]
pub(crate) mod fixtures;
