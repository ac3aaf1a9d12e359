//! Certificates that are ordered from an authority (ACME, RFC 8555), in the accepted form.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::identity::{Authorities, Identity};
use crate::config::model::HttpUrl;

/// `acme`: who issues certificates for us, and as whom we come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeConfig {
    /// Where the authority's directory is (RFC 8555 §7.1.1).
    pub directory: HttpUrl,
    /// Who vouches for that; `None`: whom the system trusts.
    pub authorities: Option<Authorities>,
    /// Mail addresses by which the authority reaches people, without `mailto:`.
    pub contacts: Vec<String>,
    /// Whose customer we are, where an authority wants to know (RFC 8555 §7.3.4).
    pub external_account: Option<ExternalAccount>,
    /// It is one that everybody may ask, and has published how often.
    pub is_public: bool,
    /// By whom names are proven in DNS; `None`: by nobody.
    pub hook: Option<DnsHook>,
}

impl Default for AcmeConfig {
    /// Let's Encrypt, as nobody in particular.
    fn default() -> AcmeConfig {
        let (host, path) = AcmeConfig::USUAL;
        let directory =
            HttpUrl { is_tls: true, host: host.to_owned(), port: 443, path: path.into(), user: None };
        AcmeConfig {
            directory,
            authorities: None,
            contacts: Vec::new(),
            external_account: None,
            is_public: true,
            hook: None,
        }
    }
}

impl AcmeConfig {
    /// Where the directory of Let's Encrypt is: host and path.
    pub const USUAL: (&'static str, &'static str) = ("acme-v02.api.letsencrypt.org", "/directory");
    /// How long what a hook has done may take to be seen, where nobody says.
    pub const DNS_WAIT: Duration = Duration::from_secs(30);
    /// How long a hook may run.
    pub const HOOK_TIMEOUT: Duration = Duration::from_secs(120);
}

/// An account that people have made with an authority. Nobody is shown its key.
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    /// What the authority calls it.
    pub id: String,
    /// What shows that it is ours: the key of an HMAC.
    pub key: Arc<[u8]>,
}

impl fmt::Debug for ExternalAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalAccount").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A program that adds records to DNS and takes them away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsHook {
    /// Called with `add` or `remove`, the record's name and its value.
    pub program: PathBuf,
    /// How long what it has done may take to be seen. Default 30 s.
    pub wait: Duration,
}

/// A certificate that is ordered.
#[derive(Clone)]
pub struct OrderedCertificate {
    /// What it is for: host names in lower case, each once; some begin with `*.`. At least one, at most [`Self::NAMES`].
    pub names: Vec<String>,
    /// The kind of its key.
    pub key: OrderedKey,
    /// How it is shown whose the names are.
    pub challenge: AcmeChallenge,
    /// What is shown until there is one.
    pub stand_in: Arc<Identity>,
}

impl OrderedCertificate {
    /// As many as authorities take in one order.
    pub const NAMES: usize = 100;

    /// Whether both are one certificate, however it is got, and in whatever order its names are written.
    #[must_use]
    pub fn is_like(&self, other: &OrderedCertificate) -> bool {
        self.key == other.key && self.sorted() == other.sorted()
    }

    /// Its names in the order of the alphabet.
    #[must_use]
    pub fn sorted(&self) -> Vec<String> {
        let mut names = self.names.clone();
        names.sort();
        names
    }
}

impl PartialEq for OrderedCertificate {
    /// Each stand-in is another one.
    fn eq(&self, other: &OrderedCertificate) -> bool {
        self.names == other.names && self.key == other.key && self.challenge == other.challenge
    }
}

impl fmt::Debug for OrderedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderedCertificate").field("names", &self.names).finish_non_exhaustive()
    }
}

/// The kind of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum OrderedKey {
    /// The default.
    #[default]
    EcdsaP256,
    /// More than is needed.
    EcdsaP384,
    /// For clients that know nothing else.
    Rsa2048,
    /// The same, stronger.
    Rsa3072,
    /// The same, stronger still, and slow.
    Rsa4096,
}

impl OrderedKey {
    /// All of them with their names in a config file.
    pub const ALL: &'static [(&'static str, OrderedKey)] = &[
        ("ecdsa-p256", OrderedKey::EcdsaP256),
        ("ecdsa-p384", OrderedKey::EcdsaP384),
        ("rsa-2048", OrderedKey::Rsa2048),
        ("rsa-3072", OrderedKey::Rsa3072),
        ("rsa-4096", OrderedKey::Rsa4096),
    ];

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, key)| *key == self).map_or("", |(name, _)| name)
    }
}

/// How it is shown that a name is ours (RFC 8555 §8, RFC 8737).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcmeChallenge {
    /// By an answer to a request at port 80.
    Http01,
    /// By a certificate in a handshake at port 443.
    TlsAlpn01,
    /// By a record in DNS.
    Dns01,
}

impl AcmeChallenge {
    /// All of them with their names in a config file.
    pub const ALL: &'static [(&'static str, AcmeChallenge)] = &[
        ("http-01", AcmeChallenge::Http01),
        ("tls-alpn-01", AcmeChallenge::TlsAlpn01),
        ("dns-01", AcmeChallenge::Dns01),
    ];

    /// As it is written, and as authorities call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, challenge)| *challenge == self).map_or("", |(name, _)| name)
    }
}
