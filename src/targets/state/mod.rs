//! What a backend and a target are at this moment, and what that rests on.

pub(in crate::targets) mod announce;
pub(in crate::targets) mod backend;
pub(in crate::targets) mod decide;
pub(in crate::targets) mod departure;
pub(in crate::targets) mod endpoint;
pub mod health;
pub(in crate::targets) mod input;
mod limit;
mod members;
pub(in crate::targets) mod objects;
pub(in crate::targets) mod operator;
pub(in crate::targets) mod padded;
pub(in crate::targets) mod registry;
pub(in crate::targets) mod scale_signal;
pub(in crate::targets) mod settled;
pub(in crate::targets) mod sharing;
pub(in crate::targets) mod status;
pub(in crate::targets) mod tally;
pub(in crate::targets) mod target_state;
pub(in crate::targets) mod transitions;
