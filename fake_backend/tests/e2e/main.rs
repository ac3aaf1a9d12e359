//! The fake backend against raw sockets: what it answers when it behaves, and what exactly it does when not.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod client;
mod command;
mod crowd;
mod faults;
mod http;
mod lifecycle;
mod tcp;
mod tls;
mod tls_faults;
