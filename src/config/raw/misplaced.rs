//! The targets of a file, and keys that stand among them although they belong into one: a slip of the indentation that
//! would otherwise be several problems, none of which names it.

use super::reader::Reader;
use super::shape;
use super::target::{self, RawTarget};
use crate::config::edit::Fix;
use crate::config::error::quoted;
use crate::config::origin::Field;
use crate::config::yaml::{Entry, Node, Typed};

/// Walks everything below `targets`.
pub(super) fn walk(of: &Entry, entries: &[Entry], reader: &mut Reader<'_>, targets: &mut Vec<RawTarget>) {
    let mut at = 0;
    while let Some(entry) = entries.get(at) {
        let misplaced = entries[at..].iter().take_while(|entry| is_key(entry)).count();
        if misplaced == 0 {
            let target = target::walk(entry, reader);
            targets.push(target);
            at += 1;
            continue;
        }
        let keys = &entries[at..at + misplaced];
        match at.checked_sub(1) {
            None => refuse_nameless(of, keys, misplaced == entries.len(), reader),
            Some(owner) => refuse(keys, &entries[owner], reader),
        }
        if let Some(target) = targets.last_mut() {
            keys.iter().for_each(|entry| forgive(&entry.key, target));
        }
        at += misplaced;
    }
}

/// Whether an entry is a key of a target rather than a target of that name.
fn is_key(entry: &Entry) -> bool {
    if !shape::TARGET.has(&entry.key) {
        return false;
    }
    match entry.node.typed() {
        // A target may well be called `queue`; one without a single key of a target is none.
        Typed::Map(inner) => !inner.is_empty() && !inner.iter().any(|inner| shape::TARGET.has(&inner.key)),
        Typed::Null => false,
        Typed::Bool(_) | Typed::Integer(_) | Typed::Float(_) | Typed::Text(_) | Typed::List(_) => true,
    }
}

/// Names as in a sentence, and the verb that fits them.
fn told(keys: &[Entry]) -> (String, bool) {
    let names: Vec<String> = keys.iter().map(|entry| quoted(&entry.key)).collect();
    match names.as_slice() {
        [one] => (one.clone(), false),
        [first @ .., last] => (format!("{} and {last}", first.join(", ")), true),
        [] => (String::new(), false),
    }
}

fn refuse_nameless(of: &Entry, keys: &[Entry], is_all: bool, reader: &mut Reader<'_>) {
    let Some(first) = keys.first() else { return };
    let message = format!("{} stands where the name of a target belongs", quoted(&first.key));
    let problem = reader.report.at(first.key_place, message);
    problem.expected("a name of your choice, and below it, deeper, the keys of that target");
    if is_all {
        let words = "write `web:` above it, and indent by 2 spaces what stands below `targets`";
        problem.hint(words, Fix::Nest(of.key_place, "web".to_owned()));
    }
}

fn refuse(keys: &[Entry], owner: &Entry, reader: &mut Reader<'_>) {
    let Some(first) = keys.first() else { return };
    let (names, are_many) = told(keys);
    let (stand, belong, it) =
        if are_many { ("stand", "belong", "them") } else { ("stands", "belongs", "it") };
    let message = format!("{names} {stand} beside the target {}, and {belong} into it", quoted(&owner.key));
    let by = inner_column(&owner.node).map_or(2, |column| column.saturating_sub(first.key_place.column));
    let problem = reader.report.at(first.key_place, message);
    if first.key_place.line == owner.key_place.line {
        problem.note(format!("a target with {} is {}", quoted(&first.key), example(&first.key)));
    } else {
        let words = format!("indent {it} by {by} spaces, with all that stands below");
        let places = keys.iter().map(|entry| entry.key_place).collect();
        problem.hint(words, Fix::Indent(places, by as usize));
    }
}

fn inner_column(target: &Node) -> Option<u32> {
    match target.typed() {
        Typed::Map([first, ..]) => Some(first.key_place.column),
        _ => None,
    }
}

fn example(key: &str) -> String {
    format!("`web: {{listener: 8080, {key}: …}}`")
}

/// What stands outside of a target is not missing in it.
pub(super) fn forgive(key: &str, target: &mut RawTarget) {
    match (key, &target.listener, &target.backends) {
        ("listener", Field::Absent, _) => target.listener = Field::Faulty,
        ("backends", _, Field::Absent) => target.backends = Field::Faulty,
        ("protocol", ..) => target.protocol = Field::Faulty,
        _ => {}
    }
}
