//! When a backend is probed, what a row of probes amounts to, and what an agent says. The sockets are in `probe`.

pub mod agent;
pub mod last_probe;
pub mod schedule;
pub mod threshold;
