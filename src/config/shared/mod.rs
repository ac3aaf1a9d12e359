//! A config that the nodes of a cluster share, and what each node says of itself.
//!
//! What is shared is a text as somebody has written it, before `${NAME}` and `include`: each node has its own environment and its own files. What one node
//! alone can say ([`NODE_KEYS`]) is taken from its own file, and is in no shared text. Files that a shared text names have to lie below the folder of the node's
//! own file, unless that names them too; programs it names never.

mod part;

use std::path::Path;
use std::sync::Arc;

use super::files::Files;
use super::files::fence::Fence;
use super::include::{self, FILE_MAX, Instead};
use super::origin::SourceFile;
use super::report::Report;
use super::yaml::{Node, Value};
use super::{Effective, FileRole, Flags, Loaded, Problems, accept, raw, strangers};
pub use part::{InlineSecret, SharedPart, Uncut, shared_part};

/// Keys at the top level that each node has its own of.
pub const NODE_KEYS: &[&str] = &[
    "name",
    "state_dir",
    "watch",
    "admin",
    "cluster",
    "address",
    "workers",
    "zone",
    "logging",
    "log_format",
    "access_log",
];

/// Whether what has this path, such as `admin.listener`, is a node's own.
#[must_use]
pub fn is_of_node(path: &str) -> bool {
    let first = path.split(['.', '[']).next().unwrap_or(path);
    NODE_KEYS.contains(&first)
}

/// What differs between two configs beside what each node has its own of.
#[must_use]
pub fn shared_rows(rows: &[Effective]) -> Vec<Effective> {
    rows.iter().filter(|row| !is_of_node(&row.path)).cloned().collect()
}

/// A text that is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedText {
    /// As messages call it: `revision 3`.
    pub name: Arc<str>,
    /// What it says.
    pub text: Arc<str>,
}

/// Loads a shared text for the node whose own file this is.
///
/// # Errors
/// Every problem that was found, in the order of the text.
pub fn load_shared(
    own: &Path,
    shared: &SharedText,
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, Problems> {
    let mut files = Files::default();
    files.add(own, FileRole::Config);
    let own_text = match include::read(own, FILE_MAX) {
        Ok(text) => text,
        Err(fault) => {
            let mut report = Report::about(&own.display().to_string(), "");
            report.files = files;
            fault.tell(own, None, &mut report);
            return Err(report.finish());
        }
    };
    let main = SourceFile { name: Arc::clone(&shared.name), ..SourceFile::new(own, &shared.text) };
    let mut report = Report::behind(Some(&Fence::below(own)), vec![main]);
    report.files = files;
    let Some(mut gathered) = include::gather(&mut report, 0, &Instead::new(), env) else {
        return Err(report.finish());
    };
    let number = report.add(SourceFile::new(own, &own_text));
    report.trust_from(number);
    let Some(of_node) = include::gather(&mut report, number, &Instead::new(), env) else {
        return Err(report.finish());
    };
    gathered.roots.iter_mut().for_each(|root| keep(root, |key| !NODE_KEYS.contains(&key)));
    let is_whole = gathered.is_whole && of_node.is_whole;
    let mut roots = gathered.roots;
    roots.extend(of_node.roots.into_iter().map(|mut root| {
        keep(&mut root, |key| NODE_KEYS.contains(&key));
        root
    }));
    let raw = raw::walk(&roots, gathered.included, &mut raw::Reader::new(&mut report));
    if !raw.has_targets && !raw.has_listeners && is_whole && flags.backends.is_empty() {
        report.whole("what is shared has no `targets`").expected(strangers::SMALLEST);
    }
    if report.is_breached() {
        return Err(report.finish());
    }
    accept(raw, flags, report)
}

/// Keeps the entries of the top level that these hold for.
fn keep(root: &mut Node, is_kept: impl Fn(&str) -> bool) {
    if let Value::Map(entries) = &mut root.value {
        entries.retain(|entry| is_kept(&entry.key));
    }
}

#[cfg(test)]
mod tests;
