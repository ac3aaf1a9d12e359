//! The accepted form of TLS, on both sides. Files have been read: what stands here is what was in them.

pub mod offers;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName};
use rustls::sign::CertifiedKey;

use offers::{CipherSuite, KeyGroup};

/// TLS towards clients.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerTls {
    /// Certificates with their keys, at least one. The first is shown to clients that name no host we have one
    /// for.
    pub identities: Vec<Arc<Identity>>,
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
            identities,
            clients: None,
            oldest: TlsVersion::default(),
            cipher_suites: Vec::new(),
            groups: KeyGroup::USUAL.to_vec(),
            unknown_sni: UnknownSni::default(),
            alpn: Vec::new(),
        }
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

/// A certificate chain and its private key, which match.
#[derive(Clone)]
pub struct Identity {
    /// Where the chain was read.
    pub file: PathBuf,
    /// The chain, leaf first, and the key.
    pub certified: Arc<CertifiedKey>,
    /// The host names of the leaf in lower case: those in its subjectAltName, or its common name where it has
    /// none. Some begin with `*.`.
    pub names: Vec<String>,
    /// When the leaf ends, in seconds since 1970.
    pub expires: i64,
    /// What else is told of it.
    pub facts: IdentityFacts,
    /// An answer of its authority that is shown with it; `None`: there is none.
    pub staple: Option<Staple>,
}

/// An answer of an authority about one of its certificates (OCSP), which is shown with that.
#[derive(Clone)]
pub struct Staple {
    /// Where it was read.
    pub file: PathBuf,
    /// When it ends, in seconds since 1970.
    pub until: i64,
    /// The chain and the key with it.
    pub certified: Arc<CertifiedKey>,
}

/// What people want to know of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityFacts {
    /// The kind of its key: `ECDSA P-256`.
    pub key: String,
    /// Who each certificate of the chain is for, the leaf first.
    pub chain: Vec<String>,
    /// The leaf says that it has issued itself.
    pub is_self_issued: bool,
    /// What is strange about its chain, and may be meant like this.
    pub doubt: Option<String>,
}

impl PartialEq for Identity {
    /// A key is what its certificate says, so equal chains have equal keys.
    fn eq(&self, other: &Identity) -> bool {
        let answer = |one: &Identity| one.staple.as_ref().and_then(|staple| staple.certified.ocsp.clone());
        self.file == other.file
            && self.certified.cert == other.certified.cert
            && answer(self) == answer(other)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("file", &self.file)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// What clients are shown at this time, in seconds since 1970: with an answer of its authority while that is valid.
    #[must_use]
    pub fn shown(&self, now: impl FnOnce() -> i64) -> &Arc<CertifiedKey> {
        match &self.staple {
            Some(staple) if now() < staple.until => &staple.certified,
            Some(_) | None => &self.certified,
        }
    }

    /// Days until the leaf ends, rounded down; negative when it has ended.
    #[must_use]
    pub fn days_left(&self, now: SystemTime) -> i64 {
        let since = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.expires.saturating_sub(i64::try_from(since).unwrap_or(i64::MAX)).div_euclid(24 * 3600)
    }
}

/// Certificates of authorities.
#[derive(Clone, PartialEq, Eq)]
pub struct Authorities {
    /// Where they were read.
    pub file: PathBuf,
    /// At least one. Shared by all backends of a target: the system's own list is some 200 KiB.
    pub certificates: Arc<[CertificateDer<'static>]>,
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.certificates.len(), self.file.display())
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
