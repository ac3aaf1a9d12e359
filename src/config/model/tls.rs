//! The accepted form of TLS, on both sides. Files have been read: what stands here is what was in them.

pub mod acme;
mod identity;
pub mod offers;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::{CertificateRevocationListDer, ServerName};

use acme::OrderedCertificate;
pub use identity::{Authorities, Ending, Identity, IdentityFacts, Staple};
use offers::{CipherSuite, KeyGroup};

/// TLS towards clients.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerTls {
    /// Certificates with their keys.
    pub identities: Vec<Arc<Identity>>,
    /// Certificates that are ordered from an authority. There is at least one of both kinds.
    pub ordered: Vec<Arc<OrderedCertificate>>,
    /// The first of `ordered` is shown to clients that name no host we have one for; otherwise it is the first of `identities`.
    pub orders_first: bool,
    /// What is asked of clients; `None`: no certificate.
    pub clients: Option<ClientCertificates>,
    /// The oldest version that is spoken. Default 1.2.
    pub oldest: TlsVersion,
    /// Which cipher suites are taken, by the client's order; empty: all of them.
    pub cipher_suites: Vec<CipherSuite>,
    /// In which groups keys are exchanged, the preferred one first. Default [`KeyGroup::USUAL`].
    pub groups: Vec<KeyGroup>,
    /// What becomes of clients that ask for a name which none of the certificates has, or for none.
    pub unknown_sni: UnknownSni,
    /// What clients that speak HTTP may choose from, the preferred one first; empty: what is spoken inside is no HTTP.
    pub alpn: Vec<AlpnProtocol>,
}

impl ListenerTls {
    /// What is usual with these certificates: nothing is asked of clients, and what is spoken inside is theirs.
    #[must_use]
    pub fn showing(identities: Vec<Arc<Identity>>) -> ListenerTls {
        ListenerTls {
            orders_first: identities.is_empty(),
            identities,
            ordered: Vec::new(),
            clients: None,
            oldest: TlsVersion::default(),
            cipher_suites: Vec::new(),
            groups: KeyGroup::USUAL.to_vec(),
            unknown_sni: UnknownSni::default(),
            alpn: Vec::new(),
        }
    }
}

impl ListenerTls {
    /// The names of all certificates.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let ordered = self.ordered.iter().flat_map(|ordered| &ordered.names);
        self.identities.iter().flat_map(|identity| &identity.names).chain(ordered).map(String::as_str)
    }
}

/// What becomes of clients that ask for a name which no certificate has, or for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum UnknownSni {
    /// They are shown the first certificate. The default.
    #[default]
    Default,
    /// They are told that nobody has this name.
    Refuse,
}

impl UnknownSni {
    /// Both with the name they have in a config file.
    pub const ALL: &'static [(&'static str, UnknownSni)] =
        &[("default", UnknownSni::Default), ("refuse", UnknownSni::Refuse)];
}

/// What is spoken inside of a session, as both sides agree on it (ALPN, RFC 7301).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlpnProtocol {
    /// HTTP/2 (RFC 9113).
    H2,
    /// HTTP/1.1, and HTTP/1.0 for clients that offer nothing else.
    Http1,
}

impl AlpnProtocol {
    /// Both with the name they have in a config file; the preferred one first.
    pub const ALL: &'static [(&'static str, AlpnProtocol)] =
        &[("h2", AlpnProtocol::H2), ("http/1.1", AlpnProtocol::Http1)];

    /// What is offered by default where HTTP/2 is spoken, and where it is not.
    #[must_use]
    pub fn usual(has_http2: bool) -> Vec<AlpnProtocol> {
        if has_http2 { vec![AlpnProtocol::H2, AlpnProtocol::Http1] } else { vec![AlpnProtocol::Http1] }
    }

    /// As it is offered (RFC 7301).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            AlpnProtocol::H2 => "h2",
            AlpnProtocol::Http1 => "http/1.1",
        }
    }
}

/// What is asked of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificates {
    /// Who may have issued their certificates.
    pub authorities: Authorities,
    /// Whether a client may come without one.
    pub auth: ClientAuth,
    /// Which of them are revoked; `None`: nobody says.
    pub revoked: Option<Revoked>,
}

/// Which certificates of clients are revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// At least one.
    pub lists: Vec<RevocationList>,
    /// What a list is worth that should have been renewed.
    pub expired: ExpiredList,
}

impl Revoked {
    /// When the first of the lists should be renewed that is the newest of its issuer, in seconds since 1970.
    #[must_use]
    pub fn next_update(&self) -> Option<i64> {
        self.newest().filter_map(|list| list.next_update).min()
    }

    /// The newest list of each issuer.
    pub fn newest(&self) -> impl Iterator<Item = &RevocationList> {
        let end = |list: &RevocationList| list.next_update.unwrap_or(i64::MAX);
        self.lists.iter().enumerate().filter_map(move |(place, list)| {
            let mut others =
                self.lists.iter().enumerate().filter(|(at, other)| *at != place && other.name == list.name);
            let is_older = others.any(|(at, other)| (end(other), at) > (end(list), place));
            (!is_older).then_some(list)
        })
    }
}

/// A list of revoked certificates of one issuer (RFC 5280 §5).
#[derive(Clone, PartialEq, Eq)]
pub struct RevocationList {
    /// Where it was read.
    pub file: PathBuf,
    /// Whose certificates it is about, as people call it.
    pub issuer: String,
    /// The same in DER.
    pub name: Vec<u8>,
    /// When it should be renewed, in seconds since 1970.
    pub next_update: Option<i64>,
    /// All of it.
    pub der: CertificateRevocationListDer<'static>,
}

impl fmt::Debug for RevocationList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the list of {} in {}", self.issuer, self.file.display())
    }
}

/// What a list of revoked certificates is worth that should have been renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ExpiredList {
    /// What it says still holds, and whoever runs this is warned. The default.
    #[default]
    Keep,
    /// No certificate of its issuer is taken.
    Refuse,
}

impl ExpiredList {
    /// Both with the name they have in a config file.
    pub const ALL: &'static [(&'static str, ExpiredList)] =
        &[("keep", ExpiredList::Keep), ("refuse", ExpiredList::Refuse)];
}

/// Whether a client may come without a certificate. One that is shown must be valid either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ClientAuth {
    /// The handshake fails without one. The default.
    #[default]
    Required,
    /// The backend is told whether there was one.
    Optional,
}

impl ClientAuth {
    /// Both with the name they have in a config file.
    pub const ALL: &'static [(&'static str, ClientAuth)] =
        &[("required", ClientAuth::Required), ("optional", ClientAuth::Optional)];
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TlsVersion {
    /// RFC 5246.
    #[default]
    V12,
    /// RFC 8446.
    V13,
}

impl TlsVersion {
    /// Both with the name they have in a config file.
    pub const ALL: &'static [(&'static str, TlsVersion)] =
        &[("1.2", TlsVersion::V12), ("1.3", TlsVersion::V13)];
}

/// TLS towards one backend.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamTls {
    /// Who may have issued its certificate; `None`: whom the system trusts.
    pub authorities: Option<Authorities>,
    /// The name that it must have, sent as SNI unless it is an address.
    pub name: ServerName<'static>,
    /// What is shown to a backend that asks for a certificate.
    pub identity: Option<Arc<Identity>>,
    /// True: whatever certificate it has is taken.
    pub insecure: bool,
}
