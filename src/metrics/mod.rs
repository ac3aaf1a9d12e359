//! Metrics: every family there is, and how a scrape is written.
//!
//! A scrape is a [`Moment`] (what is in force, and what was counted) made into [`ScrapeSources`], which hold what they read, and then
//! text, a [`Scrape`], piece by piece: however many backends there are, nobody who shares a thread with it waits for long. Nothing here asks
//! for anything: `admin` brings the moment and sends the pieces. No label has a value that a client wrote.

mod before;
mod cached;
mod clients;
mod cluster;
mod control;
mod datagrams;
mod families;
mod family;
mod gates;
mod names;
mod owners;
mod process;
mod scrape;
mod sources;
mod system;
#[cfg(test)]
mod tests;
mod times;
mod upstream;
mod walk;

pub use before::{BeingTold, CountsBook};
pub use families::all;
pub use family::Family;
pub use owners::{CountedOwners, HEIRS};
pub use scrape::Scrape;
pub use sources::{ClusterGauges, ControlState, Moment, ScrapeSources};
pub use system::SystemUse;
pub use walk::FamilyWalk;
