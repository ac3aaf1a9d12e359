//! What was known of a name, what came, and when → which addresses it has.
//!
//! Only a good answer changes anything: a failure of whatever kind, and an answer without an address, leave all as it is. An address that good
//! answers lack has to be lacking for a while, because many servers rotate and show a part at a time; time in which nobody answered does not
//! count for more than an answer's share of that, so that an outage is not taken for absence.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::answer::{HeardAddress, NameAnswer};
use crate::tick::Tick;

/// Answers that an address is missing from before it leaves, at least: this and one more.
const SHARES: u32 = 3;

/// The addresses of one name.
///
/// Invariants:
///
/// 1. Once there was a good answer, there is an address. Nothing but a good answer changes which.
/// 2. An address that the latest good answer has is among them, unless there are more than the most: then those stay that were there, and others wait
///    until one of them has left, the lowest first.
/// 3. Each address that it lacks says for how long good answers have lacked it, which is less than what it takes to leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownAddresses {
    all: BTreeMap<SocketAddr, KnownAddress>,
    /// When the latest good answer came.
    answered: Option<Tick>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownAddress {
    /// The host that has it.
    pub host: Arc<str>,
    /// Of its SRV record.
    pub priority: u16,
    /// Of its SRV record.
    pub weight: u16,
    /// For how long good answers have lacked it; `None`: the latest has it.
    pub absent: Option<Duration>,
}

/// What addresses are held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldRules {
    /// Good answers may lack an address for less than this; and for less than three times their TTL.
    pub hold: Duration,
    /// The most addresses.
    pub most: usize,
}

/// What an answer has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Addresses that are new.
    pub added: usize,
    /// Addresses that have left.
    pub left: usize,
    /// Something else of one of them is other than it was.
    pub is_other: bool,
    /// Addresses of the answer for which there is no room.
    pub beyond: usize,
}

impl Merged {
    /// Whether anything differs for those who pick.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.added > 0 || self.left > 0 || self.is_other
    }
}

impl KnownAddresses {
    /// The addresses, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&SocketAddr, &KnownAddress)> {
        self.all.iter()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Takes in a good answer that came at `now`, with its TTL as it counts. One without addresses is none.
    pub fn take(&mut self, answer: &NameAnswer, rules: HoldRules, now: Tick) -> Merged {
        let mut merged = Merged::default();
        if answer.heard.is_empty() {
            return merged;
        }
        let hold = rules.hold.max(answer.ttl.saturating_mul(SHARES));
        let since = self.answered.map_or(Duration::ZERO, |before| now.since(before));
        let share = since.min(third(hold));
        self.answered = Some(now);
        let present: BTreeMap<SocketAddr, &HeardAddress> =
            answer.heard.iter().map(|one| (one.address, one)).collect();
        let is_unheard = |address: &SocketAddr, known: &KnownAddress| {
            answer.unheard.iter().any(|unheard| unheard.covers(&known.host, address.ip()))
        };
        self.all.retain(|address, known| {
            if present.contains_key(address) || is_unheard(address, known) {
                return true;
            }
            let absent = known.absent.map_or(Duration::ZERO, |before| before + share);
            known.absent = Some(absent);
            let stays = absent < hold;
            merged.left += usize::from(!stays);
            stays
        });
        for (address, one) in &present {
            if let Some(known) = self.all.get_mut(address) {
                known.absent = None;
                merged.is_other |= known.hear(one);
            }
        }
        self.shrink(rules.most, &mut merged);
        for (address, one) in present {
            if self.all.contains_key(&address) {
                continue;
            }
            if self.all.len() >= rules.most {
                merged.beyond += 1;
                continue;
            }
            merged.added += 1;
            self.all.insert(address, KnownAddress::of(one));
        }
        merged
    }

    /// Is what another one tells who knows. One who tells of no address knows none.
    pub fn adopt(&mut self, told: &[(HeardAddress, Option<Duration>)], now: Tick) -> Merged {
        let mut merged = Merged::default();
        if told.is_empty() {
            return merged;
        }
        let present: BTreeMap<SocketAddr, (&HeardAddress, Option<Duration>)> =
            told.iter().map(|(one, absent)| (one.address, (one, *absent))).collect();
        self.answered = Some(now);
        self.all.retain(|address, _| {
            let stays = present.contains_key(address);
            merged.left += usize::from(!stays);
            stays
        });
        for (address, (one, absent)) in present {
            if let Some(known) = self.all.get_mut(&address) {
                known.absent = absent;
                merged.is_other |= known.hear(one);
            } else {
                merged.added += 1;
                self.all.insert(address, KnownAddress { absent, ..KnownAddress::of(one) });
            }
        }
        merged
    }

    /// The addresses as they would be heard, with for how long answers have lacked them.
    #[must_use]
    pub fn heard(&self) -> Vec<(HeardAddress, Option<Duration>)> {
        let of = |(address, known): (&SocketAddr, &KnownAddress)| {
            let KnownAddress { host, priority, weight, absent } = known;
            let host = Arc::clone(host);
            (HeardAddress { address: *address, host, priority: *priority, weight: *weight }, *absent)
        };
        self.all.iter().map(of).collect()
    }

    /// Has those leave that are too much, since the most may be less than it was: first those that the answer lacks, the longest absent first.
    fn shrink(&mut self, most: usize, merged: &mut Merged) {
        let too_many = self.all.len().saturating_sub(most);
        if too_many == 0 {
            return;
        }
        let mut order: Vec<(Option<Duration>, SocketAddr)> =
            self.all.iter().map(|(address, known)| (known.absent, *address)).collect();
        order.sort_unstable_by(|one, other| other.cmp(one));
        for (_, address) in order.into_iter().take(too_many) {
            self.all.remove(&address);
            merged.left += 1;
        }
    }
}

/// A third, so much that three of them are the whole.
fn third(hold: Duration) -> Duration {
    hold / SHARES + Duration::from_nanos(1)
}

impl KnownAddress {
    fn of(heard: &HeardAddress) -> KnownAddress {
        let HeardAddress { host, priority, weight, .. } = heard;
        KnownAddress { host: Arc::clone(host), priority: *priority, weight: *weight, absent: None }
    }

    /// Takes over what is said of it now; whether that matters.
    fn hear(&mut self, heard: &HeardAddress) -> bool {
        self.host = Arc::clone(&heard.host);
        let (before, said) = ((self.priority, self.weight), (heard.priority, heard.weight));
        (self.priority, self.weight) = said;
        before != said
    }
}

#[cfg(test)]
mod tests;
