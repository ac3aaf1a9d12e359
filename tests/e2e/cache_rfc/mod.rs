//! What RFC 9111 and its relatives ask of a cache that many clients share, case by case, in front of a real origin.
//!
//! No case waits where `Age` and `Date` can say the same: an answer that is as old as it may get is stale when it comes.

mod case;
mod conditions;
mod expires;
mod freshness;
mod invalidation;
mod parsing;
mod ranges;
mod requests;
mod responses;
mod run;
mod stale;
mod statuses;
mod stored_lines;
mod targeted;
mod validation;
mod vary;

use case::Case;

/// All of them.
fn all() -> Vec<Case> {
    [
        conditions::cases(),
        expires::cases(),
        freshness::cases(),
        invalidation::cases(),
        parsing::cases(),
        ranges::cases(),
        requests::cases(),
        responses::cases(),
        stale::cases(),
        statuses::cases(),
        stored_lines::cases(),
        targeted::cases(),
        validation::cases(),
        vary::cases(),
    ]
    .concat()
}

#[test]
fn there_are_enough_and_each_says_what_it_is_about() {
    let all = all();
    let mut names: Vec<_> = all.iter().map(|case| case.name.as_str()).collect();
    for name in &names {
        let is_section = |parts: &mut std::str::Split<'_, char>| {
            let rfc = parts.next().and_then(|rfc| rfc.strip_prefix("rfc"));
            rfc.is_some_and(|rfc| rfc.len() == 4 && rfc.parse::<u16>().is_ok())
                && parts.next().is_some_and(|section| section.parse::<u8>().is_ok())
        };
        assert!(is_section(&mut name.split('_')), "{name} has no section");
    }
    names.sort_unstable();
    names.windows(2).for_each(|pair| assert_ne!(pair[0], pair[1]));
    run::say(&format!("{} cases", names.len()));
    assert!(names.len() >= 250);
}
