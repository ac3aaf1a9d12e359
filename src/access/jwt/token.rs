//! Tokens in their compact form (RFC 7515 §7.1), taken apart.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::fault::{TokenFault, TokenFaultKind};
use crate::config::model::distinct_json::distinct;
use crate::config::model::jwt::JwtAlgorithm;

/// The most bytes of a token.
pub const TOKEN_SIZE: usize = 8 * 1024;

/// The token among the values of a request's `Authorization` lines (RFC 6750 §2.1).
///
/// # Errors
/// There is none, or there is more than one line.
pub fn bearer<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> Result<&'a [u8], TokenFault> {
    const MISSING: TokenFault = TokenFault::new(TokenFaultKind::Missing, "is not there");
    let value = values.next().ok_or(MISSING)?;
    if values.next().is_some() {
        return Err(malformed("stands in one of several lines"));
    }
    let end = memchr::memchr(b' ', value).unwrap_or(value.len());
    let (scheme, token) = value.split_at(end);
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Err(MISSING);
    }
    let blanks = token.iter().take_while(|&&byte| byte == b' ').count();
    match &token[blanks..] {
        [] => Err(MISSING),
        token => Ok(token),
    }
}

const fn malformed(what: &'static str) -> TokenFault {
    TokenFault::new(TokenFaultKind::Malformed, what)
}

/// A token that nobody has vouched for yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// How it says that it is signed; `None`: in a way that is not supported.
    pub algorithm: Option<JwtAlgorithm>,
    /// Its `kid`: a word to find a key by and nothing else.
    pub key: Option<String>,
    /// What the signature is about.
    pub signed: &'a [u8],
    /// The signature.
    pub signature: Vec<u8>,
    /// Its claims, still encoded.
    claims: &'a [u8],
}

impl<'a> Token<'a> {
    /// Takes one apart. Its claims are not looked at.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(bytes: &'a [u8]) -> Result<Token<'a>, TokenFault> {
        if bytes.len() > TOKEN_SIZE {
            return Err(malformed("is too long"));
        }
        let mut dots = memchr::memchr_iter(b'.', bytes);
        let (Some(first), Some(second), None) = (dots.next(), dots.next(), dots.next()) else {
            return Err(malformed("has not three parts"));
        };
        let header = object(&bytes[..first])?;
        if header.contains_key("crit") {
            return Err(malformed("has critical extensions"));
        }
        let Some(algorithm) = header.get("alg").and_then(Value::as_str) else {
            return Err(malformed("names no algorithm"));
        };
        // RFC 8725 §3.11: what was made for another purpose is no token of access.
        if header.get("typ").is_some_and(|kind| !kind.as_str().is_some_and(is_token)) {
            return Err(malformed("is of another type"));
        }
        let key = match header.get("kid") {
            None => None,
            Some(id) => Some(id.as_str().ok_or(malformed("names a key by no text"))?.to_owned()),
        };
        let signature = URL_SAFE_NO_PAD
            .decode(&bytes[second + 1..])
            .map_err(|_| malformed("is not encoded in base64url"))?;
        Ok(Token {
            algorithm: JwtAlgorithm::named(algorithm),
            key,
            signed: &bytes[..second],
            signature,
            claims: &bytes[first + 1..second],
        })
    }

    /// Its claims.
    ///
    /// # Errors
    /// They are no object, or one of them is there twice.
    pub(super) fn claims(&self) -> Result<Map<String, Value>, TokenFault> {
        object(self.claims)
    }
}

/// A part that is an object; no field of it, at any depth, is there twice.
fn object(part: &[u8]) -> Result<Map<String, Value>, TokenFault> {
    let json = URL_SAFE_NO_PAD.decode(part).map_err(|_| malformed("is not encoded in base64url"))?;
    match distinct(&json) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) | Err(_) => Err(malformed("has a part that is no object, or has a field twice")),
    }
}

/// Whether a `typ` is that of a token: `JWT`, `at+jwt` (RFC 9068), also with `application/`.
fn is_token(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let kind = kind.strip_prefix("application/").unwrap_or(&kind);
    matches!(kind, "jwt" | "at+jwt")
}
