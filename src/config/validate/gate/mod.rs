//! Who may come in: rules by name, and what listeners and routes say of them.

pub(super) mod access;
pub(super) mod auth;
mod jwt;
pub(super) mod named;
mod network_file;
pub(super) mod rate;
mod users_file;
