//! How often the same trouble is told: once, and again only when it lasts or comes back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::tick::Tick;

/// Trouble that lasts is told again after this time.
const LASTING: Duration = Duration::from_secs(10);
/// Trouble that was over is told again at the earliest after this time: some comes and goes with every request.
const RETURNING: Duration = Duration::from_secs(1);
/// The bit of the word that says that it was over; the rest is when it was told last, to 2 ns.
const OVER: u64 = 1;

/// Trouble with one backend, shared by all threads.
#[derive(Debug, Default)]
pub struct Complaint(AtomicU64);

impl Complaint {
    /// True when trouble at `now` is to be told; of all threads that ask at the same time one is told so.
    #[must_use]
    pub fn is_due(&self, now: Tick) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        let silence = if word & OVER == 0 { LASTING } else { RETURNING };
        if word != 0 && now < Tick(word).after(silence) {
            return false;
        }
        // Never zero, which means that nothing was ever told.
        let told = now.0.max(2) & !OVER;
        self.0.compare_exchange(word, told, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Notes that all is well. Without any trouble before it costs one load.
    pub fn settle(&self) {
        let word = self.0.load(Ordering::Relaxed);
        if word != 0 && word & OVER == 0 {
            // Whoever has changed it meanwhile knows better.
            let _ = self.0.compare_exchange(word, word | OVER, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn trouble_is_told_once_while_it_lasts_and_again_when_it_comes_back() {
        let complaint = Complaint::default();
        let told: Vec<u64> = (1..25).filter(|&second| complaint.is_due(Tick(second * SECOND))).collect();
        assert_eq!(told, [1, 11, 21]);
        complaint.settle();
        assert!(complaint.is_due(Tick(26 * SECOND)), "it is new");
        assert!(!complaint.is_due(Tick(27 * SECOND)));
    }

    #[test]
    fn trouble_that_comes_and_goes_is_told_once_a_second() {
        let complaint = Complaint::default();
        let told = (0..1000u64).filter(|&turn| {
            complaint.settle();
            complaint.is_due(Tick(turn * SECOND / 100))
        });
        assert_eq!(told.count(), 10);
    }

    #[test]
    fn of_many_threads_one_tells_it() {
        let complaints: Vec<Complaint> = (0..10_000).map(|_| Complaint::default()).collect();
        let ask = || complaints.iter().filter(|complaint| complaint.is_due(Tick(SECOND))).count();
        let told: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        assert_eq!(told, complaints.len());
    }
}
