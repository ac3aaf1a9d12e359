//! Whether a token is what it says: its signature first, then what it claims.

use serde_json::{Map, Value};

use super::fault::{TokenFault, TokenFaultKind};
use super::token::Token;
use crate::config::model::jwt::{JwtAlgorithm, JwtRules, KeySet};

/// By how much a token may seem to have been issued in the future, beside the leeway, in seconds: it looks odd, and harms nobody.
const AHEAD: f64 = 60.0;

/// What a token says that is what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenClaims {
    fields: Map<String, Value>,
}

impl TokenClaims {
    /// Who its bearer is (`sub`); empty: it does not say that.
    #[must_use]
    pub fn user(&self) -> &str {
        self.fields.get("sub").and_then(Value::as_str).unwrap_or_default()
    }

    /// One claim.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }
}

/// What a token says, if it is signed by a key of one of these sets and all that `rules` say holds at `now`, in seconds since 1970. Without
/// a set no key is known yet.
///
/// # Errors
/// Why it lets nobody in. What it claims is not looked at before its signature is good.
pub fn verify(token: &[u8], rules: &JwtRules, keys: &[&KeySet], now: u64) -> Result<TokenClaims, TokenFault> {
    let token = Token::parse(token)?;
    let algorithm = algorithm(&token, rules)?;
    signature(&token, algorithm, keys)?;
    said(&token, rules, now)
}

const fn wrong_signature(what: &'static str) -> TokenFault {
    TokenFault::new(TokenFaultKind::Signature, what)
}

/// How it is signed.
///
/// # Errors
/// In a way that is not taken.
pub(super) fn algorithm(token: &Token<'_>, rules: &JwtRules) -> Result<JwtAlgorithm, TokenFault> {
    let algorithm = token.algorithm.filter(|algorithm| rules.algorithms.contains(algorithm));
    algorithm.ok_or(wrong_signature("is signed in a way that is not taken here"))
}

/// Whether one of these keys vouches for it. That depends on the token and the keys, in this order of sets, and on nothing else.
///
/// # Errors
/// None does.
pub(super) fn signature(
    token: &Token<'_>,
    algorithm: JwtAlgorithm,
    keys: &[&KeySet],
) -> Result<(), TokenFault> {
    const UNKNOWN: TokenFault = TokenFault::new(TokenFaultKind::Keys, "names a key that is not known");
    let candidates = keys.iter().flat_map(|keys| keys.candidates(algorithm, token.key.as_deref()));
    let mut candidates = candidates.take(KeySet::TRIED).peekable();
    if candidates.peek().is_none() {
        return Err(UNKNOWN);
    }
    if !candidates.any(|key| key.vouches(algorithm, token.signed, &token.signature)) {
        return Err(wrong_signature("has another signature"));
    }
    Ok(())
}

/// What a token says whose signature is good, if all holds at `now`.
///
/// # Errors
/// Something does not.
pub(super) fn said(token: &Token<'_>, rules: &JwtRules, now: u64) -> Result<TokenClaims, TokenFault> {
    let fields = token.claims()?;
    // Whole seconds below 2^53, for the next 285 million years.
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are far below 2^53")]
    hold(&fields, rules, now as f64)?;
    Ok(TokenClaims { fields })
}

fn hold(fields: &Map<String, Value>, rules: &JwtRules, now: f64) -> Result<(), TokenFault> {
    let fault = |what| TokenFault::new(TokenFaultKind::Claims, what);
    let leeway = rules.leeway.as_secs_f64();
    let time = |name: &str, what: &'static str| match fields.get(name) {
        None => Ok(None),
        // NumericDate (RFC 7519 §2): seconds, perhaps with a fraction.
        Some(value) => match value.as_f64() {
            Some(time) if (0.0..9e15).contains(&time) => Ok(Some(time)),
            _ => Err(fault(what)),
        },
    };
    let text = |name: &str, what: &'static str| match fields.get(name) {
        None => Ok(None),
        Some(value) => value.as_str().map(Some).ok_or(fault(what)),
    };
    let ends = time("exp", "ends at no time")?.ok_or(fault("has no end"))?;
    // RFC 7519 §4.1.4: not on or after it.
    if now >= ends + leeway {
        return Err(TokenFault::new(TokenFaultKind::Expired, "is over"));
    }
    if time("nbf", "begins at no time")?.is_some_and(|begins| now + leeway < begins) {
        return Err(fault("is not valid yet"));
    }
    if time("iat", "was issued at no time")?.is_some_and(|issued| issued > now + leeway + AHEAD) {
        return Err(fault("was issued in the future"));
    }
    let issuer = text("iss", "has an issuer that is no text")?;
    if rules.issuer.is_some() && rules.issuer.as_deref() != issuer {
        return Err(fault("is by another issuer"));
    }
    text("sub", "is about somebody who is no text")?;
    if !is_for(fields.get("aud"), &rules.audience).ok_or(fault("is for something that is no text"))? {
        return Err(fault("is for somebody else"));
    }
    Ok(())
}

/// Whether a token is for one of these. `None`: it can't be told for whom it is.
fn is_for(audience: Option<&Value>, own: &[String]) -> Option<bool> {
    let named = match audience {
        None => &[][..],
        Some(Value::Array(list)) => list,
        Some(one) => std::slice::from_ref(one),
    };
    let named: Vec<&str> = named.iter().map(Value::as_str).collect::<Option<_>>()?;
    Some(own.is_empty() || own.iter().any(|one| named.contains(&one.as_str())))
}
