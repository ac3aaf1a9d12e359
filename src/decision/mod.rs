//! What would become of a request: the same questions that the data path asks, of the same objects, without a socket.
//!
//! `decide` makes a [`Chain`] of a request and the listeners of a snapshot; `verify` holds the `tests` of a config to it.

mod cached;
mod chain;
mod decide;
mod expected;
mod listener;
mod sample;
mod verify;

pub use chain::{Access, Chain, Destiny, HeaderChange, HeaderPair, PassedOver, PathTaken, Side};
pub use decide::{decide, decide_with};
pub use listener::NoListener;
pub use verify::verify;
