//! When a certificate is ordered, as a decision without I/O.

use super::limits::Ledger;

/// In seconds since 1970: from when to when something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LifeSpan {
    pub(super) begins: i64,
    pub(super) ends: i64,
}

/// How long after the how manieth failure in a row the authority is asked again, in seconds.
const BACKOFF: [i64; 10] = [60, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400];
const HOUR: i64 = 3_600;

/// What is known of a certificate.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownCertificate<'a> {
    /// Its names, in the order of the alphabet.
    pub(super) names: &'a [String],
    /// From when to when the one that is shown holds; `None`: there is none that this authority has issued.
    pub(super) life: Option<LifeSpan>,
    /// When the authority wants it to be renewed (RFC 9773 §4.2).
    pub(super) window: Option<LifeSpan>,
    /// The authority is one that everybody may ask, and has published how often.
    pub(super) is_public: bool,
    /// Chance that is the same as long as the certificate is.
    pub(super) chance: u64,
}

/// When it is ordered next: not before `now`.
pub(super) fn due(known: &KnownCertificate<'_>, ledger: &Ledger, now: i64) -> i64 {
    let wanted = known.life.map_or(now, |life| renewal(life, known.window, known.chance));
    let again = ledger.failures(known.names).map_or(now, |failures| {
        let life = known.life.map_or(i64::MAX, |life| life.ends.saturating_sub(life.begins));
        // Of a life of six days a whole one is too long to wait.
        let longest = if failures.is_unreached { HOUR } else { (life / 30).max(HOUR) };
        failures.latest.saturating_add(after(failures.count, known.chance).min(longest))
    });
    let rest = ledger.failures(known.names).and_then(|failures| failures.rest).unwrap_or(now);
    // Whatever an authority says, and however short what it issues lives: that is no reason to ask it without a pause.
    let pause = known
        .life
        .zip(ledger.last_but_one(known.names))
        .map_or(now, |(life, issued)| issued.saturating_add(life.ends.saturating_sub(life.begins) / 10));
    let wanted = wanted.max(again).max(rest).max(pause).max(now);
    // What is issued for a day, as people's own authorities do, is ordered more often than anybody publishes.
    if known.is_public { ledger.free(known.names, wanted) } else { wanted }
}

/// When a certificate is to be renewed that nothing has gone wrong with: a third of its life before its end, or when the authority says.
///
/// All who got theirs at the same time do not come again at the same time: chance moves them by up to a thirtieth of the life.
/// Whatever an authority says, at a fifth of the life it is time.
pub(super) fn renewal(life: LifeSpan, window: Option<LifeSpan>, chance: u64) -> i64 {
    let whole = life.ends.saturating_sub(life.begins).max(0);
    let usual = life.ends - whole / 3 - part(whole / 30, chance);
    match window {
        // A random moment within (RFC 9773 §4.2), unless it was over before there was a certificate.
        Some(window) if window.begins <= window.ends && window.ends >= life.begins => {
            let moment = window.begins + part(window.ends - window.begins, chance);
            moment.min(life.ends - whole / 5)
        }
        Some(_) | None => usual,
    }
}

/// How long after the how manieth failure in a row, give or take a tenth.
pub(super) fn after(count: u32, chance: u64) -> i64 {
    let step = usize::try_from(count).unwrap_or(usize::MAX).clamp(1, BACKOFF.len()) - 1;
    let usual = BACKOFF[step];
    usual - usual / 10 + part(usual / 5, chance.rotate_left(count))
}

/// A part of `whole` that chance chooses.
fn part(whole: i64, chance: u64) -> i64 {
    let whole = u64::try_from(whole).unwrap_or(0);
    // The upper half of the product: evenly spread, and never all of it.
    let part = (u128::from(whole) * u128::from(chance)) >> 64;
    i64::try_from(part).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acme::limits::{LedgerEntry, MEMORY, OrderEnd};
    use proptest::prelude::*;

    const DAY: i64 = 86_400;

    #[test]
    fn a_certificate_is_renewed_at_a_third_or_when_the_authority_says() {
        let life = LifeSpan { begins: 0, ends: 90 * DAY };
        for chance in [0, u64::MAX / 2, u64::MAX] {
            let at = renewal(life, None, chance);
            assert!((57 * DAY..=60 * DAY).contains(&at), "{at}");
            let window = LifeSpan { begins: 10 * DAY, ends: 11 * DAY };
            let at = renewal(life, Some(window), chance);
            assert!((10 * DAY..11 * DAY).contains(&at), "{at}");
            let late = LifeSpan { begins: 89 * DAY, ends: 90 * DAY };
            assert_eq!(renewal(life, Some(late), chance), 72 * DAY, "whatever it says");
            let gone = LifeSpan { begins: -5 * DAY, ends: 0 };
            assert!(renewal(life, Some(gone), chance) <= 0, "at once");
            let absurd = LifeSpan { begins: -5 * DAY, ends: -4 * DAY };
            assert!(renewal(life, Some(absurd), chance) >= 57 * DAY, "it was over before it began");
        }
        assert_ne!(renewal(life, None, 1), renewal(life, None, u64::MAX / 3), "not all at once");
    }

    #[test]
    fn failures_are_further_and_further_apart() {
        let spans: Vec<i64> = (1..=12).map(|count| after(count, u64::MAX / 2)).collect();
        assert!(spans.windows(2).all(|two| two[0] <= two[1] + two[1] / 5), "{spans:?}");
        assert!((54..=66).contains(&spans[0]) && spans[11] >= DAY - DAY / 10, "{spans:?}");
    }

    #[test]
    fn the_authoritys_word_and_failures_hold_an_order_up() {
        let mut ledger = Ledger::default();
        let names = ["a.example".to_owned()];
        let known = KnownCertificate { names: &names, life: None, window: None, is_public: true, chance: 0 };
        assert_eq!(due(&known, &ledger, 1_000), 1_000);
        let order = |at| LedgerEntry::Order { at, names: names.to_vec(), end: OrderEnd::Open, rest: None };
        let number = ledger.begin(order(1_000));
        ledger.end(number, OrderEnd::Failed, Some(5_000));
        assert_eq!(due(&known, &ledger, 1_000), 5_000, "as it wants");
        ledger.end(number, OrderEnd::Failed, None);
        assert_eq!(due(&known, &ledger, 1_000), 1_000 + 54);
        for at in 1_001..1_010 {
            let number = ledger.begin(order(at));
            ledger.end(number, OrderEnd::Issued, None);
        }
        assert_eq!(due(&known, &ledger, 2_000), 1_005 + MEMORY, "five in a week");
        assert_eq!(
            due(&KnownCertificate { is_public: false, ..known }, &ledger, 2_000),
            2_000,
            "an own one does not count"
        );
    }

    /// A certificate of the simulated year, and how the authority treats it.
    #[derive(Clone, Debug)]
    struct Simulated {
        names: Vec<String>,
        life: Option<LifeSpan>,
        chance: u64,
    }

    /// Counted by itself: in no window of this length are there more than `most`.
    fn never_more(mut times: Vec<i64>, most: usize, span: i64, what: &str) {
        times.sort_unstable();
        for (first, at) in times.iter().enumerate() {
            let within = times[first..].iter().take_while(|other| **other < at + span).count();
            assert!(within <= most, "{what}: {within} from {at} on");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
        /// A year of an authority that fails, issues for days or months, asks for rest, and a process that ends in the middle of orders.
        #[test]
        fn over_a_year_the_limits_of_the_authority_are_never_exceeded(
            seed in any::<u64>(),
            failing in 0u32..=100,
            count in 1usize..12,
            life_days in 2i64..90,
        ) {
            let mut state = seed | 1;
            let mut draw = move |end: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state % end
            };
            let mut all: Vec<Simulated> = (0..count)
                .map(|number| {
                    let mut names = vec![format!("n{number}.shop.example"), format!("shared{}.example", number % 3)];
                    names.sort();
                    Simulated { names, life: None, chance: draw(u64::MAX) }
                })
                .collect();
            let (mut ledger, mut log) = (Ledger::default(), Vec::<(i64, Vec<String>, OrderEnd)>::new());
            let (mut now, end) = (1_000_000_000i64, 1_000_000_000 + 365 * DAY);
            // When each is due at the soonest: what others do meanwhile puts it off and never brings it forward.
            let mut soonest = vec![now; count];
            while now < end {
                let next = (0..count).min_by_key(|place| soonest[*place]).expect("one");
                now = now.max(soonest[next]);
                let one = &all[next];
                let (names, is_public) = (&one.names, true);
                let (life, chance) = (one.life, one.chance);
                let at = due(&KnownCertificate { names, life, window: None, is_public, chance }, &ledger, now);
                soonest[next] = at;
                if at > now {
                    continue;
                }
                let names = all[next].names.clone();
                let entry = LedgerEntry::Order { at: now, names: names.clone(), end: OrderEnd::Open, rest: None };
                let number = ledger.begin(entry);
                let ended = match draw(100) {
                    // The process has ended, and nobody knows.
                    0..2 => OrderEnd::Open,
                    2..4 => OrderEnd::Signing,
                    dice if dice < u64::from(failing) => OrderEnd::Failed,
                    _ => OrderEnd::Issued,
                };
                let rest = (draw(10) == 0).then(|| now + i64::try_from(draw(7_200)).expect("small"));
                ledger.end(number, ended, rest.filter(|_| ended == OrderEnd::Failed));
                log.push((now, names, ended));
                if ended == OrderEnd::Issued {
                    all[next].life = Some(LifeSpan { begins: now, ends: now + life_days * DAY });
                }
                ledger.forget(now);
                now += 1;
                soonest[next] = now;
            }
            let times = |meant: &dyn Fn(&[String], OrderEnd) -> bool| -> Vec<i64> {
                log.iter().filter(|(_, names, end)| meant(names, *end)).map(|(at, ..)| *at).collect()
            };
            never_more(times(&|_, _| true), 300, 3 * 3_600, "orders");
            let may_be = |end| matches!(end, OrderEnd::Issued | OrderEnd::Signing);
            never_more(times(&|_, end| may_be(end)), 50, MEMORY, "certificates of a domain");
            for one in &all {
                let same = times(&|names, end| names == one.names && may_be(end));
                never_more(same, 5, MEMORY, "certificates with the same names");
                for name in &one.names {
                    let failed = times(&|names, end| names.contains(name) && end != OrderEnd::Issued);
                    never_more(failed, 5, 3_600, "failures of a name");
                }
            }
            // And it is asked at all.
            prop_assert!(log.len() >= count.min(50) / 2);
        }
    }
}
