//! What was refused for want of room or of a local resource, where, and how often.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use super::wording::name;

/// Where something was refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalPlace {
    /// At this listener, before there was a request.
    Listener(String),
    /// On the way to a backend of this target.
    Target(String),
}

impl fmt::Display for RefusalPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RefusalPlace::Listener(listener) => write!(f, "listener {}", name(listener)),
            RefusalPlace::Target(target) => write!(f, "target {}", name(target)),
        }
    }
}

/// How many were refused, by cause (as the access log calls it) and place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals(BTreeMap<(RefusalPlace, &'static str), u64>);

impl Refusals {
    /// Counts so many more.
    pub fn add(&mut self, place: RefusalPlace, cause: &'static str, count: u64) {
        *self.0.entry((place, cause)).or_default() += count;
    }

    /// How many all together.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// JSON with a number for each cause.
    pub(super) fn by_cause(&self) -> String {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        self.0.iter().for_each(|((_, cause), count)| *sums.entry(cause).or_default() += count);
        serde_json::json!(sums).to_string()
    }

    /// JSON with a number for each cause, by listener; `None`: no connection was refused.
    pub(super) fn by_listener(&self) -> Option<String> {
        self.by_place(|place| match place {
            RefusalPlace::Listener(name) => Some(name),
            RefusalPlace::Target(_) => None,
        })
    }

    /// The same by target; `None`: no request was.
    pub(super) fn by_target(&self) -> Option<String> {
        self.by_place(|place| match place {
            RefusalPlace::Target(name) => Some(name),
            RefusalPlace::Listener(_) => None,
        })
    }

    fn by_place(&self, named: impl Fn(&RefusalPlace) -> Option<&String>) -> Option<String> {
        let mut sums: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
        for ((place, cause), count) in &self.0 {
            if let Some(name) = named(place) {
                *sums.entry(name).or_default().entry(cause).or_default() += count;
            }
        }
        (!sums.is_empty()).then(|| serde_json::json!(sums).to_string())
    }
}

/// `38 too_many_connections (listener web), 2 queue_full (target app)`, the most first, as many as fit into `room`.
pub(super) struct RefusalText<'a>(pub(super) &'a Refusals, pub(super) usize);

impl fmt::Display for RefusalText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const REST: usize = " and 99999 elsewhere".len();
        let RefusalText(Refusals(all), room) = *self;
        let mut all: Vec<_> = all.iter().collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let mut text = String::new();
        for (nth, ((place, cause), count)) in all.iter().enumerate() {
            let comma = if nth == 0 { "" } else { ", " };
            let next = format!("{comma}{count} {cause} ({place})");
            let is_last = nth + 1 == all.len();
            let room = if is_last { room } else { room - REST };
            if nth > 0 && text.chars().count() + next.chars().count() > room {
                let rest: u64 = all[nth..].iter().map(|(_, count)| **count).sum();
                write!(text, " and {rest} elsewhere")?;
                break;
            }
            text.push_str(&next);
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(name: &str) -> RefusalPlace {
        RefusalPlace::Listener(name.into())
    }

    #[test]
    fn each_cause_has_its_number_and_its_place() {
        let mut refusals = Refusals::default();
        refusals.add(RefusalPlace::Target("app".into()), "queue_full", 2);
        refusals.add(listener("web"), "too_many_connections", 30);
        refusals.add(listener("web"), "too_many_connections", 8);
        assert_eq!(
            RefusalText(&refusals, 100).to_string(),
            "38 too_many_connections (listener web), 2 queue_full (target app)"
        );
        assert_eq!(refusals.by_cause(), r#"{"queue_full":2,"too_many_connections":38}"#);
        let places = refusals.by_place(|place| match place {
            RefusalPlace::Listener(name) | RefusalPlace::Target(name) => Some(name),
        });
        assert_eq!(places.as_deref(), Some(r#"{"app":{"queue_full":2},"web":{"too_many_connections":38}}"#));
        assert_eq!(refusals.by_place(|_| None), None);
    }

    #[test]
    fn a_hundred_places_are_one_short_line() {
        let mut refusals = Refusals::default();
        for number in 0..100 {
            let name = format!("a-listener-with-a-name-that-is-too-long-to-be-shown-{number}");
            refusals.add(listener(&name), "too_many_connections", 1 + number);
        }
        let text = RefusalText(&refusals, 100).to_string();
        assert!(text.chars().count() <= 100 && text.starts_with("100 too_many_connections ("), "{text}");
        assert!(text.ends_with(" elsewhere"), "{text}");
    }
}
