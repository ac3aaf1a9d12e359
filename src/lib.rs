//! evenkeel: an L4/L7 load balancer.

pub mod cli;
pub mod config;
pub mod events;
pub mod message;
pub mod net;
pub mod probe;
pub mod proxy;
pub mod route;
pub mod server;
pub mod shutdown;
pub mod snapshot;
pub mod target;
pub mod telemetry;
pub mod tick;
pub mod worker;
