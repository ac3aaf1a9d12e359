//! How often somebody may ask: buckets that fill again at a steady rate (GCRA), in a table of fixed size, exact over all threads.

mod buckets;
#[cfg(test)]
mod explorer;
mod key;
mod pace;
mod several;
mod table;

pub use buckets::{RateBuckets, RateStanding};
pub use key::{RateKey, RateSecret};
pub use pace::Pace;
pub use several::{MOST, RateRefusal, take_all};
pub use table::{ENTRIES, ToldBuckets};
