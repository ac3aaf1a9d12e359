//! The streams of a connection by their numbers.
//!
//! Each request asks for its streams some twenty times. Numbers are given one after the other, so those of the streams that are open lie close
//! together: their low bits say where one stands, and nothing need be hashed. A peer that leaves numbers out so that many of its streams have the
//! same low bits has each of them looked for in more places, at most in as many as it has streams.
//!
//! Invariants. There are as many `numbers` as `streams`: none, or a power of two. A place is free where the number is [`FREE`], and has no stream then,
//! and one everywhere else. At least a quarter of the places is free, if there are any. No number stands more than `farthest` places behind the one
//! that it asks for.

/// No stream that anybody opens has it: it is that of the connection (RFC 9113 §5.1.1).
const FREE: u32 = 0;
/// Places that there are at first.
const FEW: usize = 4;
/// Places that are kept when no stream is left: who was busy once is not to hold much for ever.
const KEPT: usize = 64;

/// Streams, or what stands for them, each with a number.
#[derive(Debug)]
pub(super) struct Streams<S> {
    numbers: Vec<u32>,
    streams: Vec<Option<S>>,
    count: usize,
    farthest: usize,
}

impl<S> Default for Streams<S> {
    /// None.
    fn default() -> Streams<S> {
        Streams { numbers: Vec::new(), streams: Vec::new(), count: 0, farthest: 0 }
    }
}

impl<S> Streams<S> {
    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// True for none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The one with this number.
    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<&S> {
        self.streams.get(self.find(id)?)?.as_ref()
    }

    /// The one with this number.
    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut S> {
        let place = self.find(id)?;
        self.streams.get_mut(place)?.as_mut()
    }

    /// Adds one. `id`: not 0, and of no other stream that is here.
    #[inline(always)]
    pub(super) fn insert(&mut self, id: u32, stream: S) {
        debug_assert!(id != FREE && self.find(id).is_none());
        if (self.count + 1) * 4 > self.numbers.len() * 3 {
            self.grow();
        }
        let (home, mut steps) = (self.home(id), 0);
        while self.numbers[self.behind(home, steps)] != FREE {
            steps += 1;
        }
        let place = self.behind(home, steps);
        self.numbers[place] = id;
        self.streams[place] = Some(stream);
        self.count += 1;
        self.farthest = self.farthest.max(steps);
    }

    /// Drops the one with this number, where it stands: it is large.
    #[inline]
    pub(super) fn remove(&mut self, id: u32) {
        let Some(place) = self.find(id).filter(|_| id != FREE) else { return };
        self.streams[place] = None;
        self.numbers[place] = FREE;
        self.count -= 1;
        if self.count == 0 {
            self.farthest = 0;
            if self.numbers.len() > KEPT {
                *self = Streams::default();
            }
        }
    }

    /// What it takes to go through all of them: places, whether somebody has them or not.
    pub(super) fn places(&self) -> usize {
        self.numbers.len()
    }

    /// The numbers of all.
    pub(super) fn ids(&self) -> impl Iterator<Item = u32> {
        self.numbers.iter().copied().filter(|&id| id != FREE)
    }

    /// All of them.
    pub(super) fn values(&self) -> impl Iterator<Item = &S> {
        // Numbers lie closer together than streams.
        let taken = self.numbers.iter().zip(&self.streams).filter(|(id, _)| **id != FREE);
        taken.filter_map(|(_, stream)| stream.as_ref())
    }

    /// All of them.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut S> {
        let taken = self.numbers.iter().zip(&mut self.streams).filter(|(id, _)| **id != FREE);
        taken.filter_map(|(_, stream)| stream.as_mut())
    }

    /// Where this number stands.
    #[inline]
    fn find(&self, id: u32) -> Option<usize> {
        let home = self.home(id);
        (0..=self.farthest)
            .map(|steps| self.behind(home, steps))
            .find(|&place| self.numbers.get(place) == Some(&id))
    }

    /// The place that a number asks for. One of two that follow each other is the peer's, so the lowest bit is the same in all.
    #[inline]
    fn home(&self, id: u32) -> usize {
        self.behind((id >> 1) as usize, 0)
    }

    /// The place so many steps behind this one; behind the last one comes the first.
    #[inline]
    fn behind(&self, place: usize, steps: usize) -> usize {
        (place + steps) & self.numbers.len().wrapping_sub(1)
    }

    /// Twice as many places.
    #[cold]
    fn grow(&mut self) {
        let places = (self.numbers.len() * 2).max(FEW);
        let numbers = std::mem::replace(&mut self.numbers, vec![FREE; places]);
        let room = std::iter::repeat_with(|| None).take(places).collect();
        let streams = std::mem::replace(&mut self.streams, room);
        (self.count, self.farthest) = (0, 0);
        for (id, stream) in numbers.into_iter().zip(streams) {
            if let Some(stream) = stream {
                self.insert(id, stream);
            }
        }
    }
}

#[cfg(test)]
mod tests;
