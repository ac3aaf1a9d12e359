//! Any bytes as a token, and as a set of keys.

use std::time::Duration;

use evenkeel::access::jwt::{TOKEN_SIZE, Token, bearer, verify};
use evenkeel::config::model::jwt::{JwtAlgorithm, JwtRules, KeySet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Keys whose owners have signed nothing.
const KEYS: &str = r#"{"keys": [{"kty": "EC", "crv": "P-256", "kid": "1",
    "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}"#;

fn algorithms() -> Vec<JwtAlgorithm> {
    JwtAlgorithm::ALL.iter().map(|(_, algorithm)| *algorithm).collect()
}

/// Any bytes: as a token they let nobody in, and what is taken apart of one can be put together again; the same bytes as a header and as
/// a set of keys end in a verdict too.
pub fn jwt(bytes: &[u8]) {
    let algorithms = algorithms();
    if let Ok(set) = KeySet::parse(bytes, &algorithms) {
        let found = algorithms.iter().map(|algorithm| set.candidates(*algorithm, None).count()).max();
        assert!(found.is_some_and(|found| (1..=KeySet::TRIED).contains(&found)));
    }
    let rules = JwtRules {
        algorithms,
        issuer: None,
        audience: Vec::new(),
        leeway: Duration::ZERO,
        claims_to_headers: Vec::new(),
    };
    let keys = KeySet::parse(KEYS.as_bytes(), &rules.algorithms).expect("a set of keys");
    let with_header = [&*URL_SAFE_NO_PAD.encode(bytes), "e30", "AAAA"].join(".");
    for token in [bytes, with_header.as_bytes()] {
        assert!(verify(token, &rules, &[&keys], 1_800_000_000).is_err());
        if let Ok(parsed) = Token::parse(token) {
            let signature = URL_SAFE_NO_PAD.encode(&parsed.signature);
            assert_eq!([parsed.signed, signature.as_bytes()].join(&b'.'), token);
            assert!(token.len() <= TOKEN_SIZE);
        }
    }
    if let Ok(token) = bearer(std::iter::once(bytes)) {
        assert!(bytes.ends_with(token) && !token.is_empty());
    }
}
