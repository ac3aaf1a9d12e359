//! Numbers as datagrams of statsd. Pure: what a scrape would be made of goes in, datagrams come out.
//!
//! A [`StatsdReading`] takes the samples of all families; the [`StatsdLedger`] knows what has been told of each counter, so that only what
//! has come since is sent; [`StatsdDatagrams`] are lines in one of the two dialects, packed. Whatever a name has in it that means something
//! in a line becomes `_`.

mod board;
mod datagrams;
mod ledger;
mod line;
mod reading;
mod series;
#[cfg(test)]
mod tests;
mod timings;

pub use board::{StatsdBoard, StatsdCounts};
pub use datagrams::{StatsdDatagram, StatsdDatagrams};
pub use ledger::StatsdLedger;
pub use reading::StatsdReading;
pub use series::SeriesKey;
pub use timings::{RequestTiming, TimingOutlet, TimingPen};
