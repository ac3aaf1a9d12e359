//! Memory that a crowd has left behind.
//!
//! The allocator gives free pages back to the system while it is asked for memory, so a worker that has gone quiet after a crowd would keep its
//! peak for as long as it is quiet. It is told once, when that has lasted for a moment: looking through the heap takes milliseconds.

#![expect(unsafe_code, reason = "the allocator's own call, which is foreign to the compiler")]

/// A crowd of fewer than these leaves nothing worth looking for.
const CROWD: usize = 256;
/// Looks at a worker that is quiet before its memory is given back.
const QUIET: u32 = 4;

/// What one worker had to do, as it is seen from time to time.
#[derive(Debug, Default)]
pub(super) struct SpareMemory {
    /// The most since memory was given back last.
    peak: usize,
    /// Looks since it was more than half of that.
    quiet: u32,
}

impl SpareMemory {
    /// Takes note of how many connections and requests there are. True: memory is to be given back.
    pub(super) fn look(&mut self, inside: usize) -> bool {
        self.peak = self.peak.max(inside);
        self.quiet = if inside <= self.peak / 2 { self.quiet + 1 } else { 0 };
        let is_due = self.peak >= CROWD && self.quiet >= QUIET;
        if is_due {
            (self.peak, self.quiet) = (inside, 0);
        }
        is_due
    }
}

/// Gives back what this thread has freed.
pub(super) fn give_back() {
    // SAFETY: it takes no pointer and touches only memory that is free; where another allocator is used there is none.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_when_a_crowd_has_gone_for_a_moment() {
        let mut memory = SpareMemory::default();
        let mut looks = |counts: &[usize]| counts.iter().filter(|count| memory.look(**count)).count();
        assert_eq!(looks(&[0; 20]), 0);
        assert_eq!(looks(&[255, 0, 0, 0, 0, 0, 0, 0]), 0, "no crowd");
        assert_eq!(looks(&[1000, 0, 0, 0]), 0, "it may come back");
        assert_eq!(looks(&[501, 0, 0, 0]), 0, "it has");
        assert_eq!(looks(&[0]), 1);
        assert_eq!(looks(&[0; 100]), 0, "once");
        assert_eq!(looks(&[1000, 500, 500, 500, 500]), 1, "half of it");
        assert_eq!(looks(&[500, 250, 250, 250, 250]), 1, "and half of that");
        assert_eq!(looks(&[250, 125, 125, 125, 125]), 0, "which is no crowd any more");
    }

    #[test]
    fn giving_back_what_there_is_not_is_no_harm() {
        let kept = vec![7u8; 100_000];
        drop(vec![1u8; 10_000_000]);
        give_back();
        assert!(kept.iter().all(|byte| *byte == 7));
    }
}
