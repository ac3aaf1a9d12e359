//! Whether a request may have what its route leads to: the step of [`exchange`](super::exchange::exchange) behind the route and before
//! the target. What the checks decide by is in `access`, where no HTTP is known.

mod asking;
mod at_the_door;
pub mod auth;
pub mod authenticated;
mod basic;
pub mod blocked;
mod denial;
mod forward;
pub mod rate;
mod token;

pub use asking::Asking;
pub use at_the_door::at_the_door;
pub use denial::Denial;
