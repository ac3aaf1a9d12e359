//! Certificates from authorities (ACME, RFC 8555): ordered, kept, renewed in time, and told of when that fails.
//!
//! Who is asked when is decided without I/O (`schedule`, `limits`); what was asked is kept (`book`), and what was issued, too
//! (`shelf`). Workers see two things of all this: what is shown now (`tls::LiveCertificate`), and what an authority may ask them for while
//! an order waits (`tls::Proofs`).

mod account;
mod book;
mod client;
mod desk;
mod fault;
mod hook;
mod limits;
mod nodes;
mod order;
mod proof;
mod schedule;
mod service;
mod shelf;
mod visit;

pub use desk::OrderDesk;
pub use service::keep;
pub use shelf::KeptShelves;
