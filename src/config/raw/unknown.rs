//! What to say about a key that stands where nobody knows it: its right name, or its right place.

use super::kind::Shape;
use super::shape::Home;
use crate::config::edit::Fix;
use crate::config::error::{Problem, one_of};
use crate::config::origin::Place;
use crate::config::yaml::{Entry, Typed};

/// The mappings that a walk is in, outermost first: their paths, and where their first keys stand.
pub(super) type Trail = Vec<(&'static str, Option<Place>)>;

/// Where an entry belongs whose key stands in the wrong group, and how it gets there.
pub(super) fn moved(
    entry: &Entry,
    all: &[Entry],
    shape: &Shape,
    home: &Home,
    trail: &Trail,
) -> (String, Option<Fix>) {
    let place = entry.key_place;
    let elsewhere = if home.is_foreign {
        format!("did you mean `{}{}`?", home.path, home.key)
    } else {
        format!("`{}` belongs elsewhere: it is `{}{}`", home.key, home.path, home.key)
    };
    let key = &home.key;
    if let Some(by) = below_targets(entry, all, home) {
        let words = format!(
            "indent it by {by} spaces, with all that stands below it: `{}` belongs to a target",
            home.key
        );
        return (words, Some(Fix::Indent(vec![place], by)));
    }
    let inner = home.path.strip_prefix(shape.path).filter(|inner| !inner.is_empty() && !inner.contains('<'));
    let name = home.key.to_owned();
    match inner.map(|inner| inner.trim_end_matches('.')) {
        Some(group) if !group.contains(['.', '[']) => match all.iter().find(|other| other.key == group) {
            None => {
                let words = format!("write it inside of `{group}`: `{group}: {{{key}: …}}`");
                (words, Some(Fix::Wrap(place, group.to_owned(), name)))
            }
            Some(group) => match group.node.typed() {
                Typed::Map([first, ..]) => {
                    let words = format!("move it into `{}` on line {}", group.key, group.key_place.line);
                    (words, Some(Fix::Move(place, first.key_place, name)))
                }
                _ => (elsewhere, None),
            },
        },
        Some(_) => (elsewhere, None),
        None => {
            // An edit stays in one file.
            let is_here = |first: &Option<Place>| first.is_some_and(|first| first.file == place.file);
            let outer = trail.iter().find(|(path, first)| *path == home.path && is_here(first));
            match outer.and_then(|(path, first)| Some((path, (*first)?))) {
                Some((&"", first)) => (
                    format!("move it to the top level: `{key}` holds for all targets"),
                    Some(Fix::Move(place, first, name)),
                ),
                Some((_, first)) if home.path == "targets.<name>." => {
                    let fix = (!key.contains('.')).then_some(Fix::Move(place, first, name));
                    (to_the_target(entry, home), fix)
                }
                Some((_, first)) => (elsewhere, Some(Fix::Move(place, first, name))),
                None => (elsewhere, None),
            }
        }
    }
}

/// What becomes of a key of a backend that is one of its target.
fn to_the_target(entry: &Entry, home: &Home) -> String {
    let key = &home.key;
    let value = entry.node.text().unwrap_or("…");
    match key.split_once('.') {
        Some((group, key)) => {
            let whose = if group == "breaker" { "; each backend has its own" } else { "" };
            format!("write `{group}: {{{key}: {value}}}` in the target{whose}")
        }
        None if key == "max_in_flight" && home.is_foreign => {
            format!("write `{key}: {value}` in the target: for each of its backends")
        }
        None if key == "max_in_flight" => {
            "move it to the target: there it is the limit for each of its backends".to_owned()
        }
        None => format!("move it to the target: `{key}` holds for all of its backends"),
    }
}

/// What to say about a key that is like nothing: it may be there for anchors, or else the keys there are.
pub(super) fn extension<'p>(problem: &'p mut Problem, key: &str, shape: &Shape) -> &'p mut Problem {
    if is_extension(key) {
        return problem.note("keys that begin with `x-` may stand at the top level only");
    }
    let is_anchor = shape.path.is_empty() && (key.starts_with(['.', '_']) || key.get(1..2) == Some("-"));
    problem.expected(one_of(shape.names()));
    if is_anchor { problem.note("a key for anchors begins with `x-`") } else { problem }
}

/// A key at the top level that is there for anchors, and ignored otherwise.
pub(in crate::config) fn is_extension(key: &str) -> bool {
    key.starts_with("x-")
}

/// The key that a path begins with.
pub(super) fn first(path: &'static str) -> &'static str {
    path.split('.').next().unwrap_or(path)
}

/// How much deeper an entry at the top level belongs to be a key of the last target above it.
fn below_targets(entry: &Entry, all: &[Entry], home: &Home) -> Option<usize> {
    let targets = all.iter().find(|other| other.key == "targets" && home.path == "targets.<name>.")?;
    let (Typed::Map([.., last]), false) = (targets.node.typed(), home.is_foreign) else { return None };
    let Typed::Map([first, ..]) = last.node.typed() else { return None };
    let is_below = last.key_place.line > targets.key_place.line && entry.key_place.line > last.key_place.line;
    let by = first.key_place.column.checked_sub(entry.key_place.column)? as usize;
    (is_below && by > 0 && first.key_place.line > last.key_place.line).then_some(by)
}

/// The entry under the name that was meant, which may be a path.
pub(super) fn renamed(entry: &Entry, all: &[Entry], meant: &'static str) -> (String, Option<Fix>) {
    let words = match meant.split_once('.') {
        Some((group, key)) => format!("did you mean `{group}: {{{key}: …}}`?"),
        None => format!("did you mean `{meant}`?"),
    };
    if let Some(there) = all.iter().find(|other| other.key == first(meant)) {
        let line = there.key_place.line;
        return (format!("{words} `{}` is there already, on line {line}", there.key), None);
    }
    let fix = match meant.split_once('.') {
        Some((group, key)) => Fix::Wrap(entry.key_place, group.to_owned(), key.to_owned()),
        None => Fix::At(entry.key_place, meant.to_owned()),
    };
    (words, Some(fix))
}
