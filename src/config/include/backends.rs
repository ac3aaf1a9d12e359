//! Files of backends: what is in one stands behind the item of `backends` that names it, as if it were written there.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use crate::config::error::quoted;
use crate::config::files::FileRole;
use crate::config::files::fence::PathUse;
use crate::config::origin::{Place, SourceFile};
use crate::config::report::Report;
use crate::config::variables::{self, Environment};
use crate::config::yaml::{self, Entry, Node, Typed, Value};

use super::text::{Instead, Unreadable, read};

/// The files of backends that a config has named so far.
pub(super) struct BackendFiles<'r> {
    pub(super) instead: &'r Instead,
    pub(super) environment: Environment<'r>,
    /// How long each is, by its real path, and what is in it; `None`: there is a fault, which has been reported.
    pub(super) known: HashMap<PathBuf, Option<(u64, Vec<Node>)>>,
}

impl BackendFiles<'_> {
    /// Puts the content of all that `root` names into it. `left`: bytes that may still be read.
    pub(super) fn fill(&mut self, root: &mut Node, left: &mut u64, report: &mut Report) {
        for list in lists(root) {
            if !list.iter().any(|item| named(item).is_some()) {
                continue;
            }
            let mut here = HashSet::new();
            for item in std::mem::take(list) {
                let file = named(&item);
                list.push(item);
                let Some((text, place)) = file else { continue };
                let path = report.source(place.file).folder().join(&text);
                let path = std::fs::canonicalize(&path).unwrap_or(path);
                if !here.insert(path.clone()) {
                    report
                        .at(place, format!("{} is there twice in one list", quoted(&text)))
                        .note("remove one of them");
                    continue;
                }
                list.extend(self.content(path, &text, place, left, report));
            }
        }
    }

    /// The backends of one file.
    fn content(
        &mut self,
        identity: PathBuf,
        text: &str,
        place: Place,
        left: &mut u64,
        report: &mut Report,
    ) -> Vec<Node> {
        let path = report.source(place.file).folder().join(text);
        if let Some(known) = self.known.get(&identity) {
            // What is copied counts as if it were written again.
            let Some((length, items)) = known else { return Vec::new() };
            if *length > *left {
                Unreadable::TooLarge.tell(&path, Some((place, &format!("`{}`", path.display()))), report);
                return Vec::new();
            }
            *left -= length;
            return items.clone();
        }
        let before = *left;
        let content = if report.names(&path, PathUse::Backends, Some(place)) {
            self.read(&path, place, left, report)
        } else {
            None
        };
        self.known.insert(identity, content.clone().map(|items| (before - *left, items)));
        content.unwrap_or_default()
    }

    fn read(&self, path: &PathBuf, place: Place, left: &mut u64, report: &mut Report) -> Option<Vec<Node>> {
        report.files.add(path, FileRole::Named);
        let text = match self.instead.get(path) {
            Some(text) => Ok(Arc::clone(text)),
            None => read(path, *left).map(Arc::from),
        };
        let subject = format!("`{}`", path.display());
        let text = match text {
            Ok(text) if text.trim().is_empty() => Err(Unreadable::Empty),
            other => other,
        };
        let text: Arc<str> = match text {
            Ok(text) => text,
            Err(fault) => {
                fault.tell(path, Some((place, &subject)), report);
                return None;
            }
        };
        *left = left.saturating_sub(text.len() as u64);
        let file = report.add(SourceFile { text: Arc::clone(&text), ..SourceFile::new(path, "") });
        report.bring(file, place);
        let mut root = yaml::read(&text, file, report)?;
        variables::substitute(&mut root, |_| false, self.environment, report);
        let expected =
            "a list of backends, each with `host` and `port` or with `url`; or `backends` with such a list";
        let root_place = root.place;
        let items = match root.value {
            Value::List(items) => items,
            Value::Map(mut entries) if matches!(&entries[..], [only] if only.key == "backends") => {
                match entries.pop().map(|only| only.node.value) {
                    Some(Value::List(items)) => items,
                    _ => {
                        report
                            .at(root_place, format!("`backends` in {subject} is no list"))
                            .expected(expected);
                        return None;
                    }
                }
            }
            _ => {
                report
                    .at(root_place, format!("what is in {subject} is neither a list nor `backends` alone"))
                    .expected(expected);
                return None;
            }
        };
        if items.is_empty() {
            let problem = report.at(root_place, format!("the list in {subject} is empty"));
            problem
                .expected("at least one backend")
                .note("while a config is in force, those that it had before stay");
            return None;
        }
        Some(items)
    }
}

/// The lists of backends of all targets.
fn lists(root: &mut Node) -> Vec<&mut Vec<Node>> {
    let mut lists = Vec::new();
    let Value::Map(top) = &mut root.value else { return lists };
    for targets in top.iter_mut().filter(|entry| entry.key == "targets") {
        let Value::Map(targets) = &mut targets.node.value else { continue };
        for target in targets {
            let Value::Map(keys) = &mut target.node.value else { continue };
            for backends in keys.iter_mut().filter(|entry| entry.key == "backends") {
                if let Value::List(items) = &mut backends.node.value {
                    lists.push(items);
                }
            }
        }
    }
    lists
}

/// The file that an item names.
fn named(item: &Node) -> Option<(String, Place)> {
    let Typed::Map(entries) = item.typed() else { return None };
    let Entry { node, .. } = entries.iter().find(|entry| entry.key == "file")?;
    match node.typed() {
        Typed::Text(text) if !text.is_empty() => Some((text.to_owned(), node.place)),
        _ => None,
    }
}
