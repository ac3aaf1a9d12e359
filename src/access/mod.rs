//! Who may come in: decisions without I/O. Whoever asks has addresses, names and texts; what a request is, is not known here.

mod address_rules;
pub mod jwt;
mod known_keys;
mod networks;

pub use address_rules::{AddressRule, AddressRules, RuleStock};
pub use known_keys::KnownKeys;
pub use networks::{NetworkVerdict, Networks};
