//! What is said of a collector: that it fails, and that it works again. One that takes every other batch is no news each time.

use std::time::Duration;

use crate::tick::Tick;

/// What was said to be over is not said anew within this time.
const QUIET: Duration = Duration::from_secs(60);

/// It takes nothing, or not all.
#[derive(Debug)]
struct Failing {
    since: Tick,
    /// Why, the last time.
    kind: String,
    is_said: bool,
}

/// What was said of it, and what is to be.
#[derive(Debug, Default)]
pub(super) struct CollectorNews {
    failing: Option<Failing>,
    /// When it was said to work again, after which kind of failure.
    worked: Option<(Tick, String)>,
}

impl CollectorNews {
    /// It has failed at `now`, in this way: whether that is to be said.
    pub(super) fn fails(&mut self, kind: &str, now: Tick) -> bool {
        let before = self.failing.take();
        let since = before.as_ref().map_or(now, |failing| failing.since);
        let was_over = |(at, known): &(Tick, String)| known == kind && now.since(*at) < QUIET;
        let is_known = match &before {
            Some(failing) if failing.is_said => failing.kind == kind,
            Some(failing) => failing.kind == kind && now.since(since) < QUIET,
            None => self.worked.as_ref().is_some_and(was_over),
        };
        let was_said = before.is_some_and(|failing| failing.is_said);
        self.failing = Some(Failing { since, kind: kind.to_owned(), is_said: was_said || !is_known });
        !is_known
    }

    /// It has taken everything at `now`: after which time that is to be said, if it is.
    pub(super) fn works(&mut self, now: Tick) -> Option<Duration> {
        let failing = self.failing.take().filter(|failing| failing.is_said)?;
        self.worked = Some((now, failing.kind));
        Some(now.since(failing.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Tick {
        Tick(seconds * 1_000_000_000)
    }

    #[test]
    fn a_reason_is_said_once_and_its_end_too() {
        let mut news = CollectorNews::default();
        assert_eq!(news.works(at(0)), None);
        assert!(news.fails("refused", at(1)) && !news.fails("refused", at(2)) && news.fails("503", at(3)));
        assert_eq!(news.works(at(5)), Some(Duration::from_secs(4)));
        assert_eq!(news.works(at(6)), None);
    }

    #[test]
    fn one_that_takes_every_other_batch_is_told_of_once_a_minute() {
        let mut news = CollectorNews::default();
        let mut said = [0, 0];
        for second in 0..600 {
            if second % 2 == 0 {
                said[0] += u32::from(news.fails("503", at(second)));
            } else {
                said[1] += u32::from(news.works(at(second)).is_some());
            }
        }
        assert_eq!(said, [10, 10]);
        assert!(news.fails("refused", at(600)), "that is something else");
    }

    #[test]
    fn what_does_not_pass_is_said_after_all() {
        let mut news = CollectorNews::default();
        assert!(news.fails("503", at(0)) && news.works(at(1)).is_some());
        let said: Vec<u64> = (2..200).filter(|second| news.fails("503", at(*second))).collect();
        assert_eq!(said, [62]);
        assert_eq!(news.works(at(200)), Some(Duration::from_secs(198)));
    }
}
