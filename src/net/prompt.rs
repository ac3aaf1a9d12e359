//! Whether clients tend to have sent their request by the time they are accepted.
//!
//! Where they have, a [fresh](super::fresh) connection saves telling the event loop of it and taking it back. Where they
//! have not, the first read is in vain and the event loop is told anyway: a system call for nothing on each connection.

use std::cell::Cell;

/// What one request that was there is worth, in such that were not: it has saved that many system calls.
const WORTH: u8 = 6;
/// So many are remembered.
const MOST: u8 = 8 * WORTH;
/// While none is expected every so manieth connection is tried all the same.
const SAMPLE: u8 = 32;

/// What the last connections of a worker were like.
#[derive(Debug)]
pub struct Promptness {
    score: Cell<u8>,
    untried: Cell<u8>,
}

impl Default for Promptness {
    /// The best is expected.
    fn default() -> Promptness {
        Promptness { score: Cell::new(MOST), untried: Cell::new(0) }
    }
}

impl Promptness {
    /// Whether the next connection's request is to be looked for at once.
    pub fn expects(&self) -> bool {
        if self.score.get() > 0 {
            return true;
        }
        let untried = (self.untried.get() + 1) % SAMPLE;
        self.untried.set(untried);
        untried == 0
    }

    /// Notes whether a request that was looked for at once was there.
    pub fn note(&self, was_there: bool) {
        let score = self.score.get();
        self.score.set(if was_there { (score + WORTH).min(MOST) } else { score.saturating_sub(1) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tries(promptness: &Promptness, connections: u32, is_there: impl Fn(u32) -> bool) -> u32 {
        (0..connections)
            .filter(|_| promptness.expects())
            .map(|number| promptness.note(is_there(number)))
            .count() as u32
    }

    #[test]
    fn clients_that_send_late_are_looked_at_rarely_and_others_always() {
        let promptness = Promptness::default();
        assert_eq!(tries(&promptness, 1000, |_| true), 1000);
        assert_eq!(
            tries(&promptness, 1000, |number| number % u32::from(WORTH) == 0),
            1000,
            "one in six is worth it"
        );
        tries(&promptness, 100, |_| false);
        assert_eq!(tries(&promptness, 320, |_| false), 10);
        assert!((0..64).any(|_| promptness.expects()));
        promptness.note(true);
        assert_eq!(tries(&promptness, 100, |_| true), 100, "one that was there is enough");
    }
}
