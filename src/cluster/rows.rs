//! What rows are called, and what they say.
//!
//! Nodes of two versions serve side by side while one is put in the place of the other. So each row is JSON of which every reader takes what it knows, and
//! whoever writes over one that is there keeps what it does not know: a field of a later version that is about one key or one certificate says about which. And `meta/schema` says which version a node must understand at least. A node that
//! does not must not join; it serves all the same.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// What a node that has left still has to say: the value of a row; `None`: nothing any more.
#[derive(Clone)]
pub struct Farewell(pub Arc<dyn Fn() -> Option<Vec<u8>> + Send + Sync>);

impl fmt::Debug for Farewell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Farewell(..)")
    }
}

/// The version of rows that this build writes. A build with `--cfg evenkeel_next` is that of a later version, for `benches/bars/cluster_versions.py`.
pub const SCHEMA: u32 = if cfg!(evenkeel_next) { 2 } else { 1 };
/// The row that says which version must be understood.
pub const META: &str = "meta/schema";
/// What the names of rows begin with that say who is there.
pub const NODES: &str = "node/";
/// What the names of rows begin with that say who is to be drained.
pub const DRAINS: &str = "drain/";

/// `meta/schema`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaRow {
    /// The version that rows are written in.
    pub writer: u32,
    /// Whoever understands no more than a version before this one must not join.
    pub min_reader: u32,
}

/// `node/NAME`: who is there. It goes with the lease of its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRow {
    /// Another one each time that the process starts.
    pub boot: String,
    /// What the folder of state is known by: a node that comes back with the same one takes its own place.
    pub machine: String,
    /// Of evenkeel.
    pub version: String,
    /// The versions of rows that it understands.
    pub schema: [u32; 2],
    /// Whether it takes part in what all agree on: one that has no file of its own does not.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub shares: bool,
    /// In which zone it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Since when, in milliseconds since 1970, by its own clock.
    pub since_ms: u64,
}

const fn yes() -> bool {
    true
}

/// `drain/NAME`: that a node is to be drained, until somebody says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainRow {
    /// Who has said so.
    pub author: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// What a row says; `None`: nothing that this version understands.
#[must_use]
pub fn read<T: DeserializeOwned>(value: &[u8]) -> Option<T> {
    serde_json::from_slice(value).ok()
}

/// A row as it is kept.
#[must_use]
pub fn write<T: Serialize>(row: &T) -> Vec<u8> {
    if cfg!(evenkeel_next)
        && let Ok(Value::Object(mut fields)) = serde_json::to_value(row)
    {
        fields.insert("of_the_next_version".to_owned(), Value::from(SCHEMA));
        return serde_json::to_vec(&fields).unwrap_or_default();
    }
    // Rows have texts for keys, so it can't fail.
    serde_json::to_vec(row).unwrap_or_default()
}

/// The same of one that was changed: what this version does not know of what was there `before` stays in it.
#[must_use]
pub fn write_over<T: Serialize + DeserializeOwned>(row: &T, before: Option<&[u8]>) -> Vec<u8> {
    let written = write(row);
    let Some(later) = before.and_then(later::<T>).filter(|later| !later.is_empty()) else { return written };
    let Some(mut fields) = read::<Map<String, Value>>(&written) else { return written };
    for (name, value) in later {
        fields.entry(name).or_insert(value);
    }
    serde_json::to_vec(&fields).unwrap_or(written)
}

/// What a row says beside what `T` is: what of it is not there when it is read and written again.
fn later<T: Serialize + DeserializeOwned>(value: &[u8]) -> Option<Map<String, Value>> {
    let mut fields: Map<String, Value> = read(value)?;
    let Ok(Value::Object(known)) = serde_json::to_value(read::<T>(value)?) else { return None };
    fields.retain(|name, _| !known.contains_key(name));
    Some(fields)
}

/// The name of the row of a node.
#[must_use]
pub fn node(name: &str) -> String {
    format!("{NODES}{name}")
}

/// The name of the row that says that it is to be drained.
#[must_use]
pub fn drain(name: &str) -> String {
    format!("{DRAINS}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_takes_what_it_knows_of_a_row_of_a_later_version() {
        let later = br#"{"boot":"b","machine":"m","version":"9","schema":[1,2],"since_ms":7,"weight":3}"#;
        let row: NodeRow = read(later).expect("it is read");
        assert_eq!((row.schema, row.shares, &row.zone), ([1, 2], true, &None));
        let apart = NodeRow { shares: false, ..row };
        assert_eq!(read(&write(&apart)), Some(apart));
        assert_eq!(read::<NodeRow>(b"{}"), None);
        assert_eq!(read::<NodeRow>(b"\xff"), None);
    }

    #[test]
    fn whoever_changes_a_row_keeps_what_a_later_version_has_said() {
        let later = br#"{"author":"a","at_ms":7,"until_ms":9,"why":{"of":"c"}}"#;
        let own = DrainRow { author: "b".to_owned(), at_ms: 8 };
        let read_value = |bytes: &[u8]| read::<Value>(bytes).expect("JSON");
        let wanted = br#"{"author":"b","at_ms":8,"until_ms":9,"why":{"of":"c"}}"#;
        let kept = write_over(&own, Some(later));
        for name in ["author", "at_ms", "until_ms", "why"] {
            assert_eq!(read_value(&kept)[name], read_value(wanted)[name], "{name}");
        }
        // Nothing of its own stays that is not said any more, and nothing of what can't be read.
        let zoned =
            br#"{"boot":"b","machine":"m","version":"9","schema":[1,2],"since_ms":7,"zone":"z","more":1}"#;
        let row = NodeRow { zone: None, ..read(zoned).expect("it is read") };
        let kept = read_value(&write_over(&row, Some(zoned)));
        assert_eq!((kept.get("zone"), &kept["more"]), (None, &1.into()));
        assert_eq!(write_over(&own, Some(b"{}")), write(&own));
        assert_eq!(write_over(&own, None), write(&own));
    }
}
