//! What the operator wants of a backend: its `state` in the config, or what was set by hand.

use std::sync::Arc;

use crate::config::model::{BackendConfig, BackendState};
use crate::targets::state::input::Input;
use crate::tick::Tick;

/// The operator's word. `Up` forces nothing: it lets the other inputs decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::targets) struct Operator {
    /// What is wanted, why, and since when.
    pub(in crate::targets) wish: Input<BackendState>,
    /// When a time without requests (`Down`) last ended.
    pub(in crate::targets) back: Tick,
}

impl Default for Operator {
    /// One that has said nothing.
    fn default() -> Operator {
        Operator { wish: Input::new(BackendState::Up, "", Tick::ZERO), back: Tick::ZERO }
    }
}

impl Operator {
    /// What `config` says of a backend that was never seen before.
    pub(in crate::targets) fn of(config: &BackendConfig) -> Operator {
        let mut operator = Operator::default();
        operator.hear(config.state, config.state_by.as_deref(), Tick::ZERO);
        operator
    }

    /// Takes in what is wanted from `now` on, and who says so. Gives what was wanted before, if that was something else.
    pub(in crate::targets) fn hear(
        &mut self,
        state: BackendState,
        by: Option<&str>,
        now: Tick,
    ) -> Option<BackendState> {
        let before = self.wish.word;
        if before == state {
            // Somebody else may want the same now.
            if state != BackendState::Up {
                self.wish.reason = reason(state, by);
            }
            return None;
        }
        self.wish = Input::new(state, reason(state, by), now);
        if before == BackendState::Down {
            self.back = now;
        }
        Some(before)
    }
}

/// Why, as events say it.
fn reason(state: BackendState, by: Option<&str>) -> Arc<str> {
    let who = by.unwrap_or("by the config");
    match (state, by) {
        (BackendState::Drain, _) => format!("drained {who}").into(),
        (BackendState::Down, _) => format!("taken down {who}").into(),
        (BackendState::Up, Some(who)) => format!("let in again {who}").into(),
        // Of an override that is gone nobody knows any more whose it was.
        (BackendState::Up, None) => "let in again".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_has_its_reason_and_the_time_it_began() {
        let mut operator = Operator::default();
        let mut hear = |state, by, now| {
            let before = operator.hear(state, by, Tick(now));
            (before, operator.wish.reason.to_string(), operator.wish.since.0, operator.back.0)
        };
        let by_hand = Some("by hand (uid 0)");
        assert_eq!(hear(BackendState::Up, None, 1), (None, String::new(), 0, 0));
        let up = Some(BackendState::Up);
        assert_eq!(hear(BackendState::Drain, None, 2), (up, "drained by the config".into(), 2, 0));
        let text = "drained by hand (uid 0)";
        assert_eq!(hear(BackendState::Drain, by_hand, 3), (None, text.into(), 2, 0), "the same wish");
        let (drain, text) = (Some(BackendState::Drain), "taken down by hand (uid 0)");
        assert_eq!(hear(BackendState::Down, by_hand, 4), (drain, text.into(), 4, 0));
        let down = Some(BackendState::Down);
        assert_eq!(hear(BackendState::Drain, None, 5), (down, "drained by the config".into(), 5, 5));
        assert_eq!(hear(BackendState::Up, None, 6), (drain, "let in again".into(), 6, 5));
    }
}
