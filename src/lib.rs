//! evenkeel: an L4/L7 load balancer, as a library.
//!
//! The command is a thin shell around this crate, and tests and embedders use the same parts:
//! [`config::load`] turns a file into an accepted [`config::model::Config`], [`server::Server::start`] runs it.
//!
//! The modules below are listed from the bottom up, in groups. Each may import what stands in the groups above its own
//! and nothing else; `docs/architecture.md` has the table and `tests/layering.rs` enforces it.
//!
//! ```no_run
//! use evenkeel::{config, server};
//!
//! let flags = config::Flags { backends: vec!["http://127.0.0.1:8001".into()], ..Default::default() };
//! let loaded = config::load(None, &flags, &|_| None)?;
//! let server = server::Server::start(&loaded.config, server::Options::default())?;
//! server.shutdown().advance();
//! server.wait()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod config;
pub mod tick;

pub mod chunk;
pub mod events;
pub mod instance;
pub mod lasting;
pub mod message;
pub mod net;
pub mod shutdown;
pub mod slots;
#[cfg(test)]
mod steps;
pub mod tls;

pub mod store;

pub mod access;
pub mod cache;
pub mod compress;
pub mod outgoing;
pub mod route;
pub mod targets;
pub mod telemetry;

pub mod snapshot;

pub mod probe;
pub mod proxy;
pub mod simulate;

pub mod worker;

pub mod cluster;
pub mod decision;
pub mod discover;
pub mod metrics;
pub mod overlay;

pub mod reload;
pub mod watch;

pub mod acme;
pub mod admin;
pub mod jwks;
pub mod scale;
pub mod statsd;
pub mod traces;
pub mod upgrade;
pub mod webhook;

pub mod server;

pub mod cli;
