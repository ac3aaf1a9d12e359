//! Who may come in: decisions without I/O. Whoever asks has addresses, names and texts; what a request is, is not known here.

mod networks;
pub mod passwords;

pub use networks::{NetworkVerdict, Networks};
