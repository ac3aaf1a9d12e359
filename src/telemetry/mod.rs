//! What happened, told to people and machines: metric cells and the access log, and how lines of text go to a destination.
//!
//! Cells and access log are readers of [`Record`](crate::message::Record), and both have one instance per worker, so no
//! worker ever waits for another one or for a disk. Workers write; tests and exporters read.

pub mod access_log;
pub mod cells;
pub mod exposition;
pub mod lines;
pub mod names;
pub mod recorder;
pub mod statsd;
pub mod traces;
pub mod webhooks;
