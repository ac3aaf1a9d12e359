//! Never another user's answer: many users ask at the same time, with secrets of their own, in worlds that a seed makes up; each answer
//! says for which request it was made, and a model that knows nothing of the cache's code says whether this client may have it.

mod answers;
mod asks;
mod chance;
mod driver;
mod model;
mod origin;
mod worlds;

use std::collections::BTreeMap;

use driver::{Seen, drive};
use worlds::{Ground, Kind};

/// As many answers as take some seconds without optimisation; `EVENKEEL_PAIRS` says otherwise.
const PAIRS: u64 = 5_000;

#[test]
#[expect(clippy::print_stdout, reason = "who runs it at full length is to know what was tried")]
fn nobody_gets_what_was_made_for_somebody_else() {
    let count = std::env::var("EVENKEEL_PAIRS").ok().and_then(|text| text.parse().ok()).unwrap_or(PAIRS);
    let ground = Ground::new();
    let mut all: BTreeMap<Kind, Seen> = BTreeMap::new();
    let (mut pairs, mut seed) = (0, 0);
    while pairs < count || seed % Kind::ALL.len() as u64 != 0 {
        let (kind, seen) = drive(&ground, seed);
        let sum = all.entry(kind).or_default();
        for (sum, more) in [
            (&mut sum.pairs, seen.pairs),
            (&mut sum.hits, seen.hits),
            (&mut sum.collapsed, seen.collapsed),
            (&mut sum.others, seen.others),
            (&mut sum.confirmed, seen.confirmed),
        ] {
            *sum += more;
        }
        (pairs, seed) = (pairs + seen.pairs, seed + 1);
    }
    let total = |of: fn(&Seen) -> u64| all.values().map(of).sum::<u64>();
    println!(
        "{pairs} pairs in {seed} worlds: {} hits, {} collapsed, {} of another user's and to be shared, {} confirmed, 0 wrong",
        total(|seen| seen.hits),
        total(|seen| seen.collapsed),
        total(|seen| seen.others),
        total(|seen| seen.confirmed)
    );
    for (kind, seen) in all {
        println!("  {kind:?}: {seen:?}");
        // Who shows who it is in `Authorization` waits for nobody.
        let waits = !matches!(kind, Kind::Basic | Kind::Token);
        let is_tried = seen.hits > 0 && seen.others > 0 && (seen.collapsed > 0 || !waits);
        assert!(is_tried, "{kind:?} is hardly tried");
    }
}
