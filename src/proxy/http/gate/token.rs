//! The token of a request.

use crate::access::jwt::{TokenClaims, TokenFaultKind, VerifiedTokens, bearer};
use crate::config::model::jwt::{JwtRules, KeySet};
use crate::message::{Head, HeaderField};
use crate::snapshot::KnownKeys;
use crate::tick::Tick;

use super::Denial;

/// What the token of a request says, if it lets its bearer in. `own`: keys of a file, `known`: such as are fetched; `verified`: tokens that
/// this worker has verified lately. `now` and `seconds` are the same point in time, the second one in seconds since 1970. A token that names
/// a key which nobody knows is refused at once: no request waits until keys are fetched, but they are soon after it.
///
/// # Errors
/// It does not let it in, or there is none.
pub(super) fn token(
    head: &Head,
    rules: &JwtRules,
    (own, known): (Option<&KeySet>, Option<&KnownKeys>),
    verified: &VerifiedTokens,
    (now, seconds): (Tick, u64),
) -> Result<TokenClaims, Denial> {
    let fetched = known.and_then(|known| known.at(now));
    let keys: Vec<&KeySet> = own.into_iter().chain(fetched.as_deref()).collect();
    let shown = bearer(head.values(HeaderField::Authorization));
    let claims = shown.and_then(|token| verified.verify(token, rules, &keys, seconds));
    claims.map_err(|fault| {
        if let (TokenFaultKind::Keys, Some(known)) = (fault.kind, known) {
            known.miss();
        }
        Denial::by_token(&fault)
    })
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::config::model::jwt::JwtAlgorithm;

    const LASTING: &str = include_str!("../../../../fixtures/jwt/lasting.json");
    const KEYS: &[u8] = include_bytes!("../../../../fixtures/jwt/keys.json");

    #[test]
    fn each_request_is_let_in_or_told_why_not() {
        let tokens: serde_json::Value = serde_json::from_str(LASTING).expect("JSON");
        let rules = JwtRules {
            algorithms: vec![JwtAlgorithm::Es256],
            issuer: Some("https://id.example".to_owned()),
            audience: vec!["shop".to_owned()],
            leeway: Duration::ZERO,
            claims_to_headers: Vec::new(),
        };
        let (known, verified) = (KnownKeys::default(), VerifiedTokens::new(RandomState::new()));
        let outcome = |known: &KnownKeys, name: &str| {
            let mut head = Head::request("GET", "/", "h");
            if let Some(token) = tokens[name].as_str() {
                head.push(b"authorization", format!("Bearer {token}").as_bytes());
            }
            match token(&head, &rules, (None, Some(known)), &verified, (Tick(1), 1_800_000_000)) {
                Ok(claims) => claims.user().to_owned(),
                Err(denial) => format!("{} {:?}", denial.cause.token(), denial.status),
            }
        };
        assert_eq!(outcome(&known, "good"), "token_keys Some(401)", "no keys are known yet");
        known.put(Arc::new(KeySet::parse(KEYS, &rules.algorithms).expect("keys")), Tick::NEVER);
        for (name, expected) in [
            ("good", "alice"),
            ("good", "alice"),
            ("next", "token_keys Some(401)"),
            ("expired", "token_expired Some(401)"),
            ("elsewhere", "token_claims Some(401)"),
            ("none at all", "token_missing Some(401)"),
        ] {
            assert_eq!(outcome(&known, name), expected, "{name}");
        }
    }

    #[tokio::test]
    async fn whoever_names_an_unknown_key_has_it_looked_for() {
        let known = KnownKeys::default();
        let mut head = Head::request("GET", "/", "h");
        let tokens: serde_json::Value = serde_json::from_str(LASTING).expect("JSON");
        let next = tokens["next"].as_str().expect("a token");
        head.push(b"authorization", format!("Bearer {next}").as_bytes());
        let rules = JwtRules {
            algorithms: vec![JwtAlgorithm::Es256],
            issuer: None,
            audience: Vec::new(),
            leeway: Duration::ZERO,
            claims_to_headers: Vec::new(),
        };
        let verified = VerifiedTokens::new(RandomState::new());
        assert!(token(&head, &rules, (None, Some(&known)), &verified, (Tick(1), 1_800_000_000)).is_err());
        known.missed().await;
    }
}
