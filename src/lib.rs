//! evenkeel: an L4/L7 load balancer.

pub mod config;
pub mod events;
pub mod message;
pub mod probe;
pub mod route;
pub mod target;
pub mod tick;
