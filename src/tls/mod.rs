//! What TLS sessions are made with, on both sides: configs, certificates, tickets, and the words for failures.
//!
//! Files were read and checked by `config`, so nothing here can fail but a peer. `snapshot` and `target` keep what
//! is made here; `net::tls` moves the records.

mod client;
mod complaint;
mod facts;
mod fault;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod hello;
mod live;
mod offers;
mod proofs;
mod revoking;
mod served_names;
mod server;
mod sessions;
mod tickets;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub use client::{Roots, Upstream};
pub use complaint::Complaint;
pub use facts::{CertificateFacts, certificate_lines};
pub use fault::{TlsFault, backend_words, words};
pub use live::{KeptCertificates, LiveCertificate, LiveCertificates, OrderNews, ShownNow};
pub use proofs::{ACME_TLS, OfferedProof, Proofs};
pub use served_names::{ServedCertificate, ServedNames, hearing};
pub use server::{is_certificate_fault, server_config};
pub use tickets::{BadKeys, ROTATION, TicketKeys, TicketRoots, Tickets};

/// The one provider of cryptography. rustls' own choice of a process-wide default is never asked for.
///
/// Key exchange prefers X25519MLKEM768, so that what is recorded today stays secret from a quantum computer.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}
