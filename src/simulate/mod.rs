//! What a balancing algorithm does to a workload, without a network: discrete events over the shipped policy code.
//!
//! A [`Workload`] says how requests come, how long they take and how the backends behave; [`run`] sends them through a
//! real [`Target`](crate::targets::Target), whose picks, leases, ejections and probes are those of the proxy, at points in
//! time that exist only as numbers. What is not the proxy's is modelled: a backend has slots and one queue, an answer takes
//! its service time and then its transfer. The network and the proxy itself cost nothing. The same seed gives the same
//! figures on the same machine (another one's `ln` may round otherwise).
//!
//! ```
//! use evenkeel::config::model::Balance;
//! use evenkeel::simulate::{self, Workload};
//!
//! let workload = Workload::stock().into_iter().find(|workload| workload.name == "even").expect("it is there");
//! let report = simulate::run(&workload, &Balance::RoundRobin.into(), 10_000, 1);
//! assert_eq!((report.requests, report.errors), (10_000, 0));
//! ```

mod calendar;
mod draw;
mod engine;
mod fake;
mod histogram;
pub mod nodes;
mod report;
mod stock;
mod workload;

pub use engine::run;
pub use report::SimulationReport;
pub use workload::{Arrivals, Burst, Class, Clients, Conduct, Fake, Phase, Spread, Workload};

#[cfg(test)]
mod outliers;
#[cfg(test)]
mod tests;
