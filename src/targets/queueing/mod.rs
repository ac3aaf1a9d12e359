//! Who holds a place at a backend, who waits for one, and what all of that changes together.

pub(in crate::targets) mod board;
pub(in crate::targets) mod board_rules;
pub(in crate::targets) mod board_state;
pub(in crate::targets) mod lease;
pub(in crate::targets) mod queue;
pub(in crate::targets) mod ready;
pub(in crate::targets) mod seat;
pub(in crate::targets) mod waiting;
pub(in crate::targets) mod wants;
pub(in crate::targets) mod watch;
