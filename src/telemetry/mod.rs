//! What happened, told to people and machines: metric cells and the access log.
//!
//! Both are readers of [`Record`](crate::message::Record), and both have one instance per worker, so no
//! worker ever waits for another one or for a disk. Workers write; tests and exporters read.

pub mod access_log;
pub mod cells;
