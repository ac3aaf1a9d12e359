//! Points on a ring (Karger et al., STOC 1997), and a bound on each backend's load (Mirrokni, Thorup and Zadimoghaddam:
//! "Consistent Hashing with Bounded Loads", 2016).
//!
//! A key belongs to the first point at or after its own position. When a backend leaves only its keys move, so what moves
//! is its share of the ring. That share is a sum of random arcs: with `v` points for each of `n` backends its deviation is
//! `1/n · √((1 − 1/n) / v)`, largest for two. [`EACH`] makes that 0.2 %, so that no two names are unlucky enough (five
//! deviations) to have shares more than 1 % off.
//!
//! The number of points for each must not depend on how many there are, or one that comes moves keys between the others. Only above
//! [`FULL`] members it is divided: then the `n`-th adds `1/n` to what moves, less than 1 %. Points are
//! those of the *configured* members; a live ring is the same points without those of members that are out.
//!
//! A point is four bytes, so a ring has 16 MiB of them at most, and an index of 2 MiB.

use std::sync::Arc;

use super::algorithm::{Algorithm, Draw};
use super::hashed::{MOST, Weighed, ranked};
use crate::targets::picking::candidates::Lineup;
use crate::targets::picking::hash::{again, hash, scaled};
use crate::targets::queueing::wants::Wants;

/// Points of a member of the greatest weight.
const EACH: usize = 1 << 15;
/// How many members have so many.
const FULL: usize = 128;
/// Points of one bucket, about.
const BUCKET: usize = 8;
/// How many points a walk looks at before it takes all members in turn.
const STEPS: usize = 256;

/// How many places of a walk are looked at before any backend will do.
const LOOKS: usize = 64;

/// The ring of the backends that are up, and the bound on their load.
#[derive(Debug)]
pub(super) struct RingHash {
    /// The ring of all that are configured, for when others are up.
    full: Arc<Ring>,
    live: Arc<Ring>,
    total_weight: u64,
    percent: Option<u32>,
}

impl RingHash {
    fn with(full: Arc<Ring>, lineup: &Lineup<'_>) -> RingHash {
        let live = if lineup.backends.len() == lineup.configured.len() {
            Arc::clone(&full)
        } else {
            // Both are in config order.
            let mut up = lineup.backends.iter().enumerate().peekable();
            let places: Vec<Option<usize>> = lineup
                .configured
                .iter()
                .map(|(identity, _)| {
                    up.next_if(|(_, backend)| backend.identity == *identity).map(|(place, _)| place)
                })
                .collect();
            Arc::new(full.only(|place| places.get(place).copied().flatten()))
        };
        let total_weight = lineup.weights.iter().map(|&weight| u64::from(weight)).sum();
        RingHash { full, live, total_weight, percent: lineup.policy.bounded_load }
    }
}

impl Algorithm for RingHash {
    const WANTS: Wants = Wants::Total;
    const DRAWS: usize = 1;

    fn new(lineup: &Lineup<'_>) -> Self {
        let members: Vec<Weighed<'_>> =
            lineup.configured.iter().map(|(identity, weight)| (&**identity, *weight)).collect();
        RingHash::with(Arc::new(Ring::of(&members)), lineup)
    }

    fn anew(&self, lineup: &Lineup<'_>) -> Self {
        RingHash::with(Arc::clone(&self.full), lineup)
    }

    fn draw(&self, draw: &Draw<'_>) -> Option<usize> {
        let key = draw.key();
        let mut spare = None;
        for place in self.live.walk(key).take(LOOKS).filter(|&place| draw.may(place)) {
            let Some(percent) = self.percent else { return Some(place) };
            let (Some(backend), Some(&weight)) =
                (draw.tier.backends.get(place), draw.tier.weights.get(place))
            else {
                continue;
            };
            let total = draw.board.total();
            if admits(backend.taken(), total, weight, self.total_weight, percent) {
                return Some(place);
            }
            spare = spare.or(Some(place));
        }
        // Nobody near has room: better the key's own than any.
        spare
    }
}

/// A point: 16 bits of its position, and 16 that say whose it is. The bits before them are those of its bucket.
type Point = u32;

/// A ring of points.
#[derive(Debug, Default)]
struct Ring {
    /// In the order of their positions.
    points: Box<[Point]>,
    /// For each bucket, which is what a position begins with, its first point; and the end.
    starts: Box<[u32]>,
    /// Length of what a position begins with.
    bits: u32,
    /// All places, in an order that follows from the identities.
    places: Box<[u16]>,
}

/// How many points a member of the greatest weight has where so many are configured.
fn each(members: usize) -> usize {
    EACH * FULL / members.max(FULL)
}

impl Ring {
    /// The ring of all configured `members`. A place is an index of `members`.
    #[must_use]
    fn of(members: &[Weighed<'_>]) -> Ring {
        Ring::sized(members, each(members.len().min(MOST)))
    }

    /// The same with `each` points for a member of the greatest weight.
    fn sized(members: &[Weighed<'_>], each: usize) -> Ring {
        let places = ranked(members);
        let greatest = members.iter().map(|&(_, weight)| weight.max(1)).max().unwrap_or(1);
        // Each member with the seed of its points and their number, which is at most `EACH`.
        let mut owners: Vec<(u64, u32)> = Vec::with_capacity(places.len());
        for &place in &places {
            let (identity, weight) = members[usize::from(place)];
            let count = each * usize::from(weight.max(1)) / usize::from(greatest);
            owners.push((hash(identity.as_bytes()), count.max(1) as u32));
        }
        let total: usize = owners.iter().map(|&(_, count)| count as usize).sum();
        let bits = (total / BUCKET).max(2).next_power_of_two().ilog2();

        // Positions are even, so each is put right into its bucket, and only buckets are sorted.
        let mut starts = vec![0u32; (1 << bits) + 1];
        for &(seed, count) in &owners {
            for nth in 1..=count {
                starts[bucket(again(seed, nth), bits) + 1] += 1;
            }
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut points: Vec<Point> = vec![0; total];
        for (rank, &(seed, count)) in (0..).zip(&owners) {
            for nth in 1..=count {
                let position = again(seed, nth);
                let at = &mut next[bucket(position, bits)];
                points[*at as usize] = point(fraction(position, bits), rank);
                *at += 1;
            }
        }
        for range in starts.windows(2) {
            // Where two positions are alike the lower rank comes first.
            let bucket = &mut points[range[0] as usize..range[1] as usize];
            bucket.sort_unstable();
            for point in bucket {
                *point = self::point(fraction_of(*point), places[place_of(*point)]);
            }
        }
        Ring { points: points.into(), starts: starts.into(), bits, places: places.into() }
    }

    /// The same ring without the places for which `live` gives `None`; the others become what it gives.
    #[must_use]
    fn only(&self, live: impl Fn(usize) -> Option<usize>) -> Ring {
        let mut becomes: Vec<Option<u16>> = vec![None; self.places.len()];
        for place in self.places.iter().map(|&place| usize::from(place)) {
            becomes[place] = live(place).and_then(|place| u16::try_from(place).ok());
        }
        let mut points = Vec::with_capacity(self.points.len());
        let mut starts = Vec::with_capacity(self.starts.len());
        for range in self.starts.windows(2) {
            // No more than there were.
            starts.push(points.len() as u32);
            for &point in &self.points[range[0] as usize..range[1] as usize] {
                if let Some(place) = becomes[place_of(point)] {
                    points.push(self::point(fraction_of(point), place));
                }
            }
        }
        starts.push(points.len() as u32);
        let places = self.places.iter().filter_map(|&place| becomes[usize::from(place)]).collect();
        Ring { points: points.into(), starts: starts.into(), bits: self.bits, places }
    }

    /// The places for `key`, best first. It may give a place several times, gives each at least once, and ends: nearly
    /// always the caller takes one of the first.
    #[inline]
    fn walk(&self, key: u64) -> impl Iterator<Item = usize> {
        let (before, after) = self.points.split_at(self.first(key));
        let steps = STEPS.min(16 * self.places.len());
        let mut last = None;
        let around = after.iter().chain(before).take(steps).filter_map(move |&point| {
            // Points side by side are often of one backend, which the caller has just refused.
            let place = place_of(point);
            (last.replace(place) != Some(place)).then_some(place)
        });
        // From a place of the key's own on, so that what is left over does not all go to one backend.
        let (before, after) = self.places.split_at(scaled(again(key, 1), self.places.len()));
        around.chain(after.iter().chain(before).map(|&place| usize::from(place)))
    }

    /// The first point at or after the position `key`; their number behind the last.
    #[inline]
    fn first(&self, key: u64) -> usize {
        let at = bucket(key, self.bits);
        let (Some(&start), Some(&end)) = (self.starts.get(at), self.starts.get(at + 1)) else { return 0 };
        let (start, end) = (start as usize, end as usize);
        let fraction = fraction(key, self.bits);
        start + self.points[start..end].iter().take_while(|&&point| fraction_of(point) < fraction).count()
    }
}

/// What a position begins with; `bits` is 1 to 19.
#[inline]
fn bucket(position: u64, bits: u32) -> usize {
    // At most 19 bits are left.
    position.checked_shr(64 - bits).unwrap_or(0) as usize
}

/// The 16 bits behind it.
#[inline]
fn fraction(position: u64, bits: u32) -> u16 {
    // What is cut off on the left is the bucket.
    (position >> (48 - bits)) as u16
}

fn point(fraction: u16, place: u16) -> Point {
    Point::from(fraction) << 16 | Point::from(place)
}

fn fraction_of(point: Point) -> u16 {
    // The upper half.
    (point >> 16) as u16
}

fn place_of(point: Point) -> usize {
    point as usize & 0xffff
}

/// Whether a backend may have one request more: it would have no more than `percent` of its share, by weight, of all
/// requests of the target, this one included, rounded up. `percent` is at least 100.
///
/// Where `total` is the sum of `in_flight` over the backends that `total_weight` is the sum of, one of them always may.
#[must_use]
fn admits(in_flight: u32, total: u64, weight: u16, total_weight: u64, percent: u32) -> bool {
    // `in_flight + 1 ≤ ⌈a / b⌉` is `in_flight · b < a`.
    let share = u128::from(percent) * (u128::from(total) + 1) * u128::from(weight);
    u128::from(in_flight) * 100 * u128::from(total_weight) < share
}

#[cfg(test)]
mod tests;
