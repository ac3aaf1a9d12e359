//! Who may come in: decisions without I/O. Whoever asks has addresses, names and texts; what a request is, is not known here.

mod networks;
pub mod rate;

pub use networks::{NetworkVerdict, Networks};
