//! What another config does to a process that runs: objects, keys, addresses, and why it would be refused. The admin API
//! answers with it, and the command line prints it.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use crate::overlay::{EntryEnd, OverlayEntry};

/// What becomes of another config.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanVerdict {
    /// It says what is in force.
    #[default]
    Unchanged,
    /// It is taken.
    Taken,
    /// It is refused, and nothing changes.
    Refused,
}

/// What another config does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What becomes of it.
    pub verdict: PlanVerdict,
    /// What is there for the first time, gone or different: the process first, then as the config reads, then what is gone.
    pub objects: Vec<PlannedObject>,
    /// Addresses that are bound, closed, or go over to another listener.
    pub addresses: Vec<PlannedAddress>,
    /// Why it is refused; empty unless it is.
    pub problems: Vec<Fault>,
    /// What `check` warns of.
    pub warnings: Vec<String>,
    /// Changes by hand that are over with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<PlannedEnd>,
}

/// A change by hand that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedEnd {
    /// What it was about: `web`, `web/b1`.
    pub object: String,
    /// Its field: `state`, `weight`, `max_in_flight`, `added`, `removed`.
    pub field: String,
    /// What it said; `None`: `removed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Who made it.
    pub author: String,
    /// Why it is over.
    pub reason: String,
}

impl PlannedEnd {
    fn line(&self) -> String {
        let PlannedEnd { object, field, value, author, reason } = self;
        let value = value.as_ref().map_or_else(String::new, |value| format!(" {value}"));
        format!("- by hand, {author}: {object} {field}{value}: {reason}")
    }
}

impl From<&(OverlayEntry, EntryEnd)> for PlannedEnd {
    fn from((entry, end): &(OverlayEntry, EntryEnd)) -> PlannedEnd {
        PlannedEnd {
            object: entry.object.to_string(),
            field: entry.change.field().as_str().to_owned(),
            value: entry.change.value(),
            author: entry.author.to_string(),
            reason: end.to_string(),
        }
    }
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// The process: keys at the top level.
    Process,
    /// A listener.
    Listener,
    /// A target, without its backends.
    Target,
    /// A backend.
    Backend,
}

/// What becomes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectChange {
    /// It is there for the first time.
    Added,
    /// It is gone.
    Removed,
    /// It stays, and does something differently.
    Changed,
    /// Another one takes its name: a backend with another address, a listener with another protocol.
    Replaced,
}

/// One object that does not stay as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedObject {
    /// What it is.
    pub kind: ObjectKind,
    /// Its name; of a backend `target/name`, of the process nothing.
    pub name: String,
    /// What becomes of it.
    pub change: ObjectChange,
    /// Where it is written, or was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<PlannedPlace>,
    /// Its keys that differ; of one that is added or gone those that are written.
    #[serde(default)]
    pub keys: Vec<PlannedKey>,
    /// It gets requests now and will get none.
    #[serde(default)]
    pub loses_traffic: bool,
    /// Requests and tunnels that are on a backend that goes, and finish there.
    #[serde(default)]
    pub under_way: u64,
    /// Pooled connections to it that close.
    #[serde(default)]
    pub idle_connections: u64,
    /// Client connections of a listener that goes.
    #[serde(default)]
    pub connections: u64,
}

/// Who says something: a line of a file, a flag, the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedPlace {
    /// As `check` prints it.
    pub text: String,
    /// The file, as it was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

/// One key that differs. Secrets are never in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedKey {
    /// Its path inside the object.
    pub key: String,
    /// What it is now; `None`: it is not there.
    pub old: Option<String>,
    /// What it is then.
    pub new: Option<String>,
    /// Who says so; of what is gone, who said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<PlannedPlace>,
}

/// What becomes of an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressChange {
    /// It is bound.
    Bound,
    /// It is closed.
    Closed,
    /// It goes over from this listener, with its sockets.
    Moved {
        /// The listener that has it now.
        from: String,
    },
}

/// An address that does not stay as it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlannedAddress {
    /// As it is bound, with a port 0 where the system chooses one; a unix socket as `unix:/path`.
    pub address: String,
    /// Whose it is.
    pub listener: String,
    /// What becomes of it.
    pub change: AddressChange,
}

impl Plan {
    /// Of a config that is refused before anything of it is known.
    #[must_use]
    pub fn refused(problems: Vec<Fault>) -> Plan {
        Plan { verdict: PlanVerdict::Refused, problems, ..Plan::default() }
    }

    /// One line for each thing that does not stay as it is: `+` comes, `-` goes, `~` is different.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for object in &self.objects {
            if !self.is_told_with_its_target(object) {
                object.tell(self, &mut lines);
            }
        }
        lines.extend(self.addresses.iter().map(PlannedAddress::line));
        lines.extend(self.over.iter().map(PlannedEnd::line));
        lines
    }

    /// A whole target that comes or goes has one line, and so has its listener: the addresses tell of it.
    fn is_told_with_its_target(&self, object: &PlannedObject) -> bool {
        let is_whole = matches!(object.change, ObjectChange::Added | ObjectChange::Removed);
        let target = match object.kind {
            ObjectKind::Listener if object.connections == 0 => object.name.as_str(),
            ObjectKind::Backend => object.name.split_once('/').map_or("", |(target, _)| target),
            ObjectKind::Process | ObjectKind::Target | ObjectKind::Listener => return false,
        };
        let told = |other: &PlannedObject| {
            other.kind == ObjectKind::Target && other.change == object.change && other.name == target
        };
        is_whole && self.objects.iter().any(told)
    }

    /// How many there are of each kind of change, in words.
    #[must_use]
    pub fn counts(&self) -> String {
        let words = [
            (ObjectChange::Added, "added"),
            (ObjectChange::Removed, "removed"),
            (ObjectChange::Changed, "changed"),
            (ObjectChange::Replaced, "replaced"),
        ];
        let count = |change| self.objects.iter().filter(|object| object.change == change).count();
        let mut parts: Vec<String> = words
            .iter()
            .map(|(change, word)| (count(*change), word))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        // A connection and what is under way on it would count twice.
        let sums = [
            (self.objects.iter().map(|object| object.under_way).sum::<u64>(), "under way finish"),
            (self.objects.iter().map(|object| object.connections).sum(), "connections finish"),
        ];
        parts.extend(sums.iter().filter(|(sum, _)| *sum > 0).map(|(sum, what)| format!("{sum} {what}")));
        if !self.over.is_empty() {
            parts.push(format!("{} by hand over", self.over.len()));
        }
        if parts.is_empty() { "addresses only".to_owned() } else { parts.join(", ") }
    }
}

impl PlannedObject {
    fn title(&self) -> String {
        match self.kind {
            ObjectKind::Process => String::new(),
            ObjectKind::Listener => format!("listener {}", self.name),
            ObjectKind::Target => format!("target {}", self.name),
            ObjectKind::Backend => format!("backend {}", self.name),
        }
    }

    fn tell(&self, plan: &Plan, lines: &mut Vec<String>) {
        let (title, place) = (self.title(), shown(self.place.as_ref()));
        let effects = self.effects();
        let and = |what: &str| if what.is_empty() { String::new() } else { format!(": {what}") };
        match self.change {
            ObjectChange::Added => {
                let whole = self.members(plan);
                lines.push(format!("+ {title}{}{place}", and(&whole)));
            }
            ObjectChange::Removed => {
                let whole = [self.members(plan), effects];
                let whole: Vec<&str> =
                    whole.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
                lines.push(format!("- {title}{}{place}", and(&whole.join(", "))));
            }
            ObjectChange::Replaced => {
                lines.push(format!(
                    "~ {title}: another one takes its place{}{place}",
                    if effects.is_empty() { effects } else { format!(", {effects}") }
                ));
            }
            ObjectChange::Changed if self.keys.is_empty() => {
                lines.push(format!("~ {title}: what its files say"));
            }
            ObjectChange::Changed => {}
        }
        if matches!(self.change, ObjectChange::Changed | ObjectChange::Replaced) {
            let space = if title.is_empty() { "" } else { " " };
            let lost = if self.change == ObjectChange::Changed && self.loses_traffic {
                ", loses its traffic"
            } else {
                ""
            };
            lines.extend(self.keys.iter().map(|key| format!("~ {title}{space}{}{lost}", key.text())));
        }
    }

    /// How many backends a whole target has.
    fn members(&self, plan: &Plan) -> String {
        if self.kind != ObjectKind::Target {
            return String::new();
        }
        let is_member = |other: &&PlannedObject| {
            other.kind == ObjectKind::Backend
                && other.name.split_once('/').is_some_and(|(target, _)| target == self.name)
        };
        let members: Vec<&PlannedObject> = plan.objects.iter().filter(is_member).collect();
        let mut text = match members.len() {
            1 => "1 backend".to_owned(),
            count => format!("{count} backends"),
        };
        let under_way: u64 = members.iter().map(|member| member.under_way).sum();
        if under_way > 0 {
            let _ = write!(text, ", {under_way} under way finish");
        }
        text
    }

    /// What becomes of who uses it.
    fn effects(&self) -> String {
        let counted = [
            (self.under_way, "under way finish"),
            (self.idle_connections, "idle connections close"),
            (self.connections, "connections finish"),
        ];
        let counted = counted.iter().filter(|(count, _)| *count > 0);
        counted.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    }
}

impl PlannedKey {
    fn text(&self) -> String {
        let PlannedKey { key, old, new, place } = self;
        let place = shown(place.as_ref());
        match (old, new) {
            // It names a file, and what is in that differs.
            (Some(old), Some(new)) if old == new => format!("{key}: {old} has changed{place}"),
            (Some(old), Some(new)) => format!("{key}: {old} -> {new}{place}"),
            (None, Some(new)) => format!("{key}: {new} is new{place}"),
            (Some(old), None) => format!("{key}: {old} is gone{place}"),
            (None, None) => format!("{key}{place}"),
        }
    }
}

impl PlannedAddress {
    fn line(&self) -> String {
        let PlannedAddress { address, listener, change } = self;
        match change {
            AddressChange::Bound => format!("+ address {address}, listener {listener}"),
            AddressChange::Closed => format!("- address {address}, listener {listener}"),
            AddressChange::Moved { from } => {
                format!("~ address {address} goes over from listener {from} to {listener}")
            }
        }
    }
}

fn shown(place: Option<&PlannedPlace>) -> String {
    place.map_or_else(String::new, |place| format!(" ({})", place.text))
}
