//! Whose a message is, where there are several nodes.

use crate::config::model::WebhookEvent;
use crate::events::{Event, EventKind};

const DAY_MS: u64 = 24 * 3_600 * 1_000;

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
                let (owner, day) = (event.facts.text("owner").unwrap_or_default(), event.time / DAY_MS);
                Telling::Once(format!("{}/{owner}/{file}/{day}", kind.name()))
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
        let telling = Telling::of(WebhookEvent::named(name).expect("it is told"), &event);
        match telling {
            Telling::Once(key) => Telling::Once(key.replace(&format!("/{}", event.time / DAY_MS), "/TODAY")),
            other => other,
        }
    }

    #[test]
    fn what_each_node_finds_has_one_key_on_all_of_them() {
        let expires =
            |file: &'static str| of(move || events::certificate_expires("front", Path::new(file), 9));
        assert_eq!(
            expires("/a/state/x.pem"),
            Telling::Once("certificate_expires/front/x.pem/TODAY".to_owned())
        );
        assert_eq!(expires("/a/state/x.pem"), expires("/b/x.pem"));
        assert_ne!(expires("/a/state/x.pem"), expires("/a/state/y.pem"));
        let revision = of(|| events::revision_in_force(7, "ops", "a", &[]));
        assert_eq!(revision, Telling::Once("reload/7".to_owned()));
        // A node's own keys are its own.
        assert_eq!(of(|| events::reloaded(&[])), Telling::Own);
    }
}
