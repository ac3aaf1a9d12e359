//! The dynamic table (RFC 7541 §2.3.2, §4): the latest lines, each whole and with its verdict.
//!
//! Lines stand one behind the other in one piece of memory, the oldest first. Those that were evicted stay there until the room is needed,
//! and then the others are moved to the front. As a line counts 32 bytes beside its name and value, and takes 4, the live
//! ones always find room in as many bytes as the table may count.

use std::collections::VecDeque;

use super::line::{FieldLine, LineKind, MARKS, OVERHEAD};

/// First room for lines, in bytes.
const ROOM: usize = 256;

/// Where a line stands, and what is known of it.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Bytes that were ever appended before it, since the table was empty; it wraps.
    start: u32,
    length: u32,
    name: u32,
    kind: LineKind,
    known: u8,
}

impl Place {
    /// What the line counts.
    fn size(&self) -> usize {
        self.length as usize - MARKS + OVERHEAD
    }
}

/// The lines that a peer may name by index.
#[derive(Debug)]
pub(super) struct LineTable {
    bytes: Vec<u8>,
    places: VecDeque<Place>,
    /// Of the bytes that were ever appended: those that are no longer there.
    gone: u32,
    /// What the lines count, in bytes.
    size: usize,
    /// What they may count, in bytes.
    most: usize,
    /// How often it was changed.
    changes: u64,
}

impl LineTable {
    /// An empty table, which holds no memory.
    pub(super) fn new(most: usize) -> LineTable {
        LineTable { bytes: Vec::new(), places: VecDeque::new(), gone: 0, size: 0, most, changes: 0 }
    }

    /// The line at `age`: the latest one has 0.
    #[inline]
    pub(super) fn get(&self, age: usize) -> Option<FieldLine<'_>> {
        let place = self.places.get(self.places.len().wrapping_sub(age + 1))?;
        let start = place.start.wrapping_sub(self.gone) as usize;
        let bytes = self.bytes.get(start..start + place.length as usize)?;
        Some(FieldLine { bytes, name: place.name as usize, kind: place.kind, known: place.known })
    }

    /// Adds a line and evicts those for which there is no longer room. One that is larger than the table empties it.
    pub(super) fn insert(&mut self, line: &FieldLine<'_>) {
        self.changes += 1;
        let size = line.size();
        self.evict(self.most.saturating_sub(size));
        if size > self.most {
            return;
        }
        self.make_room(line.bytes.len());
        let start = self.gone.wrapping_add(self.bytes.len() as u32);
        self.bytes.extend_from_slice(line.bytes);
        self.places.push_back(Place {
            start,
            length: line.bytes.len() as u32,
            name: line.name as u32,
            kind: line.kind,
            known: line.known,
        });
        self.size += size;
    }

    /// Changes what the lines may count. Memory for more than that is given back.
    pub(super) fn resize(&mut self, most: usize) {
        self.changes += 1;
        self.evict(most);
        self.most = most;
        if self.bytes.capacity() > most {
            self.move_to_front();
            self.bytes.shrink_to(most);
            self.places.shrink_to(0);
        }
    }

    /// Evicts the oldest lines until the others count at most `most`.
    fn evict(&mut self, most: usize) {
        while self.size > most
            && let Some(oldest) = self.places.pop_front()
        {
            self.size -= oldest.size();
        }
        if self.places.is_empty() {
            self.bytes.clear();
        }
    }

    /// Sees to it that a line of so many bytes has room behind the others.
    fn make_room(&mut self, length: usize) {
        if self.bytes.capacity() - self.bytes.len() >= length {
            return;
        }
        self.move_to_front();
        let wanted = self.bytes.len() + length;
        // Where a quarter stays free, lines are not moved again soon.
        if wanted > self.bytes.capacity() / 4 * 3 && self.bytes.capacity() < self.most {
            let room = (self.bytes.capacity() * 2).max(ROOM).min(self.most).max(wanted);
            self.bytes.reserve_exact(room - self.bytes.len());
        }
    }

    /// Takes out the bytes of lines that were evicted.
    fn move_to_front(&mut self) {
        let first = self.places.front().map(|place| place.start.wrapping_sub(self.gone) as usize);
        let dead = first.unwrap_or(self.bytes.len());
        self.bytes.drain(..dead);
        self.gone = self.gone.wrapping_add(dead as u32);
    }

    /// How often lines were added, or the size was changed: what an index means changes with nothing else.
    #[inline]
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Bytes of memory that it holds beside itself, used or not. At most twice what it may count, and 64.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity() + self.places.capacity() * size_of::<Place>()
    }

    /// What the lines count, and what they may.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.size, self.most)
    }

    /// All lines, the latest first.
    #[cfg(test)]
    pub(super) fn lines(&self) -> impl Iterator<Item = FieldLine<'_>> {
        (0..self.places.len()).filter_map(|age| self.get(age))
    }
}
