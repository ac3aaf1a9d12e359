//! Why bytes are no set of keys, as far as one can see what they are instead.

use serde_json::Value;
use thiserror::Error;

/// The most bytes that a set is read from.
pub(super) const SIZE: usize = 256 * 1024;

/// Why bytes are no key set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeySetFault {
    /// They are more than a set is read from.
    #[error("has more than {} KiB", SIZE / 1024)]
    TooLarge,
    /// There is nothing but blanks.
    #[error("is empty")]
    Empty,
    /// They are keys or certificates in PEM.
    #[error("is a PEM file, and no set of keys in JSON")]
    Pem,
    /// They are a private key in PEM.
    #[error(
        "is a PEM file with a private key, which only whoever signs may have, and no set of public ones in JSON"
    )]
    PrivatePem,
    /// They are a page.
    #[error("is no JSON, and looks like a page of HTML")]
    Html,
    /// They are no JSON; and why.
    #[error("is no JSON: {0}")]
    NoJson(String),
    /// A field is there twice: at this JSON pointer.
    #[error("has `{0}` twice")]
    Twice(String),
    /// They are one key, and no set.
    #[error("is one key: a set has them in a list, `{{\"keys\": [{{…}}]}}`")]
    OneKey,
    /// They are what an issuer says of itself (OpenID Connect Discovery §4).
    #[error("has no keys: they are at the URL that its `jwks_uri` says")]
    Discovery,
    /// There is no list `keys`.
    #[error("has no list `keys`")]
    NoKeys,
    /// No key is of use; and why, for each.
    #[error("has no key for these algorithms{}", told(.0))]
    NoUsable(Vec<String>),
}

fn told(faults: &[String]) -> String {
    if faults.is_empty() { ": it is empty".to_owned() } else { format!(": {}", faults.join("; ")) }
}

impl KeySetFault {
    /// That of bytes that are no JSON for this reason.
    pub(super) fn of_text(bytes: &[u8], error: &serde_json::Error) -> KeySetFault {
        let text = bytes.trim_ascii_start();
        let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
        if text.is_empty() {
            KeySetFault::Empty
        } else if text.starts_with(b"-----BEGIN ") {
            if has(b"PRIVATE KEY-----") { KeySetFault::PrivatePem } else { KeySetFault::Pem }
        } else if text.starts_with(b"<") {
            KeySetFault::Html
        } else {
            KeySetFault::NoJson(error.to_string())
        }
    }

    /// That of JSON without a list `keys`.
    pub(super) fn of_json(value: &Value) -> KeySetFault {
        if value.get("kty").is_some() {
            KeySetFault::OneKey
        } else if value.get("jwks_uri").is_some() {
            KeySetFault::Discovery
        } else {
            KeySetFault::NoKeys
        }
    }
}
