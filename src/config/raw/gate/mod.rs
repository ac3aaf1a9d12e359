//! Who may come in, as it is written: named rules at the top level, and the keys of listeners and routes that name them.

pub(super) mod access;
pub(super) mod auth;
mod given;
pub(super) mod jwt;
pub(super) mod named;
pub(super) mod rate;
mod told;
