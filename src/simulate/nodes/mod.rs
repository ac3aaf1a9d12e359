//! Several nodes in front of the same backends: each has the shipped [`Target`](crate::targets::Target), and what they tell each other goes through the
//! shipped [`sharing`](crate::targets::sharing), a turn of 250 ms each, as in a cluster.

mod case;
mod engine;
mod work;

pub use case::{NodeSharing, NodesReport, NodesWorkload};
pub use engine::run;

#[cfg(test)]
mod tests;
