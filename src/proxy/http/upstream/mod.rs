//! HTTP/2 towards backends: connections that requests share.
//!
//! A worker has few to each backend. `sessions` gives a request a place on one of them, `opening` has the next one made; `session` is what
//! those who share it have in common; in `connection` is the task that reads and writes its socket.

mod connection;
pub mod opening;
pub mod session;
pub mod sessions;
mod waiting;
