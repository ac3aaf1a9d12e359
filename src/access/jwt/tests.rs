#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::*;
use crate::config::model::jwt::{JwtAlgorithm, JwtRules, KeySet};

/// Made by scripts/make_jwt_fixtures.py, with another library than ours.
const TOKENS: &str = include_str!("../../../fixtures/jwt/tokens.json");
const LASTING: &str = include_str!("../../../fixtures/jwt/lasting.json");
pub(super) const KEYS: &[u8] = include_bytes!("../../../fixtures/jwt/keys.json");
pub(super) const NEXT: &[u8] = include_bytes!("../../../fixtures/jwt/next_keys.json");

pub(super) fn rules() -> JwtRules {
    JwtRules {
        algorithms: JwtAlgorithm::ALL.iter().map(|(_, algorithm)| *algorithm).collect(),
        issuer: Some("https://id.example".to_owned()),
        audience: vec!["shop".to_owned()],
        leeway: Duration::ZERO,
        claims_to_headers: Vec::new(),
    }
}

pub(super) fn keys(bytes: &[u8]) -> KeySet {
    KeySet::parse(bytes, &rules().algorithms).unwrap()
}

/// The tokens of the table with their names and what must become of them.
pub(super) fn table() -> (u64, Vec<(String, String, String)>) {
    let all: Value = serde_json::from_str(TOKENS).unwrap();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    let rows = all["tokens"].as_array().unwrap().iter();
    let rows = rows.map(|row| (text(row, "name"), text(row, "expect"), text(row, "token")));
    (all["now"].as_u64().unwrap(), rows.collect())
}

/// One row of the table.
fn named(name: &str) -> (u64, String) {
    let (now, rows) = table();
    let (.., token) = rows.into_iter().find(|(other, ..)| other == name).unwrap();
    (now, token)
}

fn lasting(name: &str) -> String {
    let all: Value = serde_json::from_str(LASTING).unwrap();
    all[name].as_str().unwrap().to_owned()
}

fn kind(outcome: Result<TokenClaims, TokenFault>) -> &'static str {
    match outcome.map_err(|fault| fault.kind) {
        Ok(_) => "good",
        Err(TokenFaultKind::Missing) => "missing",
        Err(TokenFaultKind::Malformed) => "malformed",
        Err(TokenFaultKind::Signature) => "signature",
        Err(TokenFaultKind::Expired) => "expired",
        Err(TokenFaultKind::Claims) => "claims",
        Err(TokenFaultKind::Keys) => "keys",
    }
}

#[test]
fn every_token_of_the_table_is_taken_or_refused_for_its_reason() {
    let (now, rows) = table();
    let (rules, keys) = (rules(), keys(KEYS));
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|(name, expect, token)| {
            let outcome = verify(token.as_bytes(), &rules, &[&keys], now);
            let found = kind(outcome.clone());
            (found != expect).then(|| format!("{name}: {found} instead of {expect}: {outcome:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let of = |expect: &str| rows.iter().filter(|(_, other, _)| other == expect).count();
    assert!(of("good") >= 15 && rows.len() - of("good") >= 100, "the table has shrunk");
}

#[test]
fn an_algorithm_that_is_not_configured_is_not_taken_though_its_key_is_known() {
    let mut rules = rules();
    rules.algorithms = vec![JwtAlgorithm::Rs256];
    let keys = keys(KEYS);
    for (name, expect) in [("good RS256", "good"), ("good ES256", "signature"), ("good PS256", "signature")] {
        let (now, token) = named(name);
        assert_eq!(kind(verify(token.as_bytes(), &rules, &[&keys], now)), expect, "{name}");
    }
}

#[test]
fn leeway_moves_both_ends_and_none_is_none() {
    let keys = keys(KEYS);
    for (leeway, late, early) in [(0, "expired", "claims"), (1, "expired", "good"), (2, "good", "good")] {
        let rules = JwtRules { leeway: Duration::from_secs(leeway), ..rules() };
        let outcome = |name| {
            let (now, token) = named(name);
            kind(verify(token.as_bytes(), &rules, &[&keys], now))
        };
        assert_eq!((outcome("expired by a second"), outcome("nbf in a second")), (late, early), "{leeway}");
    }
}

#[test]
fn what_is_not_asked_for_may_be_anything_and_still_no_nonsense() {
    let rules = JwtRules { issuer: None, audience: Vec::new(), ..rules() };
    let keys = keys(KEYS);
    for (name, expect) in [
        ("issuer another", "good"),
        ("issuer missing", "good"),
        ("audience another", "good"),
        ("audience missing", "good"),
        ("issuer a list", "claims"),
        ("audience an object", "claims"),
        ("expired by a second", "expired"),
        ("exp missing", "claims"),
    ] {
        let (now, token) = named(name);
        assert_eq!(kind(verify(token.as_bytes(), &rules, &[&keys], now)), expect, "{name}");
    }
}

#[test]
fn keys_that_change_change_who_is_let_in() {
    let rules = rules();
    let (old, new) = (keys(KEYS), keys(NEXT));
    let outcome =
        |name: &str, keys: &[&KeySet]| kind(verify(lasting(name).as_bytes(), &rules, keys, 1_800_000_000));
    assert_eq!((outcome("good", &[&old]), outcome("next", &[&old])), ("good", "keys"));
    assert_eq!((outcome("good", &[&new]), outcome("next", &[&new])), ("keys", "good"));
    assert_eq!((outcome("good", &[&new, &old]), outcome("next", &[&new, &old])), ("good", "good"));
    assert_eq!((outcome("good", &[]), outcome("expired", &[])), ("keys", "keys"));
    assert_eq!((outcome("expired", &[&old]), outcome("elsewhere", &[&old])), ("expired", "claims"));
}

#[test]
fn only_so_many_keys_are_tried_for_a_token_without_a_name() {
    let mut set: Value = serde_json::from_slice(KEYS).unwrap();
    let good = set["keys"][0].take();
    let other = serde_json::from_slice::<Value>(NEXT).unwrap()["keys"][0].clone();
    let (now, token) = named("good, without a kid");
    for (before, expect) in [(KeySet::TRIED - 1, "good"), (KeySet::TRIED, "signature")] {
        let mut all = vec![other.clone(); before];
        all.push(good.clone());
        let keys = keys(serde_json::json!({ "keys": all }).to_string().as_bytes());
        assert_eq!(kind(verify(token.as_bytes(), &rules(), &[&keys], now)), expect, "{before}");
    }
}

#[test]
fn a_token_is_the_only_word_behind_bearer() {
    let of = |lines: &[&str]| bearer(lines.iter().map(|line| line.as_bytes())).map(<[u8]>::to_vec);
    for line in ["Bearer a.b.c", "bearer a.b.c", "BEARER   a.b.c"] {
        assert_eq!(of(&[line]), Ok(b"a.b.c".to_vec()), "{line}");
    }
    for lines in [&[][..], &[""], &["Basic YTpi"], &["Bearer"], &["Bearer "], &["Bearera.b.c"], &["a.b.c"]] {
        let fault = of(lines).unwrap_err();
        assert_eq!((fault.kind, fault.challenge()), (TokenFaultKind::Missing, "Bearer"), "{lines:?}");
    }
    for lines in [["Bearer a.b.c", "Bearer a.b.c"], ["Basic YTpi", "Bearer a.b.c"]] {
        let fault = of(&lines).unwrap_err();
        assert_eq!(fault.kind, TokenFaultKind::Malformed, "{lines:?}");
        assert_eq!(fault.challenge(), "Bearer error=\"invalid_token\"");
    }
}

#[test]
fn claims_become_lines_where_a_line_can_say_them() {
    let claims = verify(lasting("good").as_bytes(), &rules(), &[&keys(KEYS)], 1_800_000_000).unwrap();
    assert_eq!(claims.user(), "alice");
    let names = [("sub", "X-User"), ("admin", "X-Admin"), ("level", "X-Level"), ("roles", "X-Roles")]
        .into_iter()
        .chain([("odd", "X-Odd"), ("absent", "X-Absent")])
        .map(|(claim, header)| (claim.to_owned(), header.to_owned()));
    let told = told_claims(&claims, &names.collect::<Vec<_>>());
    let lines: Vec<String> = told.lines.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(lines, ["X-User: alice", "X-Admin: true", "X-Level: 7"]);
    assert_eq!(told.dropped, 2, "a list, and a line that would be two");
}

#[test]
fn no_byte_of_a_good_token_can_be_another() {
    let (now, token) = named("good ES256");
    let (rules, keys) = (rules(), keys(KEYS));
    for place in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        for other in [b'A', b'z', b'.', b'=', 0, 0xff] {
            let was = std::mem::replace(&mut bytes[place], other);
            if was != other {
                assert!(verify(&bytes, &rules, &[&keys], now).is_err(), "{place} {other}");
            }
            bytes[place] = was;
        }
    }
}

#[test]
fn what_a_token_claims_counts_for_nothing_before_its_signature_is_good() {
    let (now, token) = named("good ES256");
    let [head, _, signature] = token.split('.').collect::<Vec<_>>()[..] else { panic!("three parts") };
    for claims in ["hello", "{}", "{\"exp\":1}", "{\"exp\":1,\"exp\":2}"] {
        let token = format!("{head}.{}.{signature}", URL_SAFE_NO_PAD.encode(claims));
        assert_eq!(kind(verify(token.as_bytes(), &rules(), &[&keys(KEYS)], now)), "signature", "{claims}");
    }
}
