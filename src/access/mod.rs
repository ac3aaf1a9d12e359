//! Who may come in: decisions without I/O. Whoever asks has addresses, names and texts; what a request is, is not known here.

mod address_rules;
mod networks;
pub mod passwords;
pub mod rate;

pub use address_rules::{AddressRule, AddressRules, RuleStock};
pub use networks::{NetworkVerdict, Networks};
