//! Who may come in: decisions without I/O. Whoever asks has addresses, names and texts; what a request is, is not known here.

pub mod jwt;
mod networks;

pub use networks::{NetworkVerdict, Networks};
