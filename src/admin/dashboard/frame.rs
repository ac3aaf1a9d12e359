//! What is shown at one moment, and what has changed since the moment before, as it is sent.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hyper::body::Bytes;

use crate::tick::Tick;

/// JSON objects by their names.
pub(super) type Rows = BTreeMap<String, String>;

/// When a frame was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameTime {
    pub(super) at: Tick,
    /// As milliseconds since 1970, by a clock that somebody may set.
    pub(super) unix_ms: u64,
    /// Since the process began to serve, by one that nobody sets.
    pub(super) up_ms: u64,
}

/// What is shown at one moment.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// The how manieth of this process, from 1.
    pub(super) number: u64,
    pub(super) time: FrameTime,
    rows: Rows,
    all: Bytes,
    whole: Bytes,
    changes: Bytes,
}

impl Frame {
    /// The one behind `before`, of a process with the number `born`.
    pub(super) fn after(before: Option<&Frame>, born: u32, time: FrameTime, rows: Rows) -> Frame {
        let number = before.map_or(0, |frame| frame.number) + 1;
        let nothing = Rows::new();
        let known = before.map_or(&nothing, |frame| &frame.rows);
        let changed = rows.iter().filter(|(name, row)| known.get(*name) != Some(row));
        let gone = known.keys().filter(|name| !rows.contains_key(*name));
        let all = object(time, rows.iter(), None);
        let changes = object(time, changed, Some(gone.map(|name| text(name)).collect()));
        let told = |kind: &str, data: &str| {
            format!("id: {}\nevent: {kind}\ndata: {data}\n\n", place(born, number)).into()
        };
        let (whole, changes) = (told("whole", &all), told("changes", &changes));
        Frame { number, time, rows, all: all.into(), whole, changes }
    }

    /// All of it as a JSON object.
    pub(super) fn all(&self) -> &Bytes {
        &self.all
    }

    /// All of it as an event of a stream.
    pub(super) fn whole(&self) -> Bytes {
        self.whole.clone()
    }

    /// The same of what differs from the frame before.
    pub(super) fn changes(&self) -> Bytes {
        self.changes.clone()
    }
}

/// The `id` of a frame in a stream.
pub(super) fn place(born: u32, number: u64) -> String {
    format!("{born:08x}-{number}")
}

/// Rows as they are sent: JSON has no line breaks. `gone`: names of those that are no more.
fn object<'r>(
    time: FrameTime,
    rows: impl Iterator<Item = (&'r String, &'r String)>,
    gone: Option<Vec<String>>,
) -> String {
    let FrameTime { unix_ms, up_ms, .. } = time;
    let mut out = format!("{{\"at_ms\":{unix_ms},\"up_ms\":{up_ms},\"rows\":{{");
    for (place, (name, row)) in rows.enumerate() {
        let comma = if place > 0 { "," } else { "" };
        // Writing to a String can't fail.
        let _ = write!(out, "{comma}{}:{row}", text(name));
    }
    out.push('}');
    if let Some(gone) = gone {
        let _ = write!(out, ",\"gone\":[{}]", gone.join(","));
    }
    out.push('}');
    out
}

/// A name as JSON.
fn text(name: &str) -> String {
    // A text is always JSON.
    serde_json::to_string(name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// What a page makes of an event that is sent.
    fn read(event: &Bytes) -> (String, String, Value) {
        let text = std::str::from_utf8(event).expect("text").strip_suffix("\n\n").expect("it ends");
        let mut lines = text.lines().map(|line| line.split_once(": ").expect("a field"));
        let mut next = |name: &str| lines.next().filter(|(own, _)| *own == name).expect(name).1.to_owned();
        let (id, kind, data) = (next("id"), next("event"), next("data"));
        (id, kind, serde_json::from_str(&data).expect("JSON"))
    }

    fn frame(before: Option<&Frame>, rows: &[(String, u8)]) -> Frame {
        let rows = rows.iter().map(|(name, value)| (name.clone(), format!("{{\"v\":{value}}}"))).collect();
        Frame::after(before, 7, FrameTime { at: Tick(1), unix_ms: 5, up_ms: 1 }, rows)
    }

    proptest! {
        #[test]
        fn whoever_has_a_frame_and_its_changes_has_the_next(
            steps in prop::collection::vec(prop::collection::vec(("[a-c]/?\\PC?\n?", 0..3_u8), 0..6), 1..6),
        ) {
            let mut latest: Option<Frame> = None;
            let mut shown = serde_json::Map::new();
            for (number, rows) in (1_u64..).zip(&steps) {
                let next = frame(latest.as_ref(), rows);
                let (id, kind, said) = read(&next.changes());
                prop_assert_eq!((id, kind.as_str()), (format!("00000007-{number}"), "changes"));
                for name in said["gone"].as_array().expect("a list") {
                    prop_assert!(shown.remove(name.as_str().expect("a name")).is_some());
                }
                for (name, row) in said["rows"].as_object().expect("rows") {
                    prop_assert_ne!(shown.insert(name.clone(), row.clone()), Some(row.clone()));
                }
                let (_, kind, whole) = read(&next.whole());
                prop_assert_eq!(kind, "whole");
                prop_assert_eq!(&whole["rows"], &Value::Object(shown.clone()));
                let all: Value = serde_json::from_slice(next.all()).expect("JSON");
                prop_assert_eq!(&all["rows"], &whole["rows"]);
                latest = Some(next);
            }
        }
    }
}
