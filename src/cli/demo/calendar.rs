//! Who is ill when, and of what: a pure function of the time since the start.

use std::time::Duration;

use super::illness::Illness;

/// One illness of one backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bout {
    /// The place of its backend among all that may fall ill.
    pub(super) backend: usize,
    pub(super) illness: Illness,
    pub(super) from: Duration,
    pub(super) until: Duration,
}

/// All bouts there will ever be: one begins in each span of time, after a third of it, and lasts three eighths. The illnesses take
/// turns, and so do the backends.
#[derive(Clone, Copy, Debug)]
pub(super) struct IllnessCalendar {
    /// From one begin to the next.
    pub(super) every: Duration,
    /// How many backends may fall ill; one at least.
    pub(super) backends: usize,
}

impl IllnessCalendar {
    /// The bout that goes on at a moment, or else the next one.
    pub(super) fn next(&self, since: Duration) -> Bout {
        let span = since.div_duration_f64(self.every) as u32;
        let bout = self.bout(span);
        if since < bout.until { bout } else { self.bout(span + 1) }
    }

    fn bout(&self, span: u32) -> Bout {
        let from = self.every * span + self.every / 3;
        let turn = span as usize;
        Bout {
            backend: turn % self.backends.max(1),
            illness: Illness::ALL[turn % Illness::ALL.len()],
            from,
            until: from + self.every * 3 / 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn calendar() -> IllnessCalendar {
        IllnessCalendar { every: MINUTE, backends: 7 }
    }

    #[test]
    fn once_a_minute_another_backend_is_ill_in_another_way_for_some_twenty_seconds() {
        let mut bouts = Vec::new();
        let mut now = Duration::ZERO;
        // A clock that stands still but for the jumps from the end of one to the next.
        for _ in 0..70 {
            let bout = calendar().next(now);
            assert!(bout.from >= now && bout.until > bout.from, "{bout:?} at {now:?}");
            now = bout.until;
            bouts.push(bout);
        }
        assert_eq!((bouts[0].from, bouts[0].until), (MINUTE / 3, MINUTE / 3 + MINUTE * 3 / 8));
        for pair in bouts.windows(2) {
            assert_eq!(pair[1].from - pair[0].from, MINUTE);
            assert_ne!(pair[0].backend, pair[1].backend);
            assert_ne!(pair[0].illness, pair[1].illness);
        }
        let of = |bout: &Bout| (bout.backend, bout.illness as usize);
        let known: BTreeSet<(usize, usize)> = bouts[..35].iter().map(of).collect();
        assert_eq!(known.len(), 35, "each backend has had each illness");
        assert!(
            (0..35).all(|turn| of(&bouts[turn]) == of(&bouts[turn + 35])),
            "and so on, in the same order"
        );
    }

    #[test]
    fn the_bout_that_goes_on_is_told_until_its_end() {
        let [first, second] = [Duration::ZERO, MINUTE].map(|since| calendar().next(since));
        let just = Duration::from_nanos(1);
        for (since, expected) in [
            (first.from - just, first),
            (first.from, first),
            (first.until - just, first),
            (first.until, second),
            (second.until - just, second),
        ] {
            assert_eq!(calendar().next(since), expected, "{since:?}");
        }
        // Whoever was asleep meanwhile goes on with what is due now, and makes up for nothing.
        let later = calendar().next(MINUTE * 1_000_000);
        assert_eq!(later.from, MINUTE * 1_000_000 + MINUTE / 3);
    }

    #[test]
    fn it_goes_as_fast_as_is_wanted() {
        let fast = IllnessCalendar { every: Duration::from_secs(2), backends: 1 };
        let bout = fast.next(Duration::from_secs(4));
        assert_eq!((bout.backend, bout.from), (0, Duration::from_secs(4) + Duration::from_secs(2) / 3));
    }
}
