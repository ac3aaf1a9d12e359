//! What it costs to verify a token, and one that was verified a moment ago: `cargo bench --bench tokens`.
//!
//! Good tokens of `fixtures/jwt`, with the rules and keys that they are for. "verified" is the whole verdict with the signature,
//! "remembered" the one of a worker that knows it already: all but the arithmetic of keys, with the look at all bytes. A figure is the mean
//! of the best of several rounds; the allocator is the one that ships.
//!
//! `cargo bench --bench tokens -- 20000` asks 20,000 times for a remembered ES256 token and tells nothing, for whoever counts instructions.

#![expect(clippy::disallowed_methods, reason = "no test pauses the time of a measurement")]

use std::hash::RandomState;
use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

use evenkeel::access::jwt::{VerifiedTokens, verify};
use evenkeel::config::model::jwt::{JwtAlgorithm, JwtRules, KeySet};

const TOKENS: &str = include_str!("../fixtures/jwt/tokens.json");
const KEYS: &[u8] = include_bytes!("../fixtures/jwt/keys.json");
const NAMES: [&str; 3] = ["good ES256", "good RS256", "good EdDSA"];
const VERIFIED: usize = 1_000;
const REMEMBERED: usize = 20_000;
const ROUNDS: usize = 15;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    if let [asked] = numbers[..] {
        Side::new(NAMES[0]).remembered(asked);
        return;
    }
    say("| token | bytes | µs verified | ns remembered |");
    say("|---|--:|--:|--:|");
    for name in NAMES {
        let side = Side::new(name);
        let verified = mean(VERIFIED, || side.verified(VERIFIED)) / 1_000.0;
        let remembered = mean(REMEMBERED, || side.remembered(REMEMBERED));
        say(&format!("| {name} | {} | {verified:.1} | {remembered:.0} |", side.token.len()));
    }
}

fn say(line: &str) {
    // Whoever has closed our output does not want to read on.
    _ = writeln!(std::io::stdout(), "{line}");
}

/// In nanoseconds, of the best of several rounds of so many.
fn mean(count: usize, round: impl Fn() -> Duration) -> f64 {
    let best = (0..ROUNDS).map(|_| round()).min().unwrap_or_default();
    best.as_nanos() as f64 / count as f64
}

/// One token, and what it is judged by.
struct Side {
    token: Vec<u8>,
    rules: JwtRules,
    keys: KeySet,
    now: u64,
}

impl Side {
    fn new(name: &str) -> Side {
        let all: serde_json::Value = serde_json::from_str(TOKENS).expect("JSON");
        let rows = all["tokens"].as_array().expect("a list");
        let row = rows.iter().find(|row| row["name"] == name).expect("a token of this name");
        let rules = JwtRules {
            algorithms: JwtAlgorithm::ALL.iter().map(|(_, algorithm)| *algorithm).collect(),
            issuer: Some("https://id.example".to_owned()),
            audience: vec!["shop".to_owned()],
            leeway: Duration::ZERO,
            claims_to_headers: Vec::new(),
        };
        let keys = KeySet::parse(KEYS, &rules.algorithms).expect("a set of keys");
        let token = row["token"].as_str().expect("a token").as_bytes().to_vec();
        Side { token, rules, keys, now: all["now"].as_u64().expect("a time") }
    }

    fn verified(&self, count: usize) -> Duration {
        let begun = Instant::now();
        for _ in 0..count {
            let claims = verify(black_box(&self.token), &self.rules, &[&self.keys], self.now);
            assert!(black_box(claims).is_ok());
        }
        begun.elapsed()
    }

    fn remembered(&self, count: usize) -> Duration {
        let tokens = VerifiedTokens::new(RandomState::new());
        assert!(tokens.verify(&self.token, &self.rules, &[&self.keys], self.now).is_ok());
        let begun = Instant::now();
        for _ in 0..count {
            let claims = tokens.verify(black_box(&self.token), &self.rules, &[&self.keys], self.now);
            assert!(black_box(claims).is_ok());
        }
        begun.elapsed()
    }
}
