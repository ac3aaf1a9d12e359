//! Another process in the place of this one, while it serves: an upgrade.
//!
//! The running process starts the new binary with its own arguments and a unix socket as its standard input. Over that pair, and over nothing that has a
//! path, everything goes: what the new one says of its config, and then what it inherits (its [`Legacy`]). The order is:
//!
//! 1. the new one reads its config and greets, or says why it can't ([`words`]);
//! 2. the running one changes nothing any more, and gives: state, sockets, the lock of the folder of state;
//! 3. the new one serves, and says so: from here on both accept;
//! 4. the running one is over: it accepts no more, lets go of what only one may have, and drains; the new one does all the rest from then on.
//!
//! Until the third step whatever fails is the new one's end and nothing else. From then on the new one needs the other for nothing: that it is gone before
//! the fourth is as good as its word.

pub mod binary;
pub mod candidate;
pub mod elder;
pub mod fault;
pub mod legacy;
pub mod parcel;
pub mod steps;
pub mod successor;
pub mod words;

pub use candidate::Candidate;
pub use elder::{Elder, ElderSays};
pub use fault::UpgradeFault;
pub use legacy::{Legacy, LegacySocket};
pub use successor::{Heir, HeirOrigin, HeirStart};
