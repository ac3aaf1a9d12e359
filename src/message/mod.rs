//! What a request is made of: head, body, the cause it ended with, the record it leaves.
//!
//! No sockets and no clock. Everything above speaks in these words.

mod cause;
mod record;

pub use cause::{Blame, Cause};
pub use record::{ATTEMPTS, Attempt, BackendId, Kind, ListenerId, Record, TargetId};
