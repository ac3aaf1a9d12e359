//! What backends are told of a token: some of its claims, each in a header line.

use std::borrow::Cow;

use serde_json::Value;

use super::claims::TokenClaims;

/// From here on a float stands for several whole numbers.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Header lines of claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldClaims {
    /// Names and values; none of them ends a line.
    pub lines: Vec<(String, String)>,
    /// How many were left out, since their value is none of a header.
    pub dropped: usize,
}

/// The lines for these claims, each with the name of its header. One that the token does not make has no line; one that is neither text
/// nor number nor truth, has control characters, or is too large a number to be told exactly, is left out.
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
        // Whole numbers of 64 bits are exact; beyond 2^53 another one would be told than the token has.
        Value::Number(number) if number.is_f64() && number.as_f64().is_none_or(|it| it.abs() >= EXACT) => {
            None
        }
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(truth) => Some(truth.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
