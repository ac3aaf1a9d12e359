//! A target without a fuzzer, for whoever has no nightly toolchain: `cargo run --release -p fuzz_cases --example seeded -- router 300` makes
//! up cases for 300 seconds, out of the corpus and out of nothing. A third number is the seed. It ends with the case that failed.

#![expect(clippy::disallowed_methods, reason = "how long it runs is asked of the clock")]

use std::io::Write as _;
use std::time::{Duration, Instant};

use fuzz_cases::{Numbers, TARGETS};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let name = arguments.first().map_or("router", String::as_str);
    let (_, check) = TARGETS.iter().find(|(known, _)| *known == name).expect("the name of a target");
    let kept =
        std::fs::read_dir(format!("{}/../corpus/{name}", env!("CARGO_MANIFEST_DIR"))).expect("its corpus");
    let kept: Vec<Vec<u8>> =
        kept.map(|entry| std::fs::read(entry.expect("an entry").path()).expect("a file")).collect();
    let mut numbers = Numbers::new(number(2, 1));
    let end = Instant::now() + Duration::from_secs(number(1, 10));
    let mut cases = 0_u64;
    while Instant::now() < end {
        for _ in 0..1_000 {
            let case = made(&kept, &mut numbers);
            let outcome = std::panic::catch_unwind(|| check(&case));
            assert!(outcome.is_ok(), "{}", case.escape_ascii());
            cases += 1;
        }
    }
    _ = writeln!(std::io::stdout(), "{name}: {cases} cases, none failed");
}

/// Noise, or pieces of kept cases with a byte changed here and there.
fn made(kept: &[Vec<u8>], numbers: &mut Numbers) -> Vec<u8> {
    if numbers.next(3) == 0 {
        let length = numbers.next(400);
        return (0..length).map(|_| numbers.next(256) as u8).collect();
    }
    let mut case = Vec::new();
    for _ in 0..=numbers.next(6) {
        let one = &kept[numbers.next(kept.len())];
        let start = if case.is_empty() { 0 } else { numbers.next(one.len() + 1) };
        let length = numbers.next(one.len() - start + 1);
        case.extend_from_slice(&one[start..start + length]);
    }
    for _ in 0..numbers.next(4) {
        if !case.is_empty() {
            let at = numbers.next(case.len());
            case[at] = numbers.next(256) as u8;
        }
    }
    case
}
