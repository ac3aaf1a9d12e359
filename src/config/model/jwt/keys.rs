//! Sets of public keys (JWK, RFC 7517), as far as tokens are verified by them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::signature::{
    self, ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, ParsedPublicKey, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use thiserror::Error;

use super::JwtAlgorithm;
use crate::config::model::distinct_json::{Indistinct, distinct};

/// The number of the set that was read last.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Keys that vouch for tokens; at least one. They never change: others are another set.
#[derive(Clone, Debug)]
pub struct KeySet {
    /// Never that of a set that was read at another time, also of the same bytes, and never 0.
    number: u64,
    keys: Vec<JwtKey>,
}

/// Two are the same that have the same keys, whenever they were read.
impl PartialEq for KeySet {
    fn eq(&self, other: &KeySet) -> bool {
        self.keys == other.keys
    }
}

impl Eq for KeySet {}

/// One public key.
#[derive(Clone, PartialEq, Eq)]
pub struct JwtKey {
    /// Its `kid`: a word to find it by and nothing else.
    pub id: Option<String>,
    /// Its `alg`: the only algorithm that it may be used with; `None`: any that its kind allows.
    only: Option<JwtAlgorithm>,
    kind: KeyKind,
    /// The point of a curve, or the modulus.
    public: Vec<u8>,
}

/// What kind of key it is.
#[derive(Clone, PartialEq, Eq)]
enum KeyKind {
    P256,
    P384,
    Ed25519,
    Rsa { exponent: Vec<u8> },
}

/// Why bytes are no key set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeySetFault {
    /// They are more than [`KeySet::SIZE`].
    #[error("has more than {} KiB", KeySet::SIZE / 1024)]
    TooLarge,
    /// They are no JSON; and why.
    #[error("is no JSON: {0}")]
    NoJson(String),
    /// A field is there twice: at this JSON pointer.
    #[error("has `{0}` twice")]
    Twice(String),
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

impl KeySet {
    /// The most bytes that one is read from.
    pub const SIZE: usize = 256 * 1024;
    /// Of so many keys at most the signature of one token is tried.
    pub const TRIED: usize = 4;

    /// The keys of a JWK set that fit one of these algorithms. Others are left out, as RFC 7517 §5 has it.
    ///
    /// # Errors
    /// It is none, or no key is of use.
    pub fn parse(bytes: &[u8], algorithms: &[JwtAlgorithm]) -> Result<KeySet, KeySetFault> {
        if bytes.len() > KeySet::SIZE {
            return Err(KeySetFault::TooLarge);
        }
        let set = distinct(bytes).map_err(|fault| match fault {
            Indistinct::NoJson(error) => KeySetFault::NoJson(error.to_string()),
            Indistinct::Twice(place) => KeySetFault::Twice(place),
        })?;
        let Some(list) = set.get("keys").and_then(Value::as_array) else { return Err(KeySetFault::NoKeys) };
        let (mut keys, mut faults) = (Vec::new(), Vec::new());
        for (place, one) in list.iter().enumerate() {
            match one.as_object().ok_or("is no object").and_then(key) {
                Ok(key) if algorithms.iter().any(|algorithm| key.allows(*algorithm)) => keys.push(key),
                Ok(_) => faults.push(format!("/keys/{place} fits none of them")),
                Err(fault) => faults.push(format!("/keys/{place} {fault}")),
            }
        }
        if keys.is_empty() {
            return Err(KeySetFault::NoUsable(faults));
        }
        Ok(KeySet { number: LAST.fetch_add(1, Ordering::Relaxed) + 1, keys })
    }

    /// What tells it from every set of this process that was read at another time; never 0.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How many they are.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// The keys that a token of this algorithm may be signed with. `id`: its `kid`; without one all keys may be meant.
    pub fn candidates(&self, algorithm: JwtAlgorithm, id: Option<&str>) -> impl Iterator<Item = &JwtKey> {
        let fits = move |key: &&JwtKey| key.allows(algorithm) && (id.is_none() || key.id.as_deref() == id);
        self.keys.iter().filter(fits).take(KeySet::TRIED)
    }
}

impl JwtKey {
    /// Whether its kind, and its own `alg`, are for this algorithm.
    #[must_use]
    pub fn allows(&self, algorithm: JwtAlgorithm) -> bool {
        use JwtAlgorithm as Alg;
        let is_kind = match self.kind {
            KeyKind::P256 => algorithm == Alg::Es256,
            KeyKind::P384 => algorithm == Alg::Es384,
            KeyKind::Ed25519 => algorithm == Alg::EdDsa,
            KeyKind::Rsa { .. } => !matches!(algorithm, Alg::Es256 | Alg::Es384 | Alg::EdDsa),
        };
        is_kind && self.only.is_none_or(|only| only == algorithm)
    }

    /// Whether the owner of this key has signed `message` so.
    #[must_use]
    pub fn vouches(&self, algorithm: JwtAlgorithm, message: &[u8], signed: &[u8]) -> bool {
        use JwtAlgorithm as Alg;
        if !self.allows(algorithm) {
            return false;
        }
        let rsa = match algorithm {
            Alg::Es256 => return verifies(&ECDSA_P256_SHA256_FIXED, &self.public, message, signed),
            Alg::Es384 => return verifies(&ECDSA_P384_SHA384_FIXED, &self.public, message, signed),
            Alg::EdDsa => return verifies(&ED25519, &self.public, message, signed),
            Alg::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Alg::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            Alg::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            Alg::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
            Alg::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
            Alg::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
        };
        let KeyKind::Rsa { exponent } = &self.kind else { return false };
        RsaPublicKeyComponents { n: &self.public, e: exponent }.verify(rsa, message, signed).is_ok()
    }
}

fn verifies(
    algorithm: &'static dyn signature::VerificationAlgorithm,
    public: &[u8],
    message: &[u8],
    signed: &[u8],
) -> bool {
    UnparsedPublicKey::new(algorithm, public).verify(message, signed).is_ok()
}

impl fmt::Debug for JwtKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            KeyKind::P256 => "P-256",
            KeyKind::P384 => "P-384",
            KeyKind::Ed25519 => "Ed25519",
            KeyKind::Rsa { .. } => "RSA",
        };
        f.debug_struct("JwtKey").field("id", &self.id).field("kind", &kind).finish_non_exhaustive()
    }
}

/// One key of a set.
///
/// # Errors
/// Why it is of no use, as a predicate.
fn key(jwk: &Map<String, Value>) -> Result<JwtKey, &'static str> {
    let text = |name: &str| jwk.get(name).and_then(Value::as_str);
    if jwk.contains_key("d") || jwk.contains_key("k") {
        return Err("is secret: only public keys belong here");
    }
    if jwk.get("use").is_some_and(|purpose| purpose != "sig") {
        return Err("is not for signatures");
    }
    let verifies = |uses: &Value| uses.as_array().is_some_and(|uses| uses.iter().any(|one| one == "verify"));
    if jwk.get("key_ops").is_some_and(|uses| !verifies(uses)) {
        return Err("is not there to verify");
    }
    let only = match jwk.get("alg") {
        None => None,
        Some(name) => {
            Some(name.as_str().and_then(JwtAlgorithm::named).ok_or("has an `alg` that is not supported")?)
        }
    };
    let bytes = |name: &'static str| -> Result<Vec<u8>, &'static str> {
        URL_SAFE_NO_PAD.decode(text(name).unwrap_or_default()).map_err(|_| "is not encoded in base64url")
    };
    let point = |length: usize| -> Result<Vec<u8>, &'static str> {
        let (x, y) = (bytes("x")?, bytes("y")?);
        // RFC 7518 §6.2.1.2: as long as the field, zeros in front included.
        if x.len() != length || y.len() != length {
            return Err("has a coordinate of another length");
        }
        Ok([&[4], &*x, &*y].concat())
    };
    let (kind, public) = match (text("kty"), text("crv")) {
        (Some("EC"), Some("P-256")) => (KeyKind::P256, point(32)?),
        (Some("EC"), Some("P-384")) => (KeyKind::P384, point(48)?),
        (Some("OKP"), Some("Ed25519")) => (KeyKind::Ed25519, bytes("x")?),
        (Some("RSA"), _) => {
            let (modulus, exponent) = (without_zeros(&bytes("n")?), without_zeros(&bytes("e")?));
            if !(256..=1024).contains(&modulus.len()) {
                return Err("has fewer than 2048 bits, or more than 8192");
            }
            // Even ones are none, and 1 signs nothing.
            if exponent.len() > 4 || exponent.last().is_none_or(|last| last % 2 == 0) || exponent == [1] {
                return Err("has no exponent that is safe");
            }
            (KeyKind::Rsa { exponent }, modulus)
        }
        _ => return Err("is of a kind that is not supported"),
    };
    let is_one = match kind {
        KeyKind::P256 => ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &public).is_ok(),
        KeyKind::P384 => ParsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, &public).is_ok(),
        KeyKind::Ed25519 => public.len() == 32 && ParsedPublicKey::new(&ED25519, &public).is_ok(),
        KeyKind::Rsa { .. } => true,
    };
    if !is_one {
        return Err("is no point of its curve");
    }
    let id = match jwk.get("kid") {
        None => None,
        Some(id) => Some(id.as_str().ok_or("has a `kid` that is no text")?.to_owned()),
    };
    Ok(JwtKey { id, only, kind, public })
}

/// A number without zeros in front, which some issuers write.
fn without_zeros(number: &[u8]) -> Vec<u8> {
    number[number.iter().take_while(|&&byte| byte == 0).count()..].to_vec()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use serde_json::json;

    use super::*;

    const X: &str = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4";
    const Y: &str = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM";
    /// All algorithms.
    fn all() -> Vec<JwtAlgorithm> {
        JwtAlgorithm::ALL.iter().map(|(_, algorithm)| *algorithm).collect()
    }

    /// The key of RFC 7517 Appendix A.1, with changes.
    fn with(change: &[(&str, Value)]) -> Value {
        let mut key = json!({"kty": "EC", "crv": "P-256", "x": X, "y": Y, "kid": "1"});
        change.iter().for_each(|(name, value)| key[*name] = value.clone());
        key
    }

    fn parsed(keys: Value) -> Result<KeySet, KeySetFault> {
        KeySet::parse(json!({ "keys": keys }).to_string().as_bytes(), &all())
    }

    #[test]
    fn a_key_is_for_the_algorithm_of_its_kind_and_no_other() {
        let rsa = json!({"kty": "RSA", "n": URL_SAFE_NO_PAD.encode([255; 257]), "e": "AQAB"});
        let edwards =
            json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
        for (key, allowed) in [
            (with(&[]), &["ES256"][..]),
            (with(&[("alg", "ES256".into())]), &["ES256"]),
            (with(&[("use", "sig".into()), ("key_ops", json!(["verify"]))]), &["ES256"]),
            (edwards, &["EdDSA"]),
            (rsa.clone(), &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]),
        ] {
            let set = parsed(json!([key])).unwrap();
            let names = JwtAlgorithm::ALL.iter().filter(|(_, one)| set.candidates(*one, None).count() == 1);
            assert_eq!(names.map(|(name, _)| *name).collect::<Vec<_>>(), allowed, "{key}");
        }
        let only = parsed(json!([{"kty": "RSA", "n": rsa["n"], "e": "AQAB", "alg": "PS256"}])).unwrap();
        assert_eq!(only.candidates(JwtAlgorithm::Rs256, None).count(), 0);
        assert_eq!(only.candidates(JwtAlgorithm::Ps256, None).count(), 1);
    }

    #[test]
    fn what_is_of_no_use_is_left_out_and_says_why() {
        let short = URL_SAFE_NO_PAD.encode([255; 128]);
        for (key, why) in [
            (json!(1), "is no object"),
            (json!({}), "a kind that is not supported"),
            (json!({"kty": "oct", "k": "c2VjcmV0"}), "is secret"),
            (with(&[("d", "AA".into())]), "is secret"),
            (with(&[("use", "enc".into())]), "is not for signatures"),
            (with(&[("key_ops", json!(["sign"]))]), "is not there to verify"),
            (with(&[("alg", "HS256".into())]), "an `alg` that is not supported"),
            (with(&[("alg", "ES384".into())]), "fits none of them"),
            (with(&[("x", "AA".into())]), "a coordinate of another length"),
            (with(&[("x", Y.into())]), "is no point of its curve"),
            (with(&[("x", format!("{X}=").into())]), "is not encoded in base64url"),
            (with(&[("kid", json!(7))]), "a `kid` that is no text"),
            (with(&[("crv", "secp256k1".into())]), "a kind that is not supported"),
            (json!({"kty": "RSA", "n": short, "e": "AQAB"}), "fewer than 2048 bits"),
            (json!({"kty": "RSA", "n": URL_SAFE_NO_PAD.encode([255; 256]), "e": "AQ"}), "no exponent"),
        ] {
            let alone = parsed(json!([key])).unwrap_err().to_string();
            assert!(alone.contains(why), "{key}: {alone}");
            let beside = parsed(json!([key, with(&[])])).unwrap();
            assert_eq!(beside.keys.len(), 1, "{key}");
        }
    }

    #[test]
    fn sets_of_the_same_keys_are_equal_and_have_numbers_of_their_own() {
        let (one, other) = (parsed(json!([with(&[])])).unwrap(), parsed(json!([with(&[])])).unwrap());
        assert_eq!(one, other);
        assert!(one.number() != other.number() && one.number() > 0 && other.number() > 0);
        assert_eq!(one.clone().number(), one.number());
        assert_ne!(one, parsed(json!([with(&[("kid", "2".into())])])).unwrap());
    }

    #[test]
    fn what_is_no_set_of_keys_is_refused_whole() {
        for (text, why) in [
            ("", "is no JSON"),
            ("[]", "has no list `keys`"),
            ("{\"keys\": {}}", "has no list `keys`"),
            ("{\"keys\": []}", "it is empty"),
            ("{\"keys\": [], \"keys\": []}", "has `/keys` twice"),
            ("{\"keys\": [{\"kid\": \"a\", \"kid\": \"b\"}]}", "has `/keys/0/kid` twice"),
        ] {
            let fault = KeySet::parse(text.as_bytes(), &all()).unwrap_err().to_string();
            assert!(fault.contains(why), "{text}: {fault}");
        }
        let long = " ".repeat(KeySet::SIZE + 1);
        assert_eq!(KeySet::parse(long.as_bytes(), &all()), Err(KeySetFault::TooLarge));
    }
}
