//! Signed tokens (JWT): whether one is what it says, who its bearer is, and what backends are told of that. What may sign and what must
//! hold is said by the config; a token chooses nothing of it. It names an algorithm, which must be one of those configured and one that
//! its key is for, and a key, which is looked up among those that are known and nowhere else: `jku`, `x5u` and `jwk` are not read.
//!
//! The time is that of the wall clock, which tokens are made by; whoever asks says what it is.

mod claims;
mod fault;
mod lines;
mod refresh;
mod token;
mod verified;

pub use claims::{TokenClaims, verify};
pub use fault::{TokenFault, TokenFaultKind};
pub use lines::{ToldClaims, told_claims};
pub use refresh::KeyRefresh;
pub use token::{TOKEN_SIZE, Token, bearer};
pub use verified::VerifiedTokens;

#[cfg(test)]
mod tests;
