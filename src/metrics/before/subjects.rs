//! Whose series are: what was counted before of somebody who is gone is not told.

use std::collections::HashSet;

use super::super::families::all;
use super::super::sources::{NO_TARGET, ScrapeSources};
use crate::telemetry::exposition::Labels;

/// Labels that say whose a series is; in a family they come first.
const WHOSE: [&str; 8] = ["listener", "route", "target", "backend", "limit", "list", "webhook", "url"];

/// All that there is.
pub(in crate::metrics) struct Subjects(HashSet<Labels>);

impl Subjects {
    pub(in crate::metrics) fn of(sources: &ScrapeSources) -> Subjects {
        let listeners = sources.listeners.iter().flat_map(|one| [&one.labels, &one.unrouted, &one.gone]);
        let targets = sources.targets.iter().flat_map(|one| [&one.labels, &one.gone]);
        let routes = sources.routes.iter().map(|one| &one.labels);
        let backends = sources.backends.iter().map(|one| &one.labels);
        let lists = sources.lists.iter().map(|(labels, _)| labels);
        let limits = sources.snapshot.rates.by_name();
        let limits = limits.into_iter().map(|(limit, _)| Labels::of(&[("limit", &limit.name)]));
        let webhooks = (1_u32..).zip(sources.control.webhooks.iter());
        let webhooks = webhooks
            .map(|(place, counts)| Labels::of(&[("webhook", &place.to_string()), ("url", &counts.url)]));
        let known = listeners.chain(targets).chain(routes).chain(backends).chain(lists).cloned();
        let nobody = Labels::of(&[("target", NO_TARGET)]);
        Subjects(known.chain(limits).chain(webhooks).chain([nobody]).collect())
    }

    /// Whether it is there whose series with these labels is, of the family of this name.
    pub(in crate::metrics) fn have(&self, family: &str, labels: &Labels) -> bool {
        let Some(family) = all().find(|one| one.head.name == family) else { return false };
        let whose = family.labels.iter().take_while(|name| WHOSE.contains(name)).count();
        let mut subject = Labels::none();
        labels.pairs().take(whose).for_each(|(name, value)| subject.add((name, &value)));
        whose == 0 || self.0.contains(&subject)
    }
}
