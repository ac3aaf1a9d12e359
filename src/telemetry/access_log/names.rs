//! The configured names behind the numbers of a Record.
//!
//! Built on control with every snapshot, shared as an `Arc`, read by whoever writes for people.

use std::sync::Arc;

use super::escape;
use super::room::{Batch, Left, Room, put, put_front};
use crate::message::{BackendId, ListenerId, TargetId};

/// Names by number. A number without a name is printed as `#` and the number.
///
/// Backend numbers are never reused, so a successor is a clone with what is new; a clone copies
/// pointers, not text.
#[derive(Clone, Debug, Default)]
pub struct Names {
    listeners: Vec<Option<Name>>,
    targets: Vec<Option<Name>>,
    backends: Vec<Option<Name>>,
}

impl Names {
    /// Names a listener; the last word counts.
    pub fn name_listener(&mut self, id: ListenerId, name: &str) {
        put_name(&mut self.listeners, usize::from(id.0), name);
    }

    /// Names a target; the last word counts.
    pub fn name_target(&mut self, id: TargetId, name: &str) {
        put_name(&mut self.targets, usize::from(id.0), name);
    }

    /// Names a backend (its name inside the target); the last word counts. Takes memory in proportion to
    /// the highest number named.
    pub fn name_backend(&mut self, id: BackendId, name: &str) {
        // A u32 fits a usize wherever this runs; the registry counts up, so the table stays dense.
        put_name(&mut self.backends, id.0 as usize, name);
    }

    /// A listener's name, if it has one.
    pub(super) fn listener(&self, id: ListenerId) -> Option<&Name> {
        self.listeners.get(usize::from(id.0))?.as_ref()
    }

    /// A target's name, if it has one.
    pub(super) fn target(&self, id: TargetId) -> Option<&Name> {
        self.targets.get(usize::from(id.0))?.as_ref()
    }

    /// A backend's name, if it has one.
    pub(super) fn backend(&self, id: BackendId) -> Option<&Name> {
        self.backends.get(id.0 as usize)?.as_ref()
    }
}

fn put_name(names: &mut Vec<Option<Name>>, place: usize, name: &str) {
    if names.len() <= place {
        names.resize(place + 1, None);
    }
    names[place] = Some(Name::new(name));
}

/// Bytes that are copied for a short name, whatever its length.
const SHORT: usize = 32;

/// A name as it is and as it stands in JSON.
#[derive(Clone, Debug)]
pub(super) struct Name {
    text: Arc<str>,
    /// With its quotes, then filled up to [`SHORT`].
    quoted: Arc<[u8]>,
    /// How much of `quoted` is the name.
    length: usize,
}

impl Name {
    fn new(text: &str) -> Name {
        let mut json = Batch::default();
        json.append(|room| escape::write_json(room, text.as_bytes()));
        let mut quoted = json.lines().to_vec();
        let length = quoted.len();
        quoted.resize(length.max(SHORT), b' ');
        Name { text: text.into(), quoted: quoted.into(), length }
    }

    /// As it is.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Writes it as a string of JSON.
    #[inline(always)]
    pub(super) fn write_json<'a>(&self, room: Room<'a>) -> Left<'a> {
        match self.quoted.first_chunk::<SHORT>() {
            Some(text) if self.length <= SHORT => put_front(room, text, self.length),
            _ => put(room, &self.quoted[..self.length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::access_log::room::text_of;

    #[test]
    fn a_name_of_any_length_is_written_as_json() {
        for name in
            ["", "a", "b \"2\"", "é", &"x".repeat(29), &"x".repeat(30), &"x".repeat(31), &"x".repeat(200)]
        {
            let written = text_of(|room| Name::new(name).write_json(room));
            assert_eq!(serde_json::from_str::<String>(&written).expect("a string"), name);
        }
    }

    #[test]
    fn a_successor_leaves_its_predecessor_alone() {
        let mut first = Names::default();
        first.name_backend(BackendId(3), "b3");
        first.name_listener(ListenerId(0), "web");
        let mut second = first.clone();
        second.name_backend(BackendId(9), "b9");
        second.name_target(TargetId(1), "api");
        let backend = |names: &Names, id| names.backend(BackendId(id)).map(|name| name.text().to_owned());
        assert_eq!((backend(&first, 3).as_deref(), backend(&first, 9)), (Some("b3"), None));
        assert_eq!(
            (backend(&second, 3).as_deref(), backend(&second, 9).as_deref()),
            (Some("b3"), Some("b9"))
        );
        assert_eq!(backend(&second, 4), None);
        let target = |names: &Names, id| names.target(TargetId(id)).map(|name| name.text().to_owned());
        assert_eq!((target(&second, 0), target(&second, 1).as_deref()), (None, Some("api")));
        let listener = |id| second.listener(ListenerId(id)).map(Name::text);
        assert_eq!((listener(0), listener(7)), (Some("web"), None));
    }
}
