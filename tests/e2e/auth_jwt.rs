//! Tokens that somebody else has signed, over real sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::auth_lab::{Door, Service, cause, request};
use super::support::eventually;

pub const KEYS: &str = include_str!("../../fixtures/jwt/keys.json");
const NEXT: &str = include_str!("../../fixtures/jwt/next_keys.json");
const ALL: &str = "    auth: tokens\n    routes: [{target: web}]\n";
const MUST: &str = "issuer: 'https://id.example', audience: shop";

/// A token of `fixtures/jwt`: good for a thousand years, of the next key, over, or for somebody else.
fn token(name: &str) -> String {
    let all: serde_json::Value =
        serde_json::from_str(include_str!("../../fixtures/jwt/lasting.json")).unwrap();
    all[name].as_str().unwrap().to_owned()
}

pub fn bearer(name: &str) -> String {
    format!("Authorization: Bearer {}\r\n", token(name))
}

/// `auth` with the rule `tokens`.
pub fn rule(keys: &str) -> String {
    format!(
        "auth: {{tokens: {{jwt: {{{keys}, {MUST}, claims_to_headers: {{sub: X-User, level: X-Level, odd: X-Odd}}}}}}}}\n"
    )
}

/// A file of keys.
struct KeyFile(tempfile::TempDir);

impl KeyFile {
    fn new(keys: &str) -> KeyFile {
        let file = KeyFile(tempfile::tempdir().unwrap());
        file.write(keys);
        file
    }

    fn write(&self, keys: &str) {
        std::fs::write(self.0.path().join("keys.json"), keys).unwrap();
    }

    fn rule(&self) -> String {
        rule(&format!("jwks_file: {}", self.0.path().join("keys.json").display()))
    }
}

fn answer(keys: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{keys}", keys.len())
}

#[test]
fn a_good_token_lets_in_and_its_claims_reach_the_backend_and_nothing_that_a_client_says_of_them() {
    let keys = KeyFile::new(KEYS);
    let routes = "    auth: tokens\n    routes:\n    \
        - {match: {path: /open}, auth: off, target: web}\n    - {target: web, headers: {request: {set: {X-Who: '{user}'}}}}\n";
    let door = Door::new(&keys.rule(), routes, None);
    let mine = "X-User: root\r\nX_User: root\r\nx-level: 9\r\nX-Odd: x\r\n";
    let answer = door.get("/", &(bearer("good") + mine));
    assert_eq!((answer.status, &*answer.text()), (200, "Hello from web"));
    let sent = door.web.take_requests().remove(0);
    let header = |name| sent.header(name).join(",");
    assert_eq!(
        (header("X-User"), header("X-Level"), header("X-Who")),
        ("alice".into(), "7".into(), "alice".into())
    );
    assert!(sent.header("X_User").is_empty() && sent.header("X-Odd").is_empty(), "a line break is no value");
    assert_eq!(sent.header("Authorization").len(), 1, "it goes on to the backend");
    assert_eq!(door.get("/open", mine).status, 200);
    let sent = door.web.take_requests().remove(0);
    assert!(["X-User", "X_User", "X-Level", "X-Odd"].iter().all(|name| sent.header(name).is_empty()));
}

#[test]
fn whoever_shows_no_good_token_gets_401_and_is_told_why() {
    let keys = KeyFile::new(KEYS);
    let door = Door::new(&keys.rule(), ALL, None);
    let good = token("good");
    let (head, rest) = good.split_once('.').unwrap();
    let (claims, signature) = rest.split_once('.').unwrap();
    // {"alg":"none"} and {"alg":"HS256"}.
    let (none, hmac) = ("eyJhbGciOiJub25lIn0", "eyJhbGciOiJIUzI1NiJ9");
    let mut client = door.client();
    for (shown, told, challenge) in [
        (String::new(), "token_missing", "Bearer"),
        ("Authorization: Basic YTpi\r\n".to_owned(), "token_missing", "Bearer"),
        (bearer("good") + &bearer("good"), "token_malformed", "Bearer error=\"invalid_token\""),
        (format!("Authorization: Bearer {good}.x\r\n"), "token_malformed", "Bearer error=\"invalid_token\""),
        (
            format!("Authorization: Bearer {}\r\n", "a".repeat(12_000)),
            "token_malformed",
            "Bearer error=\"invalid_token\"",
        ),
        (
            format!("Authorization: Bearer {none}.{claims}.\r\n"),
            "token_signature",
            "Bearer error=\"invalid_token\"",
        ),
        (
            format!("Authorization: Bearer {hmac}.{claims}.{signature}\r\n"),
            "token_signature",
            "Bearer error=\"invalid_token\"",
        ),
        (
            format!(
                "Authorization: Bearer {head}.{claims}.{}\r\n",
                // Well-formed, by the same key, and of another token.
                token("elsewhere").rsplit_once('.').unwrap().1
            ),
            "token_signature",
            "Bearer error=\"invalid_token\"",
        ),
        (
            bearer("expired"),
            "token_expired",
            "Bearer error=\"invalid_token\", error_description=\"the token is over\"",
        ),
        (
            bearer("elsewhere"),
            "token_claims",
            "Bearer error=\"invalid_token\", error_description=\"the token is for somebody else\"",
        ),
        (bearer("next"), "token_keys", "Bearer error=\"invalid_token\""),
    ] {
        let answer = client.ask(&request("GET", "/", &shown));
        let said = answer.header("WWW-Authenticate").unwrap_or_default();
        assert_eq!((answer.status, cause(&answer)), (401, told), "{shown}");
        assert!(said.starts_with(challenge), "{shown}: {said}");
    }
    assert!(door.web.take_requests().is_empty());
    assert_eq!(client.ask(&request("GET", "/", &bearer("good"))).status, 200, "the connection goes on");
}

#[test]
fn a_file_of_keys_that_changes_changes_who_is_let_in() {
    let keys = KeyFile::new(KEYS);
    let door = Door::new(&keys.rule(), ALL, None);
    let statuses = || ["good", "next"].map(|name| door.get("/", &bearer(name)).status);
    assert_eq!(statuses(), [200, 401]);
    keys.write(NEXT);
    door.reload();
    assert_eq!(statuses(), [401, 200]);
}

/// Whoever has been let in a moment ago is not let in for that.
#[test]
fn a_token_that_was_good_a_moment_ago_is_refused_when_its_key_is_gone_and_good_again_when_it_is_back() {
    let keys = KeyFile::new(KEYS);
    let door = Door::new(&keys.rule(), ALL, None);
    let mut client = door.client();
    let mut ask = |token: &str| {
        let answer = client.ask(&request("GET", "/", token));
        (answer.status, cause(&answer).to_owned())
    };
    let (let_in, unknown) = ((200, String::new()), (401, "token_keys".to_owned()));
    for _ in 0..3 {
        assert_eq!(ask(&bearer("good")), let_in);
    }
    keys.write(NEXT);
    door.reload();
    assert_eq!((ask(&bearer("good")), ask(&bearer("next"))), (unknown.clone(), let_in.clone()));
    // Another key with the name of the one that has signed it.
    keys.write(&NEXT.replace("\"next\"", "\"p256\""));
    door.reload();
    assert_eq!(ask(&bearer("good")), (401, "token_signature".to_owned()));
    assert_eq!(ask(&bearer("next")), unknown);
    keys.write(KEYS);
    door.reload();
    assert_eq!((ask(&bearer("good")), ask(&bearer("next"))), (let_in, unknown));
}

#[test]
fn a_token_that_was_good_a_moment_ago_is_refused_when_its_time_is_over() {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let public = URL_SAFE_NO_PAD.encode(pair.public_key());
    let keys = KeyFile::new(&format!(r#"{{"keys": [{{"kty": "OKP", "crv": "Ed25519", "x": "{public}"}}]}}"#));
    let door = Door::new(&keys.rule(), ALL, None);
    let mut client = door.client();
    let token = |exp: u64| {
        let claims = format!(r#"{{"iss": "https://id.example", "aud": "shop", "exp": {exp}}}"#);
        let signed = [r#"{"alg": "EdDSA"}"#, &claims].map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
        let signature = URL_SAFE_NO_PAD.encode(pair.sign(signed.as_bytes()));
        format!("Authorization: Bearer {signed}.{signature}\r\n")
    };
    let mut shown = String::new();
    eventually("one is in time", || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        shown = token(since.as_secs() + 2);
        client.ask(&request("GET", "/", &shown)).status == 200
    });
    let mut answers = Vec::new();
    eventually("it is over", || {
        let answer = client.ask(&request("GET", "/", &shown));
        answers.push((answer.status, cause(&answer).to_owned()));
        answer.status != 200
    });
    assert_eq!(answers.pop(), Some((401, "token_expired".to_owned())));
}

#[test]
fn keys_behind_a_url_are_fetched_and_a_token_of_an_unknown_key_has_them_fetched_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let service = Service::new(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0 => answer(KEYS).into_bytes(),
        _ => answer(NEXT).into_bytes(),
    });
    let door = Door::new(&rule(&format!("jwks_url: 'http://{}/keys?a=b'", service.address)), ALL, None);
    eventually("the keys are there", || door.get("/", &bearer("good")).status == 200);
    assert_eq!(service.asked()[0].lines().next(), Some("GET /keys?a=b HTTP/1.1"));
    let refused = door.get("/", &bearer("next"));
    assert_eq!((refused.status, cause(&refused)), (401, "token_keys"));
    eventually("the new key is found", || door.get("/", &bearer("next")).status == 200);
    let refused = door.get("/", &bearer("good"));
    assert_eq!((refused.status, cause(&refused)), (401, "token_keys"), "the old one counts no more");
    // A reload that leaves the rule alone keeps what is known, and asks nobody.
    let before = service.asked().len();
    door.reload();
    assert_eq!(door.get("/", &bearer("next")).status, 200);
    assert_eq!(service.asked().len(), before);
}

#[test]
fn nobody_is_let_in_while_the_url_is_dead_but_by_keys_of_a_file() {
    let reserved = super::support::port::Reserved::new();
    let nobody = std::net::SocketAddr::from(([127, 0, 0, 1], reserved.number()));
    let door = Door::new(&rule(&format!("jwks_url: 'http://{nobody}/'")), ALL, None);
    let refused = door.get("/", &bearer("good"));
    assert_eq!((refused.status, cause(&refused)), (401, "token_keys"));
    let keys = KeyFile::new(KEYS);
    let both = keys.rule().replace("jwks_file", &format!("jwks_url: 'http://{nobody}/', jwks_file"));
    let door = Door::new(&both, ALL, None);
    assert_eq!(door.get("/", &bearer("good")).status, 200);
}
