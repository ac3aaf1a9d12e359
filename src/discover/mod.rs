//! Backends that are addresses of names: DNS is asked again and again, and what it says is merged with what was known.
//!
//! [`merge`] and [`pace`] decide, without a clock or a socket: which addresses a name has, and when it is asked again. [`Discovery`] holds what
//! is known of all names, and has a task for each; who puts configs into force asks it what a config amounts to (`reload::discovered`). Nothing
//! on the way of a request knows any of this.

mod answer;
mod asking;
mod board;
mod known;
pub mod merge;
pub mod pace;
mod servers;
pub mod shared;
mod told;

pub use answer::{HeardAddress, NameAnswer, UnheardHost};
pub use asking::NameAsker;
pub use board::Discovery;
pub use told::ToldNames;
