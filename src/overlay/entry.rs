//! One change by hand: what of which object, who made it, when, and what the file said then.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::config::model::BackendState;

/// One entry of the overlay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlayEntry {
    /// Greater than that of every entry before it, of this process and of those before it.
    pub id: u64,
    /// What it is about.
    #[serde(flatten)]
    pub object: ObjectName,
    /// What is to be.
    #[serde(flatten)]
    pub change: EntryChange,
    /// What the file said of this field when the entry was made, as the file has it; of a backend that was added by hand what was
    /// said then. `removed`: all that the file says of the backend. `None`: `added`, which is in no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_value: Option<String>,
    /// Where the backend was when it was last seen; `None`: a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Who made it.
    pub author: Author,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// When it ends by itself, in milliseconds since 1970; `None`: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// Since when its object is not in the file any more, in milliseconds since 1970; `None`: it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_since_ms: Option<u64>,
    /// What a later version says of it beside that: it is kept as it is.
    #[serde(flatten)]
    pub more: LaterFields,
}

/// Fields of which this version knows nothing.
pub type LaterFields = BTreeMap<String, serde_json::Value>;

/// As events tell of it: `by hand, uid 0: web/b1 weight 5`.
impl fmt::Display for OverlayEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OverlayEntry { object, change, author, .. } = self;
        write!(f, "by hand, {author}: {object} {}", change.field().as_str())?;
        change.value().map_or(Ok(()), |value| write!(f, " {value}"))
    }
}

/// A backend, or a target as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectName {
    /// The target's name.
    pub target: String,
    /// The backend's name inside it; `None`: the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
}

impl ObjectName {
    /// That of a backend.
    #[must_use]
    pub fn backend(target: &str, backend: &str) -> ObjectName {
        ObjectName { target: target.to_owned(), backend: Some(backend.to_owned()) }
    }

    /// That of a target.
    #[must_use]
    pub fn target(target: &str) -> ObjectName {
        ObjectName { target: target.to_owned(), backend: None }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.target)?;
        self.backend.as_ref().map_or(Ok(()), |backend| write!(f, "/{backend}"))
    }
}

/// What is to be of an object, instead of what the file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "field", content = "value")]
pub enum EntryChange {
    /// Of a backend: what the operator wants of it.
    #[serde(serialize_with = "write_state", deserialize_with = "read_state")]
    State(BackendState),
    /// Of a backend: 0 to 256.
    Weight(u16),
    /// Of a target: requests that one backend has at once, from 1; `None` (`off`): any.
    MaxInFlight(Option<u32>),
    /// There is one more backend.
    Added(AddedBackend),
    /// There is one less.
    Removed,
}

/// Which field an entry is about. An object has one entry of each at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryField {
    /// `state` of a backend.
    State,
    /// `weight` of a backend.
    Weight,
    /// `max_in_flight` of a target.
    MaxInFlight,
    /// That a backend is there.
    Added,
    /// That it is not.
    Removed,
}

impl EntryField {
    /// Its name in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EntryField::State => "state",
            EntryField::Weight => "weight",
            EntryField::MaxInFlight => "max_in_flight",
            EntryField::Added => "added",
            EntryField::Removed => "removed",
        }
    }
}

impl EntryChange {
    /// Its field.
    #[must_use]
    pub const fn field(&self) -> EntryField {
        match self {
            EntryChange::State(_) => EntryField::State,
            EntryChange::Weight(_) => EntryField::Weight,
            EntryChange::MaxInFlight(_) => EntryField::MaxInFlight,
            EntryChange::Added(_) => EntryField::Added,
            EntryChange::Removed => EntryField::Removed,
        }
    }

    /// The value as a file has it; of an added backend its URL.
    #[must_use]
    pub fn value(&self) -> Option<String> {
        match self {
            EntryChange::State(state) => Some(state.as_str().to_owned()),
            EntryChange::Weight(weight) => Some(weight.to_string()),
            EntryChange::MaxInFlight(Some(number)) => Some(number.to_string()),
            EntryChange::MaxInFlight(None) => Some("off".to_owned()),
            EntryChange::Added(added) => Some(added.url.clone()),
            EntryChange::Removed => None,
        }
    }
}

/// A backend that is in no file. Its name is that of the entry's object. The keys are those of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedBackend {
    /// Where it is: `http://10.0.0.9:8080`, `unix:/run/app.sock`.
    pub url: String,
    /// 0 to 256; 1 where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// 0 to 254; 0 where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Behind every priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<bool>,
    /// Where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// What its probe asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_path: Option<String>,
}

/// Who made a change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Author {
    /// A user of this machine, by number.
    Uid(u32),
    /// Whoever has the token of this name.
    Token(String),
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Author::Uid(uid) => write!(f, "uid {uid}"),
            Author::Token(name) => write!(f, "token {name}"),
        }
    }
}

impl std::str::FromStr for Author {
    type Err = ();

    fn from_str(text: &str) -> Result<Author, ()> {
        match text.split_once(' ') {
            Some(("uid", number)) => number.parse().map(Author::Uid).map_err(|_| ()),
            Some(("token", name)) => Ok(Author::Token(name.to_owned())),
            _ => Err(()),
        }
    }
}

impl Serialize for Author {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Author {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Author, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|()| de::Error::custom("neither `uid NUMBER` nor `token NAME`"))
    }
}

fn write_state<S: Serializer>(state: &BackendState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.as_str())
}

fn read_state<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BackendState, D::Error> {
    let text = String::deserialize(deserializer)?;
    let known = BackendState::ALL.iter().find(|(name, _)| *name == text);
    known.map(|(_, state)| *state).ok_or_else(|| de::Error::custom("neither `up` nor `drain` nor `down`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_the_same_when_it_comes_back_from_json() {
        let entry = |object, change| OverlayEntry {
            id: 7,
            object,
            change,
            file_value: Some("1".into()),
            address: Some("127.0.0.1:80".into()),
            author: Author::Token("ci".into()),
            at_ms: 1,
            expires_ms: Some(2),
            gone_since_ms: None,
            more: LaterFields::new(),
        };
        let backend = || ObjectName::backend("web", "b/1");
        let added = AddedBackend { url: "http://a:1".into(), weight: Some(3), ..AddedBackend::default() };
        for entry in [
            entry(backend(), EntryChange::State(BackendState::Drain)),
            entry(backend(), EntryChange::Weight(0)),
            entry(ObjectName::target("web"), EntryChange::MaxInFlight(None)),
            entry(ObjectName::target("web"), EntryChange::MaxInFlight(Some(5))),
            entry(backend(), EntryChange::Added(added)),
            entry(backend(), EntryChange::Removed),
            OverlayEntry {
                author: Author::Uid(0),
                file_value: None,
                address: None,
                ..entry(backend(), EntryChange::Removed)
            },
        ] {
            let json = serde_json::to_string(&entry).expect("JSON");
            assert_eq!(serde_json::from_str::<OverlayEntry>(&json).expect(&json), entry, "{json}");
        }
        let later = r#"{"id":1,"target":"a","backend":"b","field":"weight","value":3,"author":"uid 0","at_ms":1,"ramp":{"for":"1m"}}"#;
        let entry: OverlayEntry = serde_json::from_str(later).expect(later);
        assert_eq!(entry.change, EntryChange::Weight(3));
        let gone = OverlayEntry { gone_since_ms: Some(5), ..entry };
        let json = serde_json::to_value(&gone).expect("JSON");
        assert_eq!((&json["ramp"]["for"], &json["gone_since_ms"]), (&"1m".into(), &5.into()), "{json}");
        let wrong =
            r#"{"id":1,"target":"a","backend":"b","field":"state","value":"off","author":"uid 0","at_ms":1}"#;
        assert!(serde_json::from_str::<OverlayEntry>(wrong).is_err());
    }

    #[test]
    fn names_and_authors_are_told_as_people_write_them() {
        assert_eq!(ObjectName::backend("web", "a:80").to_string(), "web/a:80");
        assert_eq!(ObjectName::target("web").to_string(), "web");
        assert_eq!(
            (Author::Uid(0).to_string(), Author::Token("ci".into()).to_string()),
            ("uid 0".into(), "token ci".into())
        );
        assert_eq!("nobody".parse::<Author>(), Err(()));
    }
}
