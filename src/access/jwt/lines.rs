//! What backends are told of a token: some of its claims, each in a header line.

use std::borrow::Cow;

use serde_json::Value;

use super::claims::TokenClaims;

/// Header lines of claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldClaims {
    /// Names and values; none of them ends a line.
    pub lines: Vec<(String, String)>,
    /// How many were left out, since their value is none of a header.
    pub dropped: usize,
}

/// The lines for these claims, each with the name of its header. One that the token does not make has no line; one that is neither text
/// nor number nor truth, or has control characters, is left out.
#[must_use]
pub fn told_claims(claims: &TokenClaims, names: &[(String, String)]) -> ToldClaims {
    let mut told = ToldClaims::default();
    for (claim, header) in names {
        let Some(value) = claims.get(claim) else { continue };
        match shown(value) {
            Some(value) => told.lines.push((header.clone(), value.into_owned())),
            None => told.dropped += 1,
        }
    }
    told
}

fn shown(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => (!text.chars().any(char::is_control)).then_some(Cow::Borrowed(text)),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(truth) => Some(truth.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
