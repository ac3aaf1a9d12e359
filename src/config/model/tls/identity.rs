//! Certificates with their keys, and those of authorities, as they were read.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;

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
    /// When the leaf begins, in seconds since 1970.
    pub begins: i64,
    /// When it ends.
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

    /// Whether the leaf is for this name, in lower case; a name with a star is for itself.
    #[must_use]
    pub fn is_for(&self, name: &str) -> bool {
        let below = || name.split_once('.').map(|(_, parent)| format!("*.{parent}"));
        self.names.iter().any(|known| known == name) || below().is_some_and(|star| self.names.contains(&star))
    }

    /// Days until the leaf ends, rounded down; negative when it has ended.
    #[must_use]
    pub fn days_left(&self, now: SystemTime) -> i64 {
        let since = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.expires.saturating_sub(i64::try_from(since).unwrap_or(i64::MAX)).div_euclid(24 * 3600)
    }
}

/// How near its end a certificate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ending {
    /// At most a fifth of its life is left.
    Fifth,
    /// At most a twentieth is.
    Twentieth,
}

impl Identity {
    /// How near its end the leaf is; `None`: not near. A certificate may live for six days or for years, so it is its own life that counts.
    #[must_use]
    pub fn ending(&self, now: SystemTime) -> Option<Ending> {
        let since = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let life = self.expires.saturating_sub(self.begins);
        let left = self.expires.saturating_sub(i64::try_from(since).unwrap_or(i64::MAX));
        match left {
            left if left <= life / 20 => Some(Ending::Twentieth),
            left if left <= life / 5 => Some(Ending::Fifth),
            _ => None,
        }
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
