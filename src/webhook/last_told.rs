//! What receivers believe of backends and targets: those that were last told to be down. Of all others nothing was told, or that they
//! are up, so a process that starts with everything well has nothing to tell, and one that starts again tells what differs.

use std::collections::BTreeSet;

use crate::config::model::WebhookEvent;

/// Whether an event is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToldNews {
    /// It is, and nothing is believed otherwise.
    Plain,
    /// It is, and its object is down from now on.
    Down,
    /// It is, and its object is up from now on.
    Up,
    /// It is what was told last.
    Old,
}

/// The objects that were last told to be down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LastTold {
    down: BTreeSet<String>,
}

impl LastTold {
    /// Takes an event in.
    pub(super) fn hear(&mut self, event: WebhookEvent, object: Option<&str>) -> ToldNews {
        let object = object.unwrap_or_default();
        match event {
            WebhookEvent::BackendDown | WebhookEvent::TargetDown => {
                if self.down.insert(object.to_owned()) {
                    ToldNews::Down
                } else {
                    ToldNews::Old
                }
            }
            WebhookEvent::BackendUp | WebhookEvent::TargetUp => {
                if self.down.remove(object) {
                    ToldNews::Up
                } else {
                    ToldNews::Old
                }
            }
            WebhookEvent::Reload
            | WebhookEvent::Rollback
            | WebhookEvent::CertificateExpires
            | WebhookEvent::RenewalOverdue
            | WebhookEvent::ScaleOut
            | WebhookEvent::ScaleIn => ToldNews::Plain,
        }
    }

    /// Of this object it is known what was told; nothing else is changed.
    pub(super) fn set(&mut self, object: &str, is_down: bool) {
        if is_down {
            self.down.insert(object.to_owned());
        } else {
            self.down.remove(object);
        }
    }

    /// Forgets those that are not there any more; which.
    pub(super) fn retain(&mut self, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        let gone: Vec<String> = self.down.iter().filter(|object| !is_there(object)).cloned().collect();
        self.down.retain(|object| is_there(object));
        gone
    }

    /// All of them.
    pub(super) fn down(&self) -> impl Iterator<Item = &str> {
        self.down.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_from_what_was_told_last_is_news() {
        let mut told = LastTold::default();
        let mut hear = |event, object: &str| told.hear(event, Some(object));
        assert_eq!(hear(WebhookEvent::BackendUp, "web/b1"), ToldNews::Old, "that is what everybody thinks");
        assert_eq!(hear(WebhookEvent::BackendDown, "web/b1"), ToldNews::Down);
        assert_eq!(hear(WebhookEvent::BackendDown, "web/b1"), ToldNews::Old);
        assert_eq!(hear(WebhookEvent::TargetDown, "web"), ToldNews::Down);
        assert_eq!(hear(WebhookEvent::BackendUp, "web/b1"), ToldNews::Up);
        assert_eq!(hear(WebhookEvent::BackendUp, "web/b1"), ToldNews::Old);
        assert_eq!(hear(WebhookEvent::Reload, ""), ToldNews::Plain);
        assert_eq!(hear(WebhookEvent::Reload, ""), ToldNews::Plain);
        assert_eq!(told.down().collect::<Vec<_>>(), ["web"]);
        assert_eq!(told.retain(|object| object != "web"), ["web"]);
        assert_eq!(told, LastTold::default());
    }
}
