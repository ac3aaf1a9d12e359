//! Whether a request may have what its route leads to: the step of [`exchange`](super::exchange::exchange) behind the route and before
//! the target. What the checks decide by is in `access`, where no HTTP is known.

mod denial;
pub mod rate;
mod token;

pub use denial::Denial;
pub use token::token;
