//! How long a client may take over the body of a request.

use std::time::Duration;

use crate::net::now;
use crate::tick::Tick;

/// How long a body may take before `limits.body_rate` counts.
const GRACE: Duration = Duration::from_secs(20);

/// How long we have waited for the client inside one body.
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyPace {
    waited: Duration,
    since: Option<Tick>,
}

impl BodyPace {
    /// It is waited for from now on, if it was not yet. Gives for how long, by what it has earned with `content` bytes at `rate`
    /// bytes per second (0: any).
    pub fn begin(&mut self, content: u64, rate: u64) -> Option<Duration> {
        if self.since.is_some() {
            return None;
        }
        self.since = Some(now());
        Some(allowance(content, rate, self.waited))
    }

    /// Something came. True when it was waited for.
    pub fn end(&mut self) -> bool {
        let Some(since) = self.since.take() else { return false };
        self.waited += now().since(since);
        true
    }
}

/// How much longer a client may keep us waiting inside a body of which `content` bytes came and for which we
/// have waited `waited`: everything beyond the grace must be earned at `rate` bytes per second (0: any).
fn allowance(content: u64, rate: u64, waited: Duration) -> Duration {
    let earned = content.checked_div(rate).map(Duration::from_secs);
    earned.map_or(Duration::MAX, |earned| (GRACE + earned).saturating_sub(waited))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_must_keep_its_rate_once_the_grace_is_over() {
        let seconds = Duration::from_secs;
        assert_eq!(allowance(0, 240, seconds(0)), GRACE);
        assert_eq!(allowance(2400, 240, seconds(25)), seconds(5), "ten seconds more were earned");
        assert_eq!(allowance(239, 240, seconds(20)), seconds(0), "a drip earns nothing");
        assert_eq!(allowance(2400, 240, seconds(90)), seconds(0));
        assert_eq!(allowance(0, 0, seconds(90)), Duration::MAX, "no rate is asked for");
    }
}
