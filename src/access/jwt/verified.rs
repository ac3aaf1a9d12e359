//! Tokens whose signatures were good lately: one that comes with each request of a client is verified once.
//!
//! Its invariants:
//! * What is remembered is that the signature of exactly these bytes is good under exactly these sets of keys, in their order, and nothing
//!   else. All the rest is decided anew each time: its header, the algorithms that are taken, its times, whom it is by and for. So whoever asks
//!   here gets the verdict of [`verify`](super::verify).
//! * A set is known by its [number](KeySet::number), which no set has that is read later: keys that a reload or a fetch brings, also the same
//!   ones, find nothing here.
//! * A token is found by all of its bytes, never by a hash alone.
//! * Only a token that lets in is remembered. One that is forged, over or meant for somebody else takes no place from anybody.
//! * Its place, one of a fixed number, is said by a keyed hash of all of its bytes. A client can choose neither whose place it takes, and
//!   takes one for each good token that it has, nor which token its own is compared with: bytes are compared only where 64 bits of
//!   that hash are the same, so that no time tells how much of another's token was guessed.
//!
//! One worker has one of these, which is asked by nobody else.

use std::cell::RefCell;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use super::claims::{TokenClaims, algorithm, said, signature};
use super::fault::TokenFault;
use super::token::Token;
use crate::config::model::jwt::{JwtRules, KeySet};

/// Places; a token has one of them.
const PLACES: usize = 256;
/// Bytes of a token that is remembered, at most.
const LONGEST: usize = 2 * 1024;

/// Tokens that one worker has verified lately.
pub struct VerifiedTokens {
    /// Empty until there is one.
    places: RefCell<Vec<Option<Verified>>>,
    /// How many there are then.
    count: usize,
    /// What places are chosen with.
    secret: RandomState,
}

/// A token with a good signature.
struct Verified {
    hash: u64,
    keys: KeyNumbers,
    token: Vec<u8>,
}

/// The numbers of one or two sets of keys in their order; 0 for a second one that is not there.
type KeyNumbers = [u64; 2];

impl VerifiedTokens {
    /// None yet. `secret`: drawn by chance.
    #[must_use]
    pub fn new(secret: RandomState) -> VerifiedTokens {
        VerifiedTokens::with_places(PLACES, secret)
    }

    fn with_places(count: usize, secret: RandomState) -> VerifiedTokens {
        VerifiedTokens { places: RefCell::default(), count, secret }
    }

    /// The verdict of [`verify`](super::verify). A token that lets in is remembered, if it is no longer than most.
    ///
    /// # Errors
    /// Why it lets nobody in.
    pub fn verify(
        &self,
        bytes: &[u8],
        rules: &JwtRules,
        keys: &[&KeySet],
        now: u64,
    ) -> Result<TokenClaims, TokenFault> {
        let token = Token::parse(bytes)?;
        let algorithm = algorithm(&token, rules)?;
        let Some(keys_asked) = numbers(keys).filter(|_| bytes.len() <= LONGEST) else {
            signature(&token, algorithm, keys)?;
            return said(&token, rules, now);
        };
        let hash = self.hash(keys_asked, bytes);
        if self.knows(hash, keys_asked, bytes) {
            return said(&token, rules, now);
        }
        signature(&token, algorithm, keys)?;
        let claims = said(&token, rules, now)?;
        self.note(hash, keys_asked, bytes);
        Ok(claims)
    }

    fn hash(&self, keys: KeyNumbers, token: &[u8]) -> u64 {
        let mut hasher = self.secret.build_hasher();
        keys.iter().for_each(|number| hasher.write_u64(*number));
        hasher.write(token);
        hasher.finish()
    }

    /// The place of a hash.
    fn place(&self, hash: u64) -> usize {
        // Less than `count`, which is a `usize`.
        ((u128::from(hash) * self.count as u128) >> 64) as usize
    }

    fn knows(&self, hash: u64, keys: KeyNumbers, token: &[u8]) -> bool {
        let places = self.places.borrow();
        let known = places.get(self.place(hash)).and_then(Option::as_ref);
        known.is_some_and(|known| known.hash == hash && known.keys == keys && known.token == token)
    }

    fn note(&self, hash: u64, keys: KeyNumbers, token: &[u8]) {
        let mut places = self.places.borrow_mut();
        if places.is_empty() {
            places.resize_with(self.count, || None);
        }
        if let Some(place) = places.get_mut(self.place(hash)) {
            // What the one before has taken up is used again.
            let mut kept = place.take().map(|before| before.token).unwrap_or_default();
            kept.clear();
            kept.extend_from_slice(token);
            *place = Some(Verified { hash, keys, token: kept });
        }
    }
}

/// Which sets these are; `None`: none, or more than are told apart.
fn numbers(keys: &[&KeySet]) -> Option<KeyNumbers> {
    match keys {
        [one] => Some([one.number(), 0]),
        [one, other] => Some([one.number(), other.number()]),
        _ => None,
    }
}

/// Whoever has a token is let in by it: none is shown.
impl fmt::Debug for VerifiedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedTokens").field("count", &self.count).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::super::tests::{KEYS, NEXT, keys, rules, table};
    use super::super::verify;
    use super::*;
    use crate::config::model::jwt::JwtAlgorithm;

    fn places(count: usize) -> VerifiedTokens {
        VerifiedTokens::with_places(count, RandomState::new())
    }

    /// Asks for a token that may have any bytes.
    fn knows(verified: &VerifiedTokens, keys: KeyNumbers, token: &[u8]) -> bool {
        verified.knows(verified.hash(keys, token), keys, token)
    }

    fn note(verified: &VerifiedTokens, keys: KeyNumbers, token: &[u8]) {
        verified.note(verified.hash(keys, token), keys, token);
    }

    /// What is in each place.
    fn held(verified: &VerifiedTokens) -> Vec<Option<(KeyNumbers, Vec<u8>)>> {
        let places = verified.places.borrow();
        places.iter().map(|one| one.as_ref().map(|one| (one.keys, one.token.clone()))).collect()
    }

    fn token(name: &str) -> (u64, Vec<u8>) {
        let (now, rows) = table();
        let row = rows.into_iter().find(|(other, ..)| other == name).expect("a row");
        (now, row.2.into_bytes())
    }

    #[test]
    fn a_token_is_known_byte_for_byte_under_its_keys_until_its_place_is_taken() {
        let verified = places(1);
        let bytes: Vec<u8> = (0..LONGEST).map(|at| b'a' + (at % 26) as u8).collect();
        note(&verified, [7, 0], &bytes);
        assert!(knows(&verified, [7, 0], &bytes));
        for keys in [[8, 0], [7, 7], [0, 7], [7, 1]] {
            assert!(!knows(&verified, keys, &bytes), "{keys:?}");
        }
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            // Not even where the hash is the same.
            assert!(!verified.knows(verified.hash([7, 0], &bytes), [7, 0], &other), "{at}");
            assert!(!knows(&verified, [7, 0], &other), "{at}");
        }
        assert!(!knows(&verified, [7, 0], &bytes[1..]) && !knows(&verified, [7, 0], &bytes[..LONGEST - 1]));
        note(&verified, [7, 0], b"another");
        assert!(knows(&verified, [7, 0], b"another") && !knows(&verified, [7, 0], &bytes));
    }

    #[test]
    fn tokens_lie_all_over_the_places_and_elsewhere_in_each_memory() {
        let (one, other) = (places(PLACES), places(PLACES));
        let place = |verified: &VerifiedTokens, number: u32| {
            verified.place(verified.hash([1, 0], format!("a.{number}.c").as_bytes()))
        };
        let mut used = vec![0_u32; PLACES];
        (0..25_600).for_each(|number| used[place(&one, number)] += 1);
        assert!(used.iter().all(|count| (40..200).contains(count)), "{used:?}");
        let same = (0..2_560).filter(|number| place(&one, *number) == place(&other, *number)).count();
        assert!(same < 100, "{same} of 2560, where 10 are due");
    }

    #[test]
    fn a_token_that_lets_in_is_remembered_and_no_other_is() {
        let (rules, keys) = (rules(), keys(KEYS));
        let (_, rows) = table();
        let (now, _) = token("good ES256");
        let verified = places(PLACES);
        for (name, expect, token) in rows {
            let outcome = verified.verify(token.as_bytes(), &rules, &[&keys], now);
            assert_eq!(outcome.is_ok(), expect == "good", "{name}");
            let is_known = knows(&verified, [keys.number(), 0], token.as_bytes());
            assert_eq!(is_known, expect == "good" && token.len() <= LONGEST, "{name}");
        }
    }

    #[test]
    fn a_remembered_token_is_not_verified_again() {
        let (now, token) = token("good ES256");
        let verified = places(PLACES);
        let (signers, others) = (keys(KEYS), keys(NEXT));
        assert!(verified.verify(&token, &rules(), &[&others], now).is_err());
        assert!(held(&verified).is_empty(), "not even a place is made");
        // The only way to tell: the memory says so of keys that have signed nothing.
        note(&verified, [others.number(), 0], &token);
        assert!(verified.verify(&token, &rules(), &[&others], now).is_ok());
        assert!(verified.verify(&token, &rules(), &[&signers], now).is_ok());
        assert!(verified.verify(&token, &rules(), &[&keys(NEXT)], now).is_err(), "the same keys, read again");
    }

    #[test]
    fn keys_that_are_tried_before_count_too() {
        // Four keys come before the one that has signed, and more are not tried.
        let (now, token) = token("good, without a kid");
        let mut set: serde_json::Value = serde_json::from_slice(NEXT).expect("JSON");
        let one = set["keys"][0].take();
        let four = keys(serde_json::json!({ "keys": vec![one; KeySet::TRIED] }).to_string().as_bytes());
        let (own, verified) = (keys(KEYS), places(PLACES));
        for _ in 0..2 {
            assert!(verified.verify(&token, &rules(), &[&own], now).is_ok());
            assert!(verified.verify(&token, &rules(), &[&own, &four], now).is_ok());
            assert!(verified.verify(&token, &rules(), &[&four, &own], now).is_err());
        }
    }

    #[test]
    fn nothing_of_a_token_is_shown() {
        let verified = places(1);
        note(&verified, [1, 0], b"secret");
        let shown = format!("{verified:?}");
        assert!(!shown.contains("secret") && !shown.contains("115"), "{shown}");
    }

    /// One step of those who ask, and of those who change what is asked.
    #[derive(Clone, Debug)]
    enum Step {
        /// A token of the table; perhaps with another byte at a place, in 1/256 of its length.
        Ask {
            token: usize,
            damage: Option<(u8, u8)>,
        },
        /// Which keys there are; with `read` they were read just now.
        Keys {
            choice: usize,
            read: bool,
        },
        Rules {
            choice: usize,
        },
        /// Seconds from the time of the table.
        Time(i64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let damage = prop::option::weighted(0.1, any::<(u8, u8)>());
        let step = prop_oneof![
            12 => (any::<usize>(), damage).prop_map(|(token, damage)| Step::Ask { token, damage }),
            1 => (0..6_usize, any::<bool>()).prop_map(|(choice, read)| Step::Keys { choice, read }),
            1 => (0..5_usize).prop_map(|choice| Step::Rules { choice }),
            1 => prop_oneof![Just(0), -4_i64..4, -100_000_i64..100_000].prop_map(Step::Time),
        ];
        prop::collection::vec(step, 1..60)
    }

    fn changed(choice: usize) -> JwtRules {
        let all = rules();
        match choice {
            1 => JwtRules { algorithms: vec![JwtAlgorithm::Rs256, JwtAlgorithm::EdDsa], ..all },
            2 => JwtRules { audience: vec!["elsewhere".to_owned()], ..all },
            3 => JwtRules { issuer: None, audience: Vec::new(), ..all },
            4 => JwtRules { leeway: Duration::from_secs(2), ..all },
            _ => all,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn whoever_remembers_decides_as_who_verifies_each_time(count in 1..6_usize, steps in steps()) {
            let (start, mut rows) = table();
            // The good ones come first, and are asked for more often.
            rows.sort_by_key(|(_, expect, _)| expect != "good");
            let (good, lasting) = (rows.iter().filter(|(_, expect, _)| expect == "good").count().min(8), rows.len());
            let verified = places(count);
            let (mut own, mut next) = (keys(KEYS), keys(NEXT));
            let (mut choice, mut rules, mut now) = (0, changed(0), start);
            for step in steps {
                match step {
                    Step::Keys { choice: other, read } => {
                        choice = other;
                        if read {
                            (own, next) = (keys(KEYS), keys(NEXT));
                        }
                    }
                    Step::Rules { choice } => rules = changed(choice),
                    Step::Time(seconds) => now = start.saturating_add_signed(seconds),
                    Step::Ask { token, damage } => {
                        let place = if token % 4 == 0 { token / 4 % lasting } else { token / 4 % good };
                        let mut bytes = rows[place].2.clone().into_bytes();
                        if let Some((at, byte)) = damage {
                            let at = usize::from(at) * bytes.len() / 256;
                            if let Some(one) = bytes.get_mut(at) {
                                *one = byte;
                            }
                        }
                        let sets: &[&KeySet] = match choice {
                            1 => &[&next],
                            2 => &[&own, &next],
                            3 => &[&next, &own],
                            4 => &[],
                            _ => &[&own],
                        };
                        let before = held(&verified);
                        let outcome = verified.verify(&bytes, &rules, sets, now);
                        prop_assert_eq!(&outcome, &verify(&bytes, &rules, sets, now), "{}", rows[place].0);
                        let after = held(&verified);
                        match (outcome, numbers(sets)) {
                            (Ok(_), Some(numbers)) if bytes.len() <= LONGEST => {
                                prop_assert!(knows(&verified, numbers, &bytes));
                                let others = before.iter().zip(&after).filter(|(one, other)| one != other);
                                prop_assert!(before.is_empty() || others.count() <= 1);
                            }
                            _ => prop_assert_eq!(before, after, "who is not let in changes nothing"),
                        }
                    }
                }
            }
        }
    }
}
