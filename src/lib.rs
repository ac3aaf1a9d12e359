//! evenkeel: an L4/L7 load balancer.

pub mod config;
pub mod message;
pub mod telemetry;
pub mod tick;
