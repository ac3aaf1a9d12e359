//! Which requests are kept, and among whom.

use crate::message::{Blame, Cause, Record, RecordKind};
use crate::tick::Tick;

/// Why a request is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum KeptFor {
    /// It failed, by a fault of ours or of a backend: also where the backend's own error was passed on.
    #[default]
    Failed,
    /// It went out more than once.
    Retried,
    /// It took longer than nearly all of its target did within the last minute.
    Slow,
    /// It was refused or came to nothing by its client's doing.
    Refused,
    /// It stands for a thousand others.
    Sampled,
}

/// How many requests one stands for that is kept without a reason of its own.
pub const ONE_IN: u64 = 1000;

impl KeptFor {
    /// Every reason, in the order of its number.
    pub const ALL: &'static [KeptFor] =
        &[KeptFor::Failed, KeptFor::Retried, KeptFor::Slow, KeptFor::Refused, KeptFor::Sampled];

    /// Its name.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            KeptFor::Failed => "failed",
            KeptFor::Retried => "retried",
            KeptFor::Slow => "slow",
            KeptFor::Refused => "refused",
            KeptFor::Sampled => "sampled",
        }
    }

    /// Whether a request that is kept for this is traced also if it was not sampled.
    #[must_use]
    pub const fn is_worth_a_trace(self) -> bool {
        match self {
            KeptFor::Failed | KeptFor::Retried | KeptFor::Slow => true,
            // There may be any number of them, and nothing is wrong with whoever was asked.
            KeptFor::Refused | KeptFor::Sampled => false,
        }
    }

    /// In which ring it lies. What clients do to themselves pushes out no failure of a backend, and a sample neither.
    pub(super) const fn ring(self) -> usize {
        match self {
            KeptFor::Failed => 0,
            KeptFor::Retried | KeptFor::Slow => 1,
            KeptFor::Refused => 2,
            KeptFor::Sampled => 3,
        }
    }

    /// Why `record`, which is over, is kept where longer than `slow` nanoseconds is slow; `None`: only if its turn as a sample has come.
    #[inline]
    #[must_use]
    pub fn of(record: &Record, slow: u64) -> Option<KeptFor> {
        if record.cause != Cause::Done {
            if record.cause == Cause::TooManyConnections {
                // A crowd at the door pushes out no failure either.
                return Some(KeptFor::Refused);
            }
            match record.cause.blame() {
                Blame::Local | Blame::Backend => return Some(KeptFor::Failed),
                Blame::Client => return Some(KeptFor::Refused),
                Blame::Nobody => {}
            }
        }
        // What a server does not know of HTTP is no failure of it: who wants it to say so has only to ask for it.
        let meaning = record.meaning();
        if meaning >= 500 && !matches!(meaning, 501 | 505) {
            return Some(KeptFor::Failed);
        }
        if record.attempts_made > 1 || record.attempts_made == 1 && record.attempts[0].resent {
            return Some(KeptFor::Retried);
        }
        // How long a tunnel stays open is its ends' business.
        let is_slow = record.done.0.saturating_sub(record.started.0) > slow
            && record.kind == RecordKind::Http
            && record.started != Tick::ZERO;
        is_slow.then_some(KeptFor::Slow)
    }
}

/// How many pieces of memory each ring has, of so many: half for failures, a quarter for what was retried or slow.
pub(super) const fn shares(pieces: u64) -> [u64; 4] {
    let [half, quarter, eighth] = [pieces / 2, pieces / 4, pieces / 8];
    [half, quarter, eighth, pieces - half - quarter - eighth]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Attempt, BackendId};

    #[test]
    fn each_reason_has_its_number_and_a_name_of_its_own() {
        for (number, why) in KeptFor::ALL.iter().enumerate() {
            assert_eq!(*why as usize, number);
            assert_eq!(KeptFor::ALL.iter().filter(|other| other.token() == why.token()).count(), 1);
        }
    }

    #[test]
    fn a_request_is_kept_for_the_worst_that_happened_to_it() {
        let of = |change: &dyn Fn(&mut Record)| {
            let mut record = Record { status: 200, started: Tick(100), done: Tick(200), ..Record::default() };
            record.attempt(BackendId(1), Tick(110));
            change(&mut record);
            KeptFor::of(&record, 100)
        };
        assert_eq!(of(&|_| ()), None);
        assert_eq!(of(&|record| record.status = 404), None, "what a backend says of a path");
        assert_eq!(of(&|record| record.status = 500), Some(KeptFor::Failed));
        assert_eq!(of(&|record| record.status = 501), None, "a method that a backend does not know");
        assert_eq!(of(&|record| record.done = Tick(201)), Some(KeptFor::Slow));
        assert_eq!(of(&|record| record.attempts[0] = Attempt { resent: true, ..record.attempts[0] }), {
            Some(KeptFor::Retried)
        });
        let again = |record: &mut Record| {
            record.attempt(BackendId(2), Tick(120));
        };
        assert_eq!(of(&again), Some(KeptFor::Retried));
        for (cause, why) in [
            (Cause::ConnectFailed, Some(KeptFor::Failed)),
            (Cause::QueueFull, Some(KeptFor::Failed)),
            (Cause::TooManyConnections, Some(KeptFor::Refused)),
            (Cause::AnswerCut, Some(KeptFor::Failed)),
            (Cause::RateLimited, Some(KeptFor::Refused)),
            (Cause::ClientGone, Some(KeptFor::Refused)),
            (Cause::TunnelIdle, None),
        ] {
            let failed = |record: &mut Record| {
                record.cause = cause;
                record.attempts_made += u8::from(why.is_some());
            };
            assert_eq!(of(&failed), why, "{cause}");
        }
        let long = |record: &mut Record| {
            (record.kind, record.done) = (RecordKind::Upgrade, Tick(999));
        };
        assert_eq!(of(&long), None);
    }

    #[test]
    fn shares_are_all_there_is_and_none_is_empty() {
        for pieces in 8..100 {
            let shares = shares(pieces);
            assert_eq!(shares.iter().sum::<u64>(), pieces);
            assert!(shares.iter().all(|share| *share > 0));
            assert!(shares[0] * 2 >= pieces - 1);
        }
    }
}
