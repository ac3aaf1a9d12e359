//! Tokens: where their keys are, and what must hold for one.

use std::time::Duration;

use super::every_key::Check;
use super::listeners::{front, of};
use super::*;
use crate::config::model::AuthKind;
use crate::config::model::jwt::{JwtAlgorithm, JwtAuth};

/// Where the keys of all tests are.
pub(super) fn keys() -> String {
    format!("{}/fixtures/jwt/keys.json", env!("CARGO_MANIFEST_DIR"))
}

/// A listener whose routes all have this rule.
fn tokens(says: &str) -> String {
    format!("auth: {{tokens: {{jwt: {{{says}}}}}}}\n{}", front("auth: tokens"))
}

/// The same with keys of a file, and for somebody.
fn by_file(more: &str) -> String {
    tokens(&format!("jwks_file: {}, audience: shop{more}", keys()))
}

fn jwt(config: &Config) -> Option<&JwtAuth> {
    match &of(config).routes[0].auth.as_deref()?.kind {
        AuthKind::Jwt(jwt) => Some(jwt),
        AuthKind::Basic(_) | AuthKind::Forward(_) => None,
    }
}

/// Keys of `jwt`, each with a text in which it stands and what it changes.
pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    vec![
        ("auth.<name>.jwt", by_file(""), |c| {
            jwt(c).is_some_and(|jwt| {
                jwt.rules.leeway == Duration::ZERO
                    && jwt.rules.algorithms == [JwtAlgorithm::Es256, JwtAlgorithm::Rs256, JwtAlgorithm::EdDsa]
            })
        }),
        ("auth.<name>.jwt.jwks_file", by_file(""), |c| {
            jwt(c).is_some_and(|jwt| jwt.keys.as_ref().is_some_and(|keys| keys.len() == 3))
        }),
        ("auth.<name>.jwt.jwks_url", tokens("jwks_url: 'https://id.example/jwks'"), |c| {
            jwt(c).and_then(|jwt| jwt.keys_url.as_ref()).is_some_and(|from| {
                from.authorities.is_none() && &*from.url.path == "/jwks" && from.url.port == 443
            })
        }),
        (
            "auth.<name>.jwt.ca_file",
            tokens(&format!(
                "jwks_url: 'https://id.example', ca_file: {}",
                certificates::Certs::shared().path("ca.pem")
            )),
            |c| jwt(c).and_then(|jwt| jwt.keys_url.as_ref()).is_some_and(|from| from.authorities.is_some()),
        ),
        ("auth.<name>.jwt.issuer", by_file(", issuer: 'https://id.example'"), |c| {
            jwt(c).is_some_and(|jwt| jwt.rules.issuer.as_deref() == Some("https://id.example"))
        }),
        ("auth.<name>.jwt.audience", by_file("").replace("shop", "[shop, 7]"), |c| {
            jwt(c).is_some_and(|jwt| jwt.rules.audience == ["shop", "7"])
        }),
        ("auth.<name>.jwt.algorithms", by_file(", algorithms: [ES384, eddsa]"), |c| {
            jwt(c).is_some_and(|jwt| jwt.rules.algorithms == [JwtAlgorithm::Es384, JwtAlgorithm::EdDsa])
        }),
        (
            "auth.<name>.jwt.claims_to_headers",
            by_file(", claims_to_headers: {sub: X-User, 'a.b/c': X-C}"),
            |c| {
                let own = |one: &str, other: &str| (one.to_owned(), other.to_owned());
                jwt(c).is_some_and(|jwt| {
                    jwt.rules.claims_to_headers == [own("sub", "X-User"), own("a.b/c", "X-C")]
                }) && *of(c).told == ["X-C", "X-User"]
            },
        ),
        ("auth.<name>.jwt.leeway", by_file(", leeway: 30s"), |c| {
            jwt(c).is_some_and(|jwt| jwt.rules.leeway == Duration::from_secs(30))
        }),
    ]
}

#[test]
fn what_is_wrong_is_told_with_what_would_be_right() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        tokens(&format!("jwks_file: {}", path.display()))
    };
    for (text, told) in [
        (tokens("issuer: a"), "`jwt` has no keys: nothing says who signs the tokens"),
        (tokens("jwks_fil: a"), "did you mean `jwks_file`?"),
        (tokens("jwks_file: /no/such"), "which does not exist"),
        (tokens("jwks_file: ''"), "`jwks_file` is empty"),
        (tokens("jwks: a"), "did you mean `jwks_file`?"),
        (by_file(", aud: a"), "did you mean `audience`?"),
        (by_file(", iss: a"), "did you mean `issuer`?"),
        (by_file(", alg: ES256"), "did you mean `algorithms`?"),
        (by_file(", claims: {sub: X-User}"), "did you mean `claims_to_headers`?"),
        (by_file(", clock_skew: 5s"), "did you mean `leeway`?"),
        (tokens("jwks_file: 'https://id.example/jwks'"), "keys behind a URL are fetched by `jwks_url`"),
        (file("f", "-----BEGIN PRIVATE KEY-----\n"), "which is a PEM file with a private key"),
        (file("g", ""), "which is empty"),
        (file("h", "<html>"), "looks like a page of HTML"),
        (by_file(", algorithms: Ed25519"), "write `EdDSA`"),
        (by_file(", algorithms: 'ES256, RS256'"), "several are a list"),
        (file("a", "no"), "which is no JSON"),
        (file("b", "{}"), "which has no list `keys`"),
        (file("c", r#"{"keys": []}"#), "which has no key for these algorithms: it is empty"),
        (file("d", r#"{"keys": [{"kty": "oct", "k": "AAAA"}]}"#), "only public keys belong here"),
        (file("e", r#"{"keys": [], "keys": []}"#), "has `/keys` twice"),
        (tokens("jwks_url: keys.json"), "`jwks_url` has no scheme"),
        (tokens("jwks_url: 'ftp://a'"), "a scheme other than `https` and `http`"),
        (
            tokens("jwks_url: 'http://127.0.0.1/', ca_file: ca.pem"),
            "`ca_file` is `./ca.pem`, which does not exist",
        ),
        (by_file(", algorithms: HS256"), "a pair of keys, a private one to sign and a public one to verify"),
        (by_file(", algorithms: [none]"), "a token without a signature is whoever wrote it"),
        (by_file(", algorithms: []"), "`algorithms` is an empty list"),
        (by_file(", algorithms: [ES256, ES256]"), "is `ES256`, which is there already"),
        (by_file(", algorithms: RS257"), "is `RS257`, which does not exist"),
        (by_file(", algorithms: PS512").replace("keys.json", "next_keys.json"), "/keys/0 fits none of them"),
        (by_file(", issuer: ''"), "`issuer` is empty"),
        (by_file("").replace("shop", "[shop, shop]"), "is `shop`, which is there already"),
        (by_file("").replace("shop", "{a: b}"), "an entry of `audience` is a mapping"),
        (by_file(", leeway: 6m"), "`leeway`"),
        (by_file(", claims_to_headers: [sub]"), "a mapping from claims to headers"),
        (by_file(", claims_to_headers: {}"), "a mapping from claims to headers"),
        (by_file(", claims_to_headers: {sub: Host}"), "which requests have for other reasons"),
        (by_file(", claims_to_headers: {sub: X-A, jti: x-a}"), "which another claim has already"),
        (by_file(", claims_to_headers: {sub: X-A, jti: X_A}"), "which another claim has already"),
        (by_file(", claims_to_headers: {sub: [X-A]}"), "the header of the claim `sub` is a list"),
        (
            format!(
                "auth: {{a: {{jwt: {{jwks_file: {}}}, forward: {{target: web}}}}}}\n{}",
                keys(),
                front("protocol: http")
            ),
            "`jwt` and `forward` exclude each other",
        ),
        (format!("jwt: {{jwks_file: a}}\n{}", front("protocol: http")), "`jwt` "),
    ] {
        let problems = load_with(&text, &Flags::default()).unwrap_err().to_string();
        assert!(problems.contains(told), "{text}: {problems}");
    }
    let problems = load_with(&tokens("jwks: a"), &Flags::default()).unwrap_err().to_string();
    assert!(!problems.contains("has no keys"), "it is told once: {problems}");
}

#[test]
fn authorities_that_vouch_for_nothing_are_refused() {
    let ca = certificates::Certs::shared().path("ca.pem");
    for (says, told) in [
        (format!("jwks_file: {}, ca_file: {ca}", keys()), "`ca_file` has no effect without `jwks_url`"),
        (
            format!("jwks_url: 'http://127.0.0.1/', ca_file: {ca}"),
            "`ca_file` has no effect, because `jwks_url` is no https",
        ),
    ] {
        let problems = load_with(&tokens(&says), &Flags::default()).unwrap_err().to_string();
        assert!(problems.contains(told), "{problems}");
    }
}

#[test]
fn keys_that_anybody_may_replace_and_tokens_for_anybody_are_warned_of() {
    let warnings = |text: &str| load_with(text, &Flags::default()).unwrap().warnings.join("\n");
    let plain = warnings(&tokens("jwks_url: 'http://id.example/secret'"));
    assert!(plain.contains("come over plain http") && plain.contains("without `audience`"), "{plain}");
    assert!(!plain.contains("secret"), "{plain}");
    for quiet in ["http://127.0.0.1:1/", "http://localhost/", "https://id.example/"] {
        let told = warnings(&tokens(&format!("jwks_url: '{quiet}', audience: shop")));
        assert!(!told.contains("plain http") && !told.contains("audience"), "{told}");
    }
}

#[test]
fn the_file_is_watched_and_its_path_is_told_but_not_that_of_the_url() {
    let text = by_file(", jwks_url: 'https://id.example/secret'");
    let loaded = load_with(&text, &Flags::default()).unwrap();
    assert!(loaded.files.paths().any(|path| path.display().to_string() == keys()), "it is watched");
    let rows: String = loaded.effective.iter().map(|row| format!("{} {}\n", row.path, row.value)).collect();
    assert!(rows.contains("auth.tokens.jwt.jwks_url https://id.example/…\n"), "{rows}");
    assert!(rows.contains("auth.tokens.jwt.algorithms [ES256, RS256, EdDSA]\n"), "{rows}");
    assert!(!rows.contains("secret"), "{rows}");
}
