//! The configured names behind the numbers of a Record.
//!
//! Built on control with every snapshot, shared as an `Arc`, read by whoever writes for people.

use std::sync::Arc;

use super::batch::{Batch, put};
use super::escape;
use crate::config::model::template::LogField;
use crate::message::{BackendId, ListenerId, TargetId};

/// Names by number. A number without a name is printed as `#` and the number.
///
/// Backend numbers are never reused, so a successor is a clone with what is new.
#[derive(Clone, Debug, Default)]
pub struct Names {
    listeners: Vec<Option<Name>>,
    targets: Vec<Option<Name>>,
    backends: Vec<Option<Name>>,
}

impl Names {
    /// Names a listener; the last word counts.
    pub fn name_listener(&mut self, id: ListenerId, name: &str) {
        put_name(&mut self.listeners, usize::from(id.0), Name::new(LogField::Listener, name));
    }

    /// Names a target; the last word counts.
    pub fn name_target(&mut self, id: TargetId, name: &str) {
        put_name(&mut self.targets, usize::from(id.0), Name::new(LogField::Target, name));
    }

    /// Names a backend (its name inside the target); the last word counts. Takes memory in proportion to
    /// the highest number named.
    pub fn name_backend(&mut self, id: BackendId, name: &str) {
        // A u32 fits a usize wherever this runs; the registry counts up, so the table stays dense.
        put_name(&mut self.backends, id.0 as usize, Name::new(LogField::Backend, name));
    }

    /// A listener's name, for whoever tells of it.
    #[must_use]
    pub fn said_of_listener(&self, id: ListenerId) -> String {
        said(self.listener(id), id.0)
    }

    /// A target's name, in the same way.
    #[must_use]
    pub fn said_of_target(&self, id: TargetId) -> String {
        said(self.target(id), id.0)
    }

    /// A listener's name; empty: it has none.
    #[must_use]
    pub fn listener_text(&self, id: ListenerId) -> &str {
        self.listener(id).map_or("", Name::text)
    }

    /// A target's name, in the same way.
    #[must_use]
    pub fn target_text(&self, id: TargetId) -> &str {
        self.target(id).map_or("", Name::text)
    }

    /// A backend's name, in the same way.
    #[must_use]
    pub fn backend_text(&self, id: BackendId) -> &str {
        self.backend(id).map_or("", Name::text)
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

/// The name of a route, ready to be logged.
#[derive(Clone, Debug)]
pub struct RouteName(Name);

impl RouteName {
    /// This one.
    #[must_use]
    pub fn new(name: &str) -> RouteName {
        RouteName(Name::new(LogField::Route, name))
    }

    /// As it is.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// As a member of an object; `None`: it is too long.
    #[inline(always)]
    pub(super) fn member(&self) -> Option<(&[u8; SHORT], usize)> {
        self.0.member()
    }
}

fn said(name: Option<&Name>, number: u16) -> String {
    name.map_or_else(|| format!("#{number}"), |name| name.text().to_owned())
}

fn put_name(names: &mut Vec<Option<Name>>, place: usize, name: Name) {
    if names.len() <= place {
        names.resize(place + 1, None);
    }
    names[place] = Some(name);
}

/// Bytes that are copied for a short member, whatever its length.
pub(super) const SHORT: usize = 48;

/// A name as it is and as it stands in an object of JSON.
#[derive(Clone, Debug)]
pub(super) struct Name {
    text: Arc<str>,
    /// The member with its key and the comma before it, filled up with blanks.
    member: [u8; SHORT],
    /// How much of `member` counts; 0: the member is longer than that.
    length: u8,
}

impl Name {
    fn new(field: LogField, text: &str) -> Name {
        let mut json = Batch::default();
        json.append(|room| escape::write_json(put(room, field.json_key().as_bytes())?, text.as_bytes()));
        let mut name = Name { text: text.into(), member: [b' '; SHORT], length: 0 };
        if let Some(member) = name.member.get_mut(..json.len()) {
            member.copy_from_slice(json.lines());
            name.length = u8::try_from(json.len()).expect("no longer than a short member");
        }
        name
    }

    /// As it is.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The member of an object with the comma before it, and how much of that counts; `None`: it is too long.
    #[inline(always)]
    pub(super) fn member(&self) -> Option<(&[u8; SHORT], usize)> {
        (self.length != 0).then_some((&self.member, usize::from(self.length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_is_a_member_of_json() {
        for name in
            ["", "a", "b \"2\"", "é", &"x".repeat(35), &"x".repeat(36), &"x".repeat(37), &"x".repeat(300)]
        {
            let named = Name::new(LogField::Target, name);
            let object = serde_json::json!({ "target": name }).to_string();
            let expected = format!(",{}", &object[1..object.len() - 1]);
            let member = named.member().map(|(text, length)| String::from_utf8_lossy(&text[..length]));
            assert_eq!(member.as_deref(), Some(&*expected).filter(|member| member.len() <= SHORT));
            assert_eq!(named.text(), name);
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
