//! How a backend is chosen out of a tier: one file per algorithm, one line each in `config::model`'s registry.
//!
//! An algorithm sees places, weights and loads, never the network. It may answer any place for which
//! [`Draw::may`](algorithm::Draw::may) says yes; when what it drew may not be used it answers `None` and is asked again a few times,
//! before any backend will do. So nobody outside `may` decides who is eligible.

pub(in crate::targets) mod algorithm;
pub(in crate::targets) mod cursor;
mod first;
mod hashed;
mod least_busy;
mod least_connections;
mod maglev;
mod peak_ewma;
pub(in crate::targets) mod plan;
mod power_of_two;
mod random;
pub(in crate::targets) mod rank;
mod ring_hash;
mod round_robin;
mod smooth;
