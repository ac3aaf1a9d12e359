//! Entries by number, made when first asked for and never moved: grows while others read it.
//!
//! The first 32 slots are at hand: most configs need no more. The floors above double in size (64, 128 … slots) and hang on
//! `OnceLock`s, so growing moves nothing, takes no lock that a reader could hold, and an entry that was once
//! seen stays where it is.

use std::sync::OnceLock;

/// Slots on the first floor; floor `k` has this many shifted left by `k`.
const FIRST: u64 = 32;
/// Number of floors.
const FLOORS: usize = 16;
/// Numbers that have an entry of their own: 2,097,120.
pub(super) const SLOTS: u64 = FIRST * ((1 << FLOORS) - 1);

type Slot<T> = OnceLock<Box<T>>;

/// Entries by number. One thread asks with [`Table::entry`]; any thread reads.
#[derive(Debug)]
pub(super) struct Table<T> {
    first: [Slot<T>; FIRST as usize],
    /// Floors from the second on.
    above: [OnceLock<Box<[Slot<T>]>>; FLOORS - 1],
    /// Shared by all numbers from [`SLOTS`] on, so that memory stays bounded whatever the numbers are.
    rest: Slot<T>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table {
            first: [const { OnceLock::new() }; FIRST as usize],
            above: [const { OnceLock::new() }; FLOORS - 1],
            rest: OnceLock::new(),
        }
    }
}

impl<T: Default> Table<T> {
    /// The entry of `number`, made if this is the first time.
    #[inline(always)]
    pub(super) fn entry(&self, number: u32) -> &T {
        let slot = match self.first.get(number as usize) {
            Some(slot) => slot,
            None => self.slot_above(number),
        };
        slot.get_or_init(Box::default)
    }

    /// The entry of `number`, if it was ever asked for. The shared one is nobody's.
    pub(super) fn met(&self, number: u32) -> Option<&T> {
        let (floor, place) = locate(number)?;
        let slots = if floor == 0 { &self.first } else { &**self.above[floor - 1].get()? };
        slots.get(place)?.get().map(|entry| &**entry)
    }

    #[inline(never)]
    fn slot_above(&self, number: u32) -> &Slot<T> {
        let Some((floor, place)) = locate(number) else { return &self.rest };
        let slots =
            self.above[floor - 1].get_or_init(|| (0..FIRST << floor).map(|_| OnceLock::new()).collect());
        &slots[place]
    }

    /// Every entry made so far with its number; the shared one comes last, as number `SLOTS`.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let floors = (1..).zip(&self.above).filter_map(|(k, floor)| Some((k, &**floor.get()?)));
        let floors = std::iter::once((0, &self.first[..])).chain(floors);
        let own = floors.flat_map(|(k, slots): (u32, &[Slot<T>])| {
            let first = (FIRST << k) - FIRST;
            (first..).zip(slots).filter_map(|(number, slot)| Some((number, &**slot.get()?)))
        });
        let rest = self.rest.get().map(|entry| (SLOTS, &**entry));
        // Every number here is at most SLOTS, which is far below u32::MAX.
        own.chain(rest).map(|(number, entry)| (u32::try_from(number).unwrap_or(u32::MAX), entry))
    }
}

/// Floor, counted from the first, and place of `number`; `None` when it has no slot of its own.
fn locate(number: u32) -> Option<(usize, usize)> {
    let shifted = u64::from(number) + FIRST;
    let floor = shifted.ilog2() - FIRST.ilog2();
    let place = shifted - (FIRST << floor);
    let floor = usize::try_from(floor).ok().filter(|&floor| floor < FLOORS)?;
    Some((floor, usize::try_from(place).ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::counter::Counter;
    use super::*;

    #[test]
    fn every_number_has_its_own_slot_until_the_table_is_full() {
        let table: Table<Counter> = Table::default();
        for number in [0, 31, 32, 95, 96, 1000, 70_000] {
            table.entry(number).add(u64::from(number) + 1);
        }
        let last = u32::try_from(SLOTS).expect("fits") - 1;
        assert_eq!(locate(last), Some((FLOORS - 1, (32 << (FLOORS - 1)) - 1)));
        assert_eq!(locate(last + 1), None);
        table.entry(last + 1).add(7);
        table.entry(u32::MAX).add(8);
        let seen: Vec<(u32, u64)> = table.iter().map(|(number, entry)| (number, entry.value())).collect();
        let mut expected: Vec<(u32, u64)> =
            [0, 31, 32, 95, 96, 1000, 70_000].map(|n: u32| (n, u64::from(n) + 1)).to_vec();
        expected.push((last + 1, 15));
        assert_eq!(seen, expected);
    }

    #[test]
    fn slots_are_dense() {
        let mut expected = (0, 0);
        for number in 0..5000 {
            assert_eq!(locate(number), Some(expected));
            expected.1 += 1;
            if expected.1 == 32 << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
    }
}
