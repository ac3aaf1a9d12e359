//! When a backend is probed and what a row of probes amounts to. The sockets are in `probe`.

pub mod schedule;
pub mod threshold;
