//! The exact minimum over thousands of places without a scan: what `least_connections` and `least_busy` pick from.
//!
//! A tournament tree of fan-out 8. Its leaves are keys, one per place; each inner node is the minimum of the eight
//! below it, which are one cache line. A pick goes down along the minimum, a change goes up until a minimum stays
//! what it was: five lines either way at 10,000 places.
//!
//! The least key wins. Its high bits are the load (in flight ÷ weight), its low bits settle ties: virtual start tags
//! as in start-time fair queueing (Goyal, Vin, Cheng 1996). Among equal loads the place with the smallest tag is next;
//! being picked moves its tag on by a stride that is the longer the smaller its weight. So equal places take turns
//! exactly, unequal ones share ties by weight, and a place that was busy or out for a while has nothing to catch up. Where several nodes
//! pick from the same places, tags are set anew from time to time, by what each place has had of all of them ([`Rank::order_by`]).
//!
//! Plain data without a clock or a lock: the target keeps it behind its mutex. Nothing is allocated after `new`.

use crate::config::model::OwnerMode;

/// Children of a node: eight keys are a cache line.
const FAN_OUT: usize = 8;

/// Bits of a load behind its binary point. Two different ratios `a ÷ v` and `b ÷ w` of weights up to 256 differ by at
/// least 1 ÷ (v · w) ≥ 2⁻¹⁶, so they differ here as well, and in the same direction; equal ratios are equal.
const FRACTION: u32 = 16;

/// The most requests in flight that are told apart, 2²⁰ − 1.
const LOAD_MAX: u64 = (1 << 20) - 1;

/// Bits of a tag. With the 36 of a load they leave one for [`OUT`].
const TAG_BITS: u32 = 27;

const TAG_MASK: u64 = (1 << TAG_BITS) - 1;

/// Set in the key of a place that may not be picked; behind it stands the tag, for later.
const OUT: u64 = 1 << 63;

/// A leaf behind the last place.
const NOWHERE: u64 = u64::MAX;

/// The longest stride. Strides are the weights' common multiple ÷ weight, hence exact, while that stays below;
/// otherwise they are rounded, by less than 0.1 % up to the weight 256.
const STRIDE_MAX: u32 = 1 << 17;

/// Where the clock stands after tags were renumbered: places that are less than this behind keep their order.
const CLOCK_REST: u32 = 1 << 25;

/// How far apart [`Rank::order_by`] puts places at most. Less than [`CLOCK_REST`], so that renumbering takes none its order; and from there on all have room for two strides.
const BEHIND_MAX: u32 = 1 << 24;

/// Parts of a turn that are told apart, where the longest stride allows it.
const PARTS: u32 = 64;

/// How many places one pick may find refused.
const REFUSALS: usize = 12;

/// Eight siblings.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u64; FAN_OUT]);

impl Line {
    fn least(&self) -> u64 {
        let [a, b, c, d, e, f, g, h] = self.0;
        a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)))
    }

    /// Where `key`, which is among them, comes first.
    fn position(&self, key: u64) -> usize {
        // Without a branch per key: where the minimum lies is not to be foreseen.
        let hits = self.0.iter().rev().fold(0_u32, |hits, &other| hits << 1 | u32::from(other == key));
        hits.trailing_zeros() as usize % FAN_OUT
    }
}

/// What the weight of a place comes to.
#[derive(Clone, Copy, Debug)]
struct Share {
    weight: u32,
    stride: u32,
}

/// Places in the order in which they should be picked.
#[derive(Clone, Debug)]
pub(in crate::targets) struct Rank {
    /// Level by level, from the leaves to the one line at the top.
    lines: Vec<Line>,
    /// Where in `lines` the levels above the leaves begin.
    starts: Vec<usize>,
    /// `None`: all weights are alike; then a load is the number in flight and every stride is 1.
    shares: Option<Box<[Share]>>,
    /// The start tag of the last pick.
    clock: u32,
}

impl Rank {
    /// One place for each of `weights`, all of them idle and in. A weight of 0 is never picked. The order is exact for
    /// weights up to 256.
    #[must_use]
    pub(in crate::targets) fn new(weights: &[u16]) -> Rank {
        Rank::of(weights, shares(weights))
    }

    /// The same with turns so long that [`Rank::order_by`] tells parts of them.
    #[must_use]
    pub(in crate::targets) fn with_parts(weights: &[u16]) -> Rank {
        let alike = || weights.iter().map(|_| Share { weight: 1, stride: 1 }).collect();
        let mut shares = shares(weights).unwrap_or_else(alike);
        let longest = shares.iter().map(|share| share.stride).max().unwrap_or(1);
        let parts = (STRIDE_MAX / longest).clamp(1, PARTS);
        shares.iter_mut().for_each(|share| share.stride *= parts);
        Rank::of(weights, Some(shares))
    }

    fn of(weights: &[u16], shares: Option<Box<[Share]>>) -> Rank {
        let mut lines = vec![Line([NOWHERE; FAN_OUT]); weights.len().div_ceil(FAN_OUT).max(1)];
        let mut starts = Vec::new();
        let mut below = lines.len();
        while below > 1 {
            starts.push(lines.len());
            below = below.div_ceil(FAN_OUT);
            lines.resize(lines.len() + below, Line([NOWHERE; FAN_OUT]));
        }
        let mut rank = Rank { lines, starts, shares, clock: 0 };
        for (place, &weight) in weights.iter().enumerate() {
            // Spread over their strides, so that the picks of the light ones do not come all at once.
            let phase = rank.share(place).stride as usize * place / weights.len();
            let out = if weight == 0 { OUT } else { 0 };
            rank.lines[place / FAN_OUT].0[place % FAN_OUT] = phase as u64 | out;
        }
        rank.rebuild();
        rank
    }

    /// Has equally loaded places stand in the order of how many turns each has `had`, less ones first; whoever was out keeps none from before.
    pub(in crate::targets) fn order_by(&mut self, had: impl Fn(usize) -> f64) {
        let leaves = self.starts.first().copied().unwrap_or(self.lines.len());
        for place in 0..leaves * FAN_OUT {
            let key = self.lines[place / FAN_OUT].0[place % FAN_OUT];
            if key != NOWHERE {
                // What is no number is none.
                let behind = (had(place) * f64::from(self.share(place).stride)) as u64;
                let tag = u64::from(CLOCK_REST) + behind.min(u64::from(BEHIND_MAX));
                self.lines[place / FAN_OUT].0[place % FAN_OUT] = key & !TAG_MASK | tag;
            }
        }
        self.rebuild();
        // Where the next pick begins: what is refused comes behind those that are there.
        let tag = |(_, key): (usize, u64)| u32::try_from(key & TAG_MASK).expect("27 bits");
        self.clock = self.first().map_or(CLOCK_REST, tag);
    }

    /// Notes how many requests `place` has in flight; `None`: it may not be picked. Its turn is kept meanwhile.
    /// Numbers from 2²⁰ − 1 on count alike.
    pub(in crate::targets) fn set(&mut self, place: usize, load: Option<u32>) {
        let Some(&key) = self.lines.get(place / FAN_OUT).map(|line| &line.0[place % FAN_OUT]) else { return };
        if key != NOWHERE {
            self.put(place, self.key(place, load, key & TAG_MASK));
        }
    }

    /// Picks the first place in order for which `take` gives something: the load that it has from then on, the new
    /// request included. `None`: a place is passed over, and loses its turn. After twelve of those nothing is picked.
    pub(in crate::targets) fn pick(&mut self, mut take: impl FnMut(usize) -> Option<u32>) -> Option<usize> {
        let (place, key) = self.first()?;
        match take(place) {
            Some(load) => {
                self.give(place, key, load);
                Some(place)
            }
            None => self.pick_again(place, key, take),
        }
    }

    /// The same after `place` was refused.
    #[cold]
    fn pick_again(
        &mut self,
        place: usize,
        key: u64,
        mut take: impl FnMut(usize) -> Option<u32>,
    ) -> Option<usize> {
        let mut aside = [(place, key); REFUSALS];
        let mut count = 1;
        self.put(place, OUT);
        let mut found = None;
        while count < REFUSALS
            && let Some((place, key)) = self.first()
        {
            if let Some(load) = take(place) {
                found = Some((place, key, load));
                break;
            }
            aside[count] = (place, key);
            count += 1;
            self.put(place, OUT);
        }
        for &(place, key) in &aside[..count] {
            // It has had its turn: among equals the others come before it is asked again. As far ahead of the clock as its
            // stride, no tag goes further, but those that were put there by what they have had.
            let next = self.clock + self.share(place).stride;
            self.put(place, key & !TAG_MASK | u64::from(next));
        }
        let (place, key, load) = found?;
        self.give(place, key, load);
        Some(place)
    }

    /// The first place in order with its key; `None`: all are out.
    fn first(&self) -> Option<(usize, u64)> {
        let top = self.lines.last()?;
        let key = top.least();
        if key >= OUT {
            return None;
        }
        let mut place = top.position(key);
        // The line at the top is the whole of the last level.
        let below = self.starts.iter().rev().skip(1).copied().chain([0]);
        for start in below.take(self.starts.len()) {
            place = place * FAN_OUT + self.lines[start + place].position(key);
        }
        Some((place, key))
    }

    /// Notes that `place`, which has `key`, was picked and has `load` now.
    fn give(&mut self, place: usize, key: u64, load: u32) {
        let tag = u32::try_from(key & TAG_MASK).expect("27 bits");
        let start = tag.max(self.clock);
        let next = start + self.share(place).stride;
        self.clock = start;
        self.put(place, self.key(place, Some(load), u64::from(next)));
        // The next pick may start one stride ahead of the clock, and end two; who was put further ahead stands where that fits.
        if u64::from(start + 2 * STRIDE_MAX) > TAG_MASK {
            self.renumber();
        }
    }

    /// Whether `place` stands there with this load.
    #[cfg(test)]
    pub(in crate::targets) fn agrees(&self, place: usize, load: Option<u32>) -> bool {
        let key = self.lines[place / FAN_OUT].0[place % FAN_OUT];
        key == self.key(place, load, key & TAG_MASK)
    }

    fn share(&self, place: usize) -> Share {
        self.shares.as_ref().map_or(Share { weight: 1, stride: 1 }, |shares| shares[place])
    }

    fn key(&self, place: usize, load: Option<u32>, tag: u64) -> u64 {
        let Some(load) = load else { return OUT | tag };
        let load = u64::from(load).min(LOAD_MAX) << FRACTION;
        match &self.shares {
            None => load << TAG_BITS | tag,
            Some(shares) => match u64::from(shares[place].weight) {
                0 => OUT | tag,
                weight => (load / weight) << TAG_BITS | tag,
            },
        }
    }

    /// Gives `place` another key, and every node above it the minimum that follows.
    fn put(&mut self, place: usize, key: u64) {
        let mut line = &mut self.lines[place / FAN_OUT];
        line.0[place % FAN_OUT] = key;
        let mut at = place / FAN_OUT;
        for &start in &self.starts {
            let least = line.least();
            line = &mut self.lines[start + at / FAN_OUT];
            let node = &mut line.0[at % FAN_OUT];
            if *node == least {
                return;
            }
            *node = least;
            at /= FAN_OUT;
        }
    }

    /// Makes every inner node the minimum of what is below it.
    fn rebuild(&mut self) {
        let mut below = 0;
        for &start in &self.starts {
            for at in 0..start - below {
                let least = self.lines[below + at].least();
                self.lines[start + at / FAN_OUT].0[at % FAN_OUT] = least;
            }
            below = start;
        }
    }

    /// Takes the same off all tags, because they have come to the end of their 27 bits. Only places that are more than
    /// 2²⁵ behind the clock lose their order, among each other.
    ///
    /// The clock goes on by at most one stride per turn of a place: that is once in at least 765 turns of one with the
    /// longest stride there can be, hence a thousandth of a visit per pick where all places have their turns. With
    /// equal weights it is once in 10⁸ turns, and with parts once in 10⁶.
    #[cold]
    fn renumber(&mut self) {
        let off = u64::from(self.clock.saturating_sub(CLOCK_REST));
        let leaves = self.starts.first().copied().unwrap_or(self.lines.len());
        for key in self.lines[..leaves].iter_mut().flat_map(|line| &mut line.0) {
            if *key != NOWHERE {
                *key = *key & !TAG_MASK | (*key & TAG_MASK).saturating_sub(off);
            }
        }
        self.clock = self.clock.min(CLOCK_REST);
        self.rebuild();
    }
}

/// Places with these weights in order. Where nodes share them they stand by what each has had of all nodes, too.
pub(super) fn ranked(owner: OwnerMode, weights: &[u16]) -> Rank {
    match owner {
        OwnerMode::Shared => Rank::new(weights),
        OwnerMode::Soft => Rank::with_parts(weights),
    }
}

/// What each of `weights` comes to; `None` when they are all alike and not 0.
fn shares(weights: &[u16]) -> Option<Box<[Share]>> {
    if weights.iter().all(|&weight| weight == weights[0] && weight > 0) {
        return None;
    }
    // 0 where all weights are.
    let divisor = weights.iter().map(|&weight| weight.into()).fold(0, gcd).max(1);
    // All rounded or none: were some exact, the others' rounding would be in their favour.
    let exact = common_multiple(weights, divisor);
    let share = |&weight: &u16| {
        let weight = u32::from(weight);
        let stride = match exact {
            Some(multiple) => multiple.checked_div(weight / divisor),
            None => (STRIDE_MAX + weight / 2).checked_div(weight),
        };
        Share { weight, stride: stride.unwrap_or(STRIDE_MAX) }
    };
    Some(weights.iter().map(share).collect())
}

/// The least common multiple of the weights ÷ `divisor`, without those that are 0; `None`: it is longer than a stride
/// may be.
fn common_multiple(weights: &[u16], divisor: u32) -> Option<u32> {
    let mut multiple = 1;
    for weight in weights.iter().map(|&weight| u32::from(weight)).filter(|&weight| weight > 0) {
        let weight = weight / divisor;
        multiple = (multiple / gcd(multiple, weight)).checked_mul(weight)?;
        if multiple > STRIDE_MAX {
            return None;
        }
    }
    Some(multiple)
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests;
