//! What is known of one name, and what is told of it.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::answer::NameAnswer;
use super::merge::{HoldRules, KnownAddress, KnownAddresses};
use super::shared::{NameAsked, NameFinding, ToldAddresses};
use crate::config::FoundAddress;
use crate::config::model::Portion;
use crate::config::model::discovery::{DnsKind, DnsQuestion};
use crate::events;
use crate::telemetry::names::{KnownView, NameView};
use crate::tick::Tick;

/// Good answers in a row after which a failure is over, as far as people are told; one that comes now and then is told once.
const OVER: u32 = 3;
/// Answers in a row that were not good, after which another node had better ask.
pub(super) const FAILING: u32 = 3;
/// Another reason for the same trouble is told after so long.
const TOLD_AGAIN: Duration = Duration::from_mins(1);

/// What is known of one name.
#[derive(Debug, Default)]
pub(super) struct KnownName {
    addresses: KnownAddresses,
    /// As those who make backends of them see them.
    pub(super) found: Arc<[FoundAddress]>,
    /// Of the latest good answer, and when that came.
    ttl: Option<Duration>,
    answered: Option<(Tick, SystemTime)>,
    trouble: Option<(String, SystemTime)>,
    failures: u32,
    /// The latest answer that this node has asked for, since it was told by another one, was good.
    is_good: bool,
    good_in_row: u32,
    /// The trouble that people know of, and when they were told.
    told: Option<(String, Tick)>,
    beyond: usize,
}

impl KnownName {
    /// Whether anything was ever heard of it, good or not.
    pub(super) fn was_asked(&self) -> bool {
        self.ttl.is_some() || self.failures > 0
    }

    /// Failures in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// For how long the latest good answer still holds; zero: it is to be asked for.
    pub(super) fn holds(&self, now: Tick) -> Duration {
        match (self.ttl, self.answered) {
            (Some(ttl), Some((at, _))) if self.failures == 0 => ttl.saturating_sub(now.since(at)),
            _ => Duration::ZERO,
        }
    }

    /// Takes in a good answer, whose TTL is within its bounds. Says whether anything differs.
    pub(super) fn take(
        &mut self,
        question: &DnsQuestion,
        answer: &NameAnswer,
        rules: HoldRules,
        now: Tick,
    ) -> bool {
        let mut merged = self.addresses.take(answer, rules, now);
        merged.beyond += answer.omitted;
        if merged.beyond > 0 && self.beyond == 0 {
            events::name_has_too_many(question, merged.beyond, rules.most);
        }
        self.trouble = None;
        self.good_in_row = self.good_in_row.saturating_add(1);
        if self.good_in_row >= OVER && self.told.take().is_some() {
            events::name_found_again(question, self.addresses.len());
        }
        (self.beyond, self.failures, self.is_good) = (merged.beyond, 0, true);
        (self.ttl, self.answered) = (Some(answer.ttl), Some((now, SystemTime::now())));
        if merged.differs() {
            self.found = found(question, &self.addresses).into();
        }
        merged.differs()
    }

    /// There was no good answer.
    pub(super) fn fail(&mut self, question: &DnsQuestion, why: String, now: Tick) {
        self.failures = self.failures.saturating_add(1);
        (self.good_in_row, self.is_good) = (0, false);
        let is_new = match &self.told {
            None => true,
            Some((before, at)) => *before != why && now.since(*at) >= TOLD_AGAIN,
        };
        if is_new {
            events::name_not_found(question, &why, self.addresses.len());
            self.told = Some((why.clone(), now));
        }
        let since = self.trouble.take().map_or_else(SystemTime::now, |(_, since)| since);
        self.trouble = Some((why, since));
    }

    /// Whether the latest answer was good that this node has asked for since it was told.
    pub(super) fn is_good(&self) -> bool {
        self.is_good
    }

    /// Is what another node says that asks for it. Says whether anything differs. Who tells of no address changes nothing.
    pub(super) fn adopt(&mut self, question: &DnsQuestion, told: &ToldAddresses, now: Tick) -> bool {
        if told.heard.is_empty() {
            return false;
        }
        let merged = self.addresses.adopt(&told.heard, now);
        self.trouble = None;
        if self.told.take().is_some() {
            events::name_found_again(question, self.addresses.len());
        }
        (self.failures, self.is_good, self.beyond) = (0, false, 0);
        // Once it asks itself it asks at once.
        (self.ttl, self.answered) = (Some(told.ttl), None);
        if merged.differs() {
            self.found = found(question, &self.addresses).into();
        }
        merged.differs()
    }

    /// Whether no address is known.
    pub(super) fn is_unknown(&self) -> bool {
        self.addresses.is_empty()
    }

    /// What it has come to.
    pub(super) fn finding(&self, question: &DnsQuestion) -> NameFinding {
        let asked = match &self.trouble {
            Some((why, _)) if self.failures >= FAILING => NameAsked::Failing(why.clone()),
            None if self.is_good => NameAsked::Good,
            _ => NameAsked::NotYet,
        };
        let known = ToldAddresses { heard: self.addresses.heard(), ttl: self.ttl.unwrap_or_default() };
        NameFinding { question: question.clone(), known, asked }
    }

    /// As it is shown. `by`: the node that asks for it.
    pub(super) fn view(&self, question: &DnsQuestion, by: Option<&Arc<str>>) -> NameView {
        let of = |(address, known): (&SocketAddr, &KnownAddress)| KnownView {
            address: if address.port() == 0 { address.ip().to_string() } else { address.to_string() },
            absent: known.absent,
        };
        NameView {
            question: question.clone(),
            addresses: self.addresses.iter().map(of).collect(),
            ttl: self.ttl,
            answered_ms: self.answered.map(|(_, at)| since_1970(at)),
            trouble: self.trouble.as_ref().map(|(why, since)| (why.clone(), since_1970(*since))),
            beyond: self.beyond,
            asked_by: by.cloned(),
        }
    }
}

/// Milliseconds since 1970.
fn since_1970(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The addresses as backends are made of them. Weights of SRV records (RFC 2782: 0 to 65,535, where 0 is a little) become ours; of their
/// priorities only the order counts.
fn found(question: &DnsQuestion, known: &KnownAddresses) -> Vec<FoundAddress> {
    let is_service = question.kind == DnsKind::Services;
    let mut heaviest: BTreeMap<u16, u16> = BTreeMap::new();
    for (_, one) in known.iter() {
        let most = heaviest.entry(one.priority).or_default();
        *most = one.weight.max(*most);
    }
    let tiers: HashMap<u16, u8> = heaviest
        .keys()
        .enumerate()
        .map(|(tier, priority)| (*priority, u8::try_from(tier).unwrap_or(u8::MAX)))
        .collect();
    let of = |(address, one): (&SocketAddr, &KnownAddress)| FoundAddress {
        address: *address,
        weight: is_service
            .then(|| scaled(one.weight, heaviest.get(&one.priority).copied().unwrap_or_default())),
        tier: tiers.get(&one.priority).copied().unwrap_or_default(),
    };
    known.iter().map(of).collect()
}

/// A weight among others of which the heaviest is `most`, from 1 to 256.
fn scaled(weight: u16, most: u16) -> u16 {
    if most <= Portion::WEIGHT_MAX {
        return weight.max(1);
    }
    let share = u32::from(weight) * u32::from(Portion::WEIGHT_MAX) / u32::from(most);
    u16::try_from(share).unwrap_or(Portion::WEIGHT_MAX).max(1)
}
