//! Signed tokens (JWT, RFC 7519) by which clients show who they are: what must hold for one, and the keys that vouch for it.

mod fault;
mod keys;

use std::sync::Arc;
use std::time::Duration;

use super::HttpUrl;
use super::tls::Authorities;

pub use fault::KeySetFault;
pub use keys::{JwtKey, KeySet};

/// How a token is signed (RFC 7518 §3.1, RFC 8037 §3.1). Only such that need a public key to verify: what verifies can't sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JwtAlgorithm {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// ECDSA with P-384 and SHA-384.
    Es384,
    /// RSA PKCS #1 v1.5 with SHA-256.
    Rs256,
    /// The same with SHA-384.
    Rs384,
    /// The same with SHA-512.
    Rs512,
    /// RSA PSS with SHA-256.
    Ps256,
    /// The same with SHA-384.
    Ps384,
    /// The same with SHA-512.
    Ps512,
    /// Ed25519.
    EdDsa,
}

impl JwtAlgorithm {
    /// All with the names that they have in a config file and in a token.
    pub const ALL: &'static [(&'static str, JwtAlgorithm)] = &[
        ("ES256", JwtAlgorithm::Es256),
        ("ES384", JwtAlgorithm::Es384),
        ("RS256", JwtAlgorithm::Rs256),
        ("RS384", JwtAlgorithm::Rs384),
        ("RS512", JwtAlgorithm::Rs512),
        ("PS256", JwtAlgorithm::Ps256),
        ("PS384", JwtAlgorithm::Ps384),
        ("PS512", JwtAlgorithm::Ps512),
        ("EdDSA", JwtAlgorithm::EdDsa),
    ];

    /// The one of this name, byte for byte as RFC 7515 §4.1.1 wants it.
    #[must_use]
    pub fn named(name: &str) -> Option<JwtAlgorithm> {
        JwtAlgorithm::ALL.iter().find(|(known, _)| *known == name).map(|(_, algorithm)| *algorithm)
    }
}

/// Tokens by which clients show who they are. There are keys of a file, of a URL, or of both.
#[derive(Clone, Debug, PartialEq)]
pub struct JwtAuth {
    /// What must hold for one.
    pub rules: JwtRules,
    /// Keys that were read of a file.
    pub keys: Option<Arc<KeySet>>,
    /// Where more of them are fetched.
    pub keys_url: Option<KeysUrl>,
}

/// Where keys are fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysUrl {
    /// The URL; its path and user are shown by nothing.
    pub url: HttpUrl,
    /// Who may have issued the certificate of its host; `None`: whom the system trusts.
    pub authorities: Option<Authorities>,
}

/// What must hold for a token beside its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtRules {
    /// How it may be signed, at least one.
    pub algorithms: Vec<JwtAlgorithm>,
    /// Who has issued it, byte for byte; `None`: anybody whose key is known.
    pub issuer: Option<String>,
    /// It is for one of these; none: for whomever.
    pub audience: Vec<String>,
    /// By how much clocks may differ, 0 to 5 min. Default 0.
    pub leeway: Duration,
    /// Claims that backends are told, each with the name of its header.
    pub claims_to_headers: Vec<(String, String)>,
}
