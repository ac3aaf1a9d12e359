//! The keys of `auth`.

use std::time::Duration;

use crate::config::model::jwt::JwtAlgorithm;
use crate::config::raw::bounds::{HOUR, LEEWAY_MAX, MILLISECOND};
use crate::config::raw::kind::Kind::{Choice, Group, Headers, OneOrItems, Text, Time, Word};
use crate::config::raw::kind::{CLAIM, FILE, NAME, PATH, REALM, RECEIVER, Shape, TOKEN, key, names};

/// One of `auth`.
pub(in crate::config::raw) const AUTH: Shape = Shape {
    title: "in an auth rule",
    path: "auth.<name>.",
    needs: &[&["basic"], &["jwt"], &["forward"]],
    keys: &[
        key("basic", Group(&BASIC), "Clients show a name and a password."),
        key("jwt", Group(&JWT), "Clients show a token that somebody else has signed."),
        key("forward", Group(&FORWARD), "Another service says who may come in."),
    ],
};

/// Names and passwords.
pub(in crate::config::raw) const BASIC: Shape = Shape {
    title: "in `basic`",
    path: "auth.<name>.basic.",
    needs: &[&["users_file"]],
    keys: &[
        key(
            "users_file",
            Word(FILE),
            "A file as `htpasswd -B` writes it: names, and hashes of bcrypt or argon2id.",
        ),
        key("realm", Word(REALM), "What users are asked for.").or("Restricted"),
    ],
};

/// A service that is asked.
pub(in crate::config::raw) const FORWARD: Shape = Shape {
    title: "in `forward`",
    path: "auth.<name>.forward.",
    needs: &[&["target"]],
    keys: &[
        key("target", Word(NAME), "The target that is asked."),
        key("path", Text(PATH), "What it is asked for, with GET.").or("/"),
        key("copy_headers", OneOrItems(&Word(TOKEN)), "Header lines of its answer that the backend gets."),
        key("timeout", Time(MILLISECOND, HOUR), "How long it may take.").or("5s"),
    ],
};

/// Tokens.
pub(in crate::config::raw) const JWT: Shape = Shape {
    title: "in `jwt`",
    path: "auth.<name>.jwt.",
    needs: &[],
    keys: &[
        key("jwks_file", Word(FILE), "Public keys that vouch for tokens: a JWK set."),
        key("jwks_url", Text(RECEIVER), "Where more of them are fetched, every 5 minutes."),
        key("ca_file", Word(FILE), "Who issues the certificate of `jwks_url`: a PEM file."),
        key("issuer", Word(CLAIM), "Who must have issued a token: its `iss`."),
        key("audience", OneOrItems(&Word(CLAIM)), "For whom it must be: one of these in its `aud`."),
        key("algorithms", OneOrItems(&Choice(algorithms)), "How it may be signed.")
            .or("[ES256, RS256, EdDSA]"),
        key("claims_to_headers", Headers, "Claims that backends are told: `{sub: X-User}`."),
        key("leeway", Time(Duration::ZERO, LEEWAY_MAX), "By how much clocks may differ.").or("0s"),
    ],
};

fn algorithms() -> Vec<&'static str> {
    names(JwtAlgorithm::ALL)
}
