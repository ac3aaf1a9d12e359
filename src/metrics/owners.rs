//! Whose numbers begin anew with another one of their name, for whoever compares one reading with the next.

use std::collections::HashMap;
use std::sync::Weak;

use super::sources::{GONE_BACKENDS, GONE_ROUTES, ScrapeSources};
use crate::snapshot::ListenerState;
use crate::targets::TargetState;

/// For a label, the value under which the counts go on of those that are gone.
pub const HEIRS: &[(&str, &str)] = &[("backend", GONE_BACKENDS), ("route", GONE_ROUTES)];

/// The listeners and targets of one reading. It keeps none of them.
#[derive(Debug, Default)]
pub struct CountedOwners {
    listeners: HashMap<String, Weak<ListenerState>>,
    targets: HashMap<String, Weak<TargetState>>,
}

impl CountedOwners {
    /// Those of these sources.
    #[must_use]
    pub fn of(sources: &ScrapeSources) -> CountedOwners {
        let listeners = sources.listeners.iter().map(|one| &one.listener);
        let targets = sources.targets.iter().map(|one| &one.target);
        CountedOwners {
            listeners: listeners
                .map(|listener| (listener.config.name.clone(), std::sync::Arc::downgrade(&listener.state)))
                .collect(),
            targets: targets
                .map(|target| (target.name.to_string(), std::sync::Arc::downgrade(&target.state)))
                .collect(),
        }
    }

    /// Labels with the names that were somebody else's `before`.
    pub fn renewed<'o>(&'o self, before: &'o CountedOwners) -> impl Iterator<Item = (&'static str, &'o str)> {
        differ("listener", &self.listeners, &before.listeners).chain(differ(
            "target",
            &self.targets,
            &before.targets,
        ))
    }
}

/// Names that both have, for different objects.
fn differ<'o, T>(
    label: &'static str,
    now: &'o HashMap<String, Weak<T>>,
    before: &'o HashMap<String, Weak<T>>,
) -> impl Iterator<Item = (&'static str, &'o str)> {
    let differs =
        |(name, own): &(&'o String, &'o Weak<T>)| before.get(*name).is_some_and(|other| !own.ptr_eq(other));
    now.iter().filter(differs).map(move |(name, _)| (label, name.as_str()))
}
