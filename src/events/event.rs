//! An event as everybody gets it who does not read the log: with its number, its kind and its facts.

use std::fmt;

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};

use super::kind::EventKind;
use crate::config::model::LogLevel;

/// Fields whose values are objects, as JSON.
const OBJECTS: [&str; 3] = ["by_cause", "by_listener", "by_target"];
/// The longest fact that is kept, in bytes: what a reload has changed may be as long as a config.
const FACT_MAX: usize = 16 * 1024;

/// Something that was told to people, at level `info` or above.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number: each event has the next one.
    pub id: u64,
    /// When, in milliseconds since 1970.
    pub time: u64,
    /// How much it matters.
    pub level: LogLevel,
    /// What it is about.
    pub kind: EventKind,
    /// The sentence.
    pub text: String,
    /// What the sentence says, and more, one by one.
    pub facts: EventFacts,
}

impl Event {
    /// What it happened to: `web/b1` (a backend), a target, a listener, a file, or what else there is; `None`: the process.
    #[must_use]
    pub fn object(&self) -> Option<String> {
        let fact = |name| self.facts.text(name);
        match (fact("target"), fact("backend")) {
            (Some(target), Some(backend)) => return Some(format!("{target}/{backend}")),
            (Some(one), None) | (None, Some(one)) => return Some(one.to_owned()),
            (None, None) => {}
        }
        ["listener", "file", "host", "objects", "entry"].into_iter().find_map(fact).map(str::to_owned)
    }

    /// What it takes in memory, roughly.
    pub(super) fn size(&self) -> usize {
        size_of::<Event>()
            + self.text.len()
            + self.facts.0.iter().map(|(_, value)| weight(value)).sum::<usize>()
    }
}

/// The same as others get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventReport {
    /// `START-N`: the process that told it, and its number there. It is never another event's.
    pub id: String,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// `info`, `warn` or `error`.
    pub level: String,
    /// The name of its kind.
    pub kind: String,
    /// What it happened to; `None`: the process.
    pub object: Option<String>,
    /// The sentence.
    pub text: String,
    /// What the sentence says, and more, one by one.
    pub facts: Map<String, Value>,
}

/// The fields of an event, in the order in which they were told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventFacts(Vec<(&'static str, Value)>);

impl EventFacts {
    /// The fact of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The same where it is a text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// As an object of JSON.
    #[must_use]
    pub fn object(&self) -> Map<String, Value> {
        self.0.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    /// The same without what is too long to be kept.
    pub(super) fn bounded(mut self) -> EventFacts {
        for (_, value) in &mut self.0 {
            match value {
                Value::String(text) => clip(text),
                other if weight(other) > FACT_MAX => *other = Value::Null,
                _ => {}
            }
        }
        self
    }
}

impl Serialize for EventFacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

/// What a call of `tracing` says.
#[derive(Debug, Default)]
pub struct Saying {
    /// The sentence.
    pub text: String,
    /// What it is about; `None`: it is one for whoever debugs.
    pub kind: Option<EventKind>,
    /// Its fields.
    pub facts: EventFacts,
}

impl Saying {
    /// That of this call.
    #[must_use]
    pub fn of(told: &tracing::Event<'_>) -> Saying {
        let mut saying = Saying::default();
        told.record(&mut saying);
        saying
    }

    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.facts.0.push((field.name(), value.into()));
    }
}

impl Visit for Saying {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.text = format!("{value:?}");
        } else {
            self.add(field, format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let kind = EventKind::named(value).filter(|_| field.name() == "kind");
        match field.name() {
            _ if kind.is_some() => self.kind = kind,
            "message" => value.clone_into(&mut self.text),
            name if OBJECTS.contains(&name) => {
                let object = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
                self.add(field, object);
            }
            _ => self.add(field, value),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    /// JSON has no word for what is not finite: that is `null`.
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }
}

/// The level of a call of `tracing`.
#[must_use]
pub fn level_of(told: &tracing::Event<'_>) -> LogLevel {
    match *told.metadata().level() {
        tracing::Level::ERROR => LogLevel::Error,
        tracing::Level::WARN => LogLevel::Warn,
        tracing::Level::INFO => LogLevel::Info,
        tracing::Level::DEBUG => LogLevel::Debug,
        tracing::Level::TRACE => LogLevel::Trace,
    }
}

/// What a value takes in memory, roughly.
fn weight(value: &Value) -> usize {
    /// A value itself, with its name.
    const ONE: usize = 64;
    ONE + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(all) => all.iter().map(weight).sum(),
        Value::Object(all) => all.iter().map(|(name, value)| name.len() + weight(value)).sum(),
    }
}

/// Cuts a text that is too long to be kept.
pub(super) fn clip(text: &mut String) {
    if text.len() > FACT_MAX {
        text.truncate(text.floor_char_boundary(FACT_MAX));
        text.push('…');
    }
}
