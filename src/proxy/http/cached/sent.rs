//! The request as the backend gets it.

use std::cell::OnceCell;

use crate::cache::write_query;
use crate::message::Head;
use crate::proxy::http::h1::edit::RequestEdits;

use crate::proxy::http::routing::way::Way;
use crate::snapshot::RouteCache;

/// A head as the backend gets it, as far as that depends on the request: `Vary` speaks of this one. Made when it is asked for.
pub(super) struct SentHead<'s> {
    head: &'s Head,
    edits: Option<RequestEdits<'s>>,
    edited: OnceCell<Head>,
}

impl<'s> SentHead<'s> {
    /// That of a request.
    #[must_use]
    pub(super) fn new(way: &'s Way<'_>, came: &'s Head) -> SentHead<'s> {
        SentHead { head: way.head(came), edits: way.request_edits(), edited: OnceCell::new() }
    }

    /// It.
    #[must_use]
    pub(super) fn head(&self) -> &Head {
        let Some(edits) = &self.edits else { return self.head };
        self.edited.get_or_init(|| edited(self.head, edits))
    }
}

/// A head with lines that go and come.
#[must_use]
pub(super) fn edited(head: &Head, edits: &RequestEdits<'_>) -> Head {
    let mut edited = head.without(|name| edits.edits.removes(name));
    for line in edits.lines.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(colon) = memchr::memchr(b':', line) {
            edited.push_ours(line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
        }
    }
    edited
}

/// A head that is sent, with those parameters alone that tell objects apart: what backends never see can't make one answer stand for two.
/// `None`: it has no others.
#[must_use]
pub(super) fn selected(head: &Head, cache: &RouteCache) -> Option<Head> {
    let rule = &cache.key_rules.query;
    let path = head.path();
    cache.policy.query.as_ref()?;
    let question = memchr::memchr(b'?', path)?;
    let mut selected = path[..question].to_vec();
    write_query(&path[question + 1..], rule, &mut selected);
    (selected != path).then(|| head.with_path(&selected))
}
