//! What failures and slowness lead to: who is left out, what is tried again, and how much a backend is given.

pub(in crate::targets) mod adaptive;
pub(in crate::targets) mod answers;
pub(in crate::targets) mod attempt_counts;
pub(in crate::targets) mod breaker;
pub(in crate::targets) mod budget;
pub(in crate::targets) mod ejection;
pub(in crate::targets) mod evidence;
pub(in crate::targets) mod gradient;
pub(in crate::targets) mod hedge;
pub(in crate::targets) mod outlier;
pub(in crate::targets) mod reports;
pub mod retry;
pub(in crate::targets) mod standing;
pub(in crate::targets) mod sweep;
pub(in crate::targets) mod trial;
pub(in crate::targets) mod trouble;
pub(in crate::targets) mod window;
