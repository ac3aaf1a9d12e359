//! Whether a request may have what its route leads to: the step of [`exchange`](super::exchange::exchange) behind the route and before
//! the target. What the checks decide by is in `access`, where no HTTP is known.

pub mod blocked;
mod denial;
pub mod rate;

pub use denial::Denial;
