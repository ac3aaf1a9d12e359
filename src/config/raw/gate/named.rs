//! Rules that have a name at the top level, such as `access_lists`: mappings of several files add up.

use std::collections::HashMap;

use crate::config::error::{Wrong, quoted};
use crate::config::origin::Written;
use crate::config::raw::group::{items, there_already};
use crate::config::raw::reader::{Reader, found, subject};
use crate::config::raw::vocabulary::words::name;
use crate::config::yaml::{Entry, Node, Typed};

/// What messages call the rules of one key at the top level.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct RuleKind {
    /// The key at the top level.
    pub(in crate::config) key: &'static str,
    /// One of its rules: `access list`.
    pub(in crate::config) one: &'static str,
    /// What its value looks like.
    pub(in crate::config) form: &'static str,
}

/// One rule with its name.
#[derive(Debug)]
pub(in crate::config) struct RawNamed<T> {
    pub(in crate::config) name: Written<String>,
    /// What it says; `None`: a fault in it has been reported.
    pub(in crate::config) rule: Option<T>,
}

/// Walks the entries of one key at the top level, one in each file at most. `read` reads what stands behind a name.
pub(in crate::config::raw) fn walk<'n, T>(
    kind: RuleKind,
    entries: impl Iterator<Item = &'n Entry>,
    reader: &mut Reader<'_>,
    mut read: impl FnMut(&'n Entry, &mut Reader<'_>) -> Option<T>,
) -> Vec<RawNamed<T>> {
    let mut rules = Vec::new();
    let mut places: HashMap<&str, &Entry> = HashMap::new();
    for entry in entries {
        let all = match entry.node.typed() {
            Typed::Map(all) if !all.is_empty() => all,
            _ => {
                let wrong =
                    Wrong::new(found(&entry.node), format!("a mapping from names to rules: {}", kind.form));
                let wrong = match entry.node.typed() {
                    Typed::List(_) => wrong
                        .note("in place of `- name: web` stands `web:`, and the other keys deeper below it"),
                    _ => wrong,
                };
                reader.report.wrong(&reader.spot(entry), &subject(kind.key), wrong);
                continue;
            }
        };
        for entry in all {
            let spot = reader.key_spot(entry);
            if let Some(first) = places.get(entry.key.as_str()) {
                let place = reader.key_spot(first).origin;
                let message =
                    format!("the {} {} is there twice: first at {place}", kind.one, quoted(&entry.key));
                reader.report.spot(&spot, message).note("rename one of them, or remove it");
                continue;
            }
            places.insert(&entry.key, entry);
            if let Err(wrong) = name(&entry.key) {
                reader.report.wrong(&spot, &format!("the name of this {}", kind.one), wrong);
            }
            let rule = read(entry, reader);
            rules.push(RawNamed { name: Written::new(entry.key.clone(), spot), rule });
        }
    }
    rules
}

/// What a key that takes one rule or several has for each: a name, of which `name` says whether it could be one, or what `read` makes
/// of anything that is no text.
pub(in crate::config::raw) fn uses<T>(
    entry: &Entry,
    expected: &str,
    reader: &mut Reader<'_>,
    name: impl Fn(&str) -> Result<String, Wrong>,
    named: impl Fn(Written<String>) -> T,
    mut read: impl FnMut(&Node, &mut Reader<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let items = items(entry, reader, expected)?;
    let (mut all, mut names) = (Vec::with_capacity(items.len()), Vec::new());
    for item in items {
        let is_word = matches!(item.typed(), Typed::Text(_) | Typed::Integer(_) | Typed::Float(_));
        let Some(text) = item.text().filter(|_| is_word) else {
            all.extend(read(item, reader));
            continue;
        };
        let spot = reader.spot_of_use(item);
        if names.contains(&text) {
            reader.report.wrong(&spot, &subject(&entry.key), there_already(item, text));
            continue;
        }
        match name(text) {
            Ok(name) => {
                names.push(text);
                all.push(named(Written::new(name, spot)));
            }
            Err(wrong) => reader.report.wrong(&spot, &subject(&entry.key), wrong),
        }
    }
    (all.len() == items.len()).then_some(all)
}
