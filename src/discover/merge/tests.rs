use proptest::prelude::*;

use super::*;
use crate::config::model::discovery::AddressFamily;
use crate::discover::answer::UnheardHost;

const RULES: HoldRules = HoldRules { hold: Duration::from_secs(30), most: 1_000 };

fn at(seconds: u64) -> Tick {
    Tick(seconds * 1_000_000_000)
}

fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number], 0))
}

fn answer(ttl: u64, numbers: &[u8]) -> NameAnswer {
    let heard = |number: &u8| HeardAddress {
        address: address(*number),
        host: "app.internal".into(),
        priority: 0,
        weight: 0,
    };
    NameAnswer {
        heard: numbers.iter().map(heard).collect(),
        unheard: Vec::new(),
        omitted: 0,
        ttl: Duration::from_secs(ttl),
    }
}

fn known(addresses: &KnownAddresses) -> Vec<u8> {
    let number = |address: &SocketAddr| match address {
        SocketAddr::V4(v4) => v4.ip().octets()[3],
        SocketAddr::V6(_) => 0,
    };
    addresses.iter().map(|(address, _)| number(address)).collect()
}

#[test]
fn an_address_leaves_after_it_was_lacked_for_half_a_minute_or_three_ttls() {
    for (ttl, after) in [(0, 30), (1, 30), (10, 30), (20, 60), (300, 900)] {
        let mut addresses = KnownAddresses::default();
        let pace = ttl.max(1);
        let mut now = 0;
        addresses.take(&answer(ttl, &[1, 2]), RULES, at(now));
        let mut lacked_since = None;
        while known(&addresses) == [1, 2] {
            now += pace;
            lacked_since.get_or_insert(now);
            addresses.take(&answer(ttl, &[2]), RULES, at(now));
            assert!(now < 10_000, "it never leaves");
        }
        assert_eq!(known(&addresses), [2]);
        assert_eq!(now - lacked_since.unwrap_or_default(), after, "with a TTL of {ttl} s");
    }
}

/// What nobody could say anything about is not absent.
#[test]
fn an_outage_is_no_absence() {
    let mut addresses = KnownAddresses::default();
    addresses.take(&answer(2, &[1, 2, 3]), RULES, at(0));
    addresses.take(&answer(2, &[1]), RULES, at(2));
    // Nobody answers for an hour; then a part is shown again.
    addresses.take(&answer(2, &[2]), RULES, at(3_602));
    assert_eq!(known(&addresses), [1, 2, 3]);
    addresses.take(&answer(2, &[3]), RULES, at(3_604));
    assert_eq!(known(&addresses), [1, 2, 3]);
}

#[test]
fn a_family_that_nobody_knows_of_stays_while_the_other_changes() {
    let mut addresses = KnownAddresses::default();
    let rules = HoldRules { hold: Duration::ZERO, ..RULES };
    let mut both = answer(0, &[1, 2]);
    let six =
        HeardAddress { address: "[2001:db8::1]:0".parse().expect("an address"), ..both.heard[0].clone() };
    both.heard.push(six);
    addresses.take(&both, rules, at(0));
    let unheard = |family| vec![UnheardHost { host: "app.internal".into(), family }];
    let four = NameAnswer { unheard: unheard(AddressFamily::V6), ..answer(0, &[2]) };
    addresses.take(&four, rules, at(1));
    assert_eq!(known(&addresses), [2, 0]);
    addresses.take(&NameAnswer { unheard: unheard(AddressFamily::V4), ..answer(0, &[3]) }, rules, at(2));
    assert_eq!(known(&addresses), [2, 3]);
}

#[test]
fn beyond_the_most_nobody_comes_before_somebody_has_left() {
    let rules = HoldRules { most: 3, ..RULES };
    let mut addresses = KnownAddresses::default();
    let merged = addresses.take(&answer(1, &[5, 6, 7, 8, 9]), rules, at(0));
    assert_eq!((known(&addresses), merged.beyond), (vec![5, 6, 7], 2));
    // Those that were there come before lower ones that are new, also when they are lacked.
    let merged = addresses.take(&answer(1, &[1, 6, 7]), rules, at(1));
    assert_eq!((known(&addresses), merged.beyond), (vec![5, 6, 7], 1));
    for now in 2..=31 {
        assert_eq!(known(&addresses), [5, 6, 7], "after {now} s");
        addresses.take(&answer(1, &[1, 6, 7]), rules, at(now));
    }
    assert_eq!(known(&addresses), [1, 6, 7]);
    addresses.take(&answer(1, &[1, 6, 7]), HoldRules { most: 2, ..rules }, at(40));
    assert_eq!(known(&addresses), [1, 6], "there may be fewer now");
}

/// Many servers know more than they show, and than a name may have.
#[test]
fn answers_that_rotate_through_more_than_there_is_room_for_do_not_flap() {
    let rules = HoldRules { most: 8, ..RULES };
    let mut addresses = KnownAddresses::default();
    let part = |turn: u64| {
        (0..6).map(|number| u8::try_from((turn * 5 + number) % 16).unwrap_or(0)).collect::<Vec<_>>()
    };
    let mut changes = 0;
    for turn in 0..200 {
        changes += u32::from(addresses.take(&answer(1, &part(turn)), rules, at(turn)).differs());
    }
    assert!(changes <= 3, "{changes} changes");
}

#[test]
fn those_that_nobody_knows_of_do_not_make_way() {
    let rules = HoldRules { most: 4, ..RULES };
    let mut addresses = KnownAddresses::default();
    addresses.take(&answer(1, &[1, 2, 3, 4]), rules, at(0));
    let unheard = vec![UnheardHost { host: "app.internal".into(), family: AddressFamily::V4 }];
    let merged = addresses.take(&NameAnswer { unheard, ..answer(1, &[5, 6]) }, rules, at(1));
    assert_eq!((known(&addresses), merged.beyond), (vec![1, 2, 3, 4], 2));
}

#[test]
fn an_answer_without_an_address_is_none() {
    let mut addresses = KnownAddresses::default();
    addresses.take(&answer(1, &[1]), RULES, at(0));
    let before = addresses.clone();
    assert!(!addresses.take(&answer(1, &[]), RULES, at(1_000)).differs());
    assert_eq!(addresses, before);
}

/// One step of a history: how long after the one before, and what is heard; `None`: nobody answers.
fn history() -> impl Strategy<Value = Vec<(u64, Option<Vec<u8>>)>> {
    let heard = proptest::option::weighted(0.8, proptest::collection::vec(1..7_u8, 0..4));
    proptest::collection::vec((1..40_u64, heard), 1..60)
}

proptest! {
    /// Whatever comes: it is never empty again, whoever the latest answer has is there, and whoever leaves was lacked for long enough, by every
    /// good answer of that time, of which there were at least four.
    #[test]
    fn no_history_empties_a_name_or_has_an_address_leave_too_soon(
        steps in history(),
        ttl in 0..40_u64,
        hold in 0..60_u64,
    ) {
        let rules = HoldRules { hold: Duration::from_secs(hold), most: 1_000 };
        let least = hold.max(3 * ttl);
        let mut addresses = KnownAddresses::default();
        let mut now = 0;
        // By address: the good answers that have lacked it since the latest that had it.
        let mut lacking: BTreeMap<u8, Vec<u64>> = BTreeMap::new();
        for (pause, heard) in steps {
            now += pause;
            let before = known(&addresses);
            let Some(heard) = heard else { continue };
            let merged = addresses.take(&answer(ttl, &heard), rules, at(now));
            let after = known(&addresses);
            if heard.is_empty() {
                prop_assert_eq!(&before, &after);
                continue;
            }
            for number in 1..7 {
                let lacks = lacking.entry(number).or_default();
                if heard.contains(&number) { lacks.clear() } else { lacks.push(now) }
            }
            prop_assert!(heard.iter().all(|number| after.contains(number)));
            prop_assert_eq!(merged.left, before.iter().filter(|number| !after.contains(number)).count());
            prop_assert_eq!(merged.added, after.iter().filter(|number| !before.contains(number)).count());
            for number in before.iter().filter(|number| !after.contains(number)) {
                let lacks = &lacking[number];
                prop_assert!(now - lacks[0] >= least, "{} left after {} s", number, now - lacks[0]);
                prop_assert!(least == 0 || lacks.len() > 3, "after {} answers", lacks.len());
            }
            // And in the end it does leave, when answers come in time.
            for number in &after {
                let lacks = &lacking[number];
                let in_time = lacks.windows(2).all(|two| (two[1] - two[0]) * 3 <= least);
                prop_assert!(lacks.is_empty() || !in_time || now - lacks[0] < least, "{} stays for ever", number);
            }
        }
    }
}
