//! Numbers for whoever makes up cases without a fuzzer.

/// A stream of numbers (xorshift64*): the same ones for the same seed.
#[derive(Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Begins one.
    #[must_use]
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed.max(1))
    }

    /// The next one, below `below`.
    pub fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % below
    }

    /// Whether one of so many falls on it.
    pub fn one_in(&mut self, many: usize) -> bool {
        self.next(many) == 0
    }

    /// One of these.
    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.next(all.len())]
    }
}
