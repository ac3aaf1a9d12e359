//! Backends of a few places each that several nodes share: who prefers which, what the others have there, and how that follows what is asked of the nodes.
//!
//! Nobody is asked and no clock is read here: nodes are names, and what they say has come from somewhere. The same code runs in `evenkeel simulate` and beside a store.

pub mod doubts;
pub mod evening;
pub mod hearing;
pub mod levelling;
pub mod owners;
mod shares;
mod spilling;
pub mod stays;
pub mod uses;
