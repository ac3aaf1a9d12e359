//! Whose a message is, where there are several nodes.

use crate::config::model::WebhookEvent;
use crate::events::{Event, EventKind};

/// Whose a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Telling {
    /// This node's alone.
    Own,
    /// An object's, as all nodes find it: the first tells.
    State { object: String, is_down: bool },
    /// Of what each node finds by itself, and one tells.
    Once(String),
}

impl Telling {
    /// Whose the message of this kind is that is made of `event`.
    pub(super) fn of(kind: WebhookEvent, event: &Event) -> Telling {
        let state = |is_down| match event.object() {
            Some(object) => Telling::State { object, is_down },
            None => Telling::Own,
        };
        match kind {
            WebhookEvent::BackendDown | WebhookEvent::TargetDown => state(true),
            WebhookEvent::BackendUp | WebhookEvent::TargetUp => state(false),
            WebhookEvent::Reload if event.kind == EventKind::RevisionInForce => {
                let number = event.facts.get("revision").map(ToString::to_string);
                Telling::Once(format!("{}/{}", kind.name(), number.unwrap_or_default()))
            }
            WebhookEvent::CertificateExpires | WebhookEvent::RenewalOverdue => {
                // Its folder is another one on each node.
                let file = event.facts.text("file").unwrap_or_default();
                let file = file.rsplit('/').next().unwrap_or_default();
                let owner = event.facts.text("owner").unwrap_or_default();
                // When it ends is the same for all, whenever they look; and it is warned of twice.
                let fact = |name| event.facts.get(name).map(ToString::to_string).unwrap_or_default();
                let (ends, warning) = (fact("ends"), fact("warning"));
                Telling::Once(format!("{}/{owner}/{file}/{ends}/{warning}", kind.name()))
            }
            WebhookEvent::Reload
            | WebhookEvent::Rollback
            | WebhookEvent::ScaleOut
            | WebhookEvent::ScaleIn => Telling::Own,
        }
    }
}

/// A message that lies in the store.
pub(super) struct StoredMessage {
    pub(super) id: String,
    /// It lies on this node's disk, too.
    pub(super) is_kept: bool,
    /// For whom it waits.
    pub(super) left: Vec<String>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::events::{self, EventHistory};

    fn of(tell: impl Fn()) -> Telling {
        let history = EventHistory::new();
        let subscriber = tracing_subscriber::registry().with(history.layer());
        tracing::subscriber::with_default(subscriber, tell);
        let event = history.after(0, 1).events.remove(0);
        let name = if event.kind == EventKind::RevisionInForce { "reload" } else { event.kind.name() };
        Telling::of(WebhookEvent::named(name).expect("it is told"), &event)
    }

    #[test]
    fn what_each_node_finds_has_one_key_on_all_of_them() {
        let expires = |file: &'static str, days, warning| {
            of(move || events::certificate_expires("front", Path::new(file), days, 1_800_000_000, warning))
        };
        assert_eq!(
            expires("/a/state/x.pem", 9, 1),
            Telling::Once("certificate_expires/front/x.pem/1800000000/1".to_owned())
        );
        // Also on the two sides of midnight; the second warning is another one, though it may come on the same day.
        assert_eq!(expires("/a/state/x.pem", 9, 1), expires("/b/x.pem", 8, 1));
        assert_ne!(expires("/a/state/x.pem", 9, 1), expires("/a/state/x.pem", 9, 2));
        assert_ne!(expires("/a/state/x.pem", 9, 1), expires("/a/state/y.pem", 9, 1));
        let revision = of(|| events::revision_in_force(7, "ops", "a", &[]));
        assert_eq!(revision, Telling::Once("reload/7".to_owned()));
        // A node's own keys are its own.
        assert_eq!(of(|| events::reloaded(&[])), Telling::Own);
    }
}
