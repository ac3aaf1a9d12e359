//! Several files as one config: the file itself, and in its place each that it includes.
//!
//! Each file is a tree of its own, with its own anchors and variables; the walker takes all of them for one top level. A file
//! that is included twice, by two names or patterns, is read once, at the first place. Called by `config`.

mod backends;
mod text;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::quoted;
use super::files::FileRole;
use super::files::fence::PathUse;
use super::origin::{Place, SourceFile, Written};
use super::pattern::Pattern;
use super::raw;
use super::report::Report;
use super::variables::{self, Environment};
use super::yaml::{self, Node};
use backends::BackendFiles;
pub use text::Instead;
use text::Unreadable;
pub(super) use text::{FILE_MAX, read, text};

/// Most files of one config.
const FILES_MAX: usize = 1_000;
/// How deep files may include files.
const DEPTH_MAX: usize = 16;

/// All files of a config.
pub(super) struct Gathered {
    /// What is in them, in the order in which it counts.
    pub(super) roots: Vec<Node>,
    /// What they include, as it is written.
    pub(super) included: Vec<Written<String>>,
    /// Nothing is missing. What is has been reported.
    pub(super) is_whole: bool,
}

/// Reads the file of this number and all that it includes. `None`: one of them is no YAML.
pub(super) fn gather(
    report: &mut Report,
    number: u16,
    instead: &Instead,
    environment: Environment<'_>,
) -> Option<Gathered> {
    let main = report.source(number);
    let (text, identity) = (Arc::clone(&main.text), identity(&main.path));
    let left = FILE_MAX.saturating_sub(text.len() as u64);
    let gathered = Gathered { roots: Vec::new(), included: Vec::new(), is_whole: true };
    let mut reading = Reading {
        report,
        instead,
        environment,
        backends: BackendFiles { instead, environment, known: HashMap::new() },
        gathered,
        seen: HashSet::from([identity.clone()]),
        chain: vec![(identity, number)],
        left,
        is_yaml: true,
        is_over: false,
    };
    reading.take(&text, number);
    reading.is_yaml.then_some(reading.gathered)
}

struct Reading<'r> {
    report: &'r mut Report,
    instead: &'r Instead,
    environment: Environment<'r>,
    backends: BackendFiles<'r>,
    gathered: Gathered,
    /// Whatever was read, by its real path.
    seen: HashSet<PathBuf>,
    /// Which file includes which, from the config itself to the one that is being read: real paths and numbers.
    chain: Vec<(PathBuf, u16)>,
    /// Bytes that may still be read.
    left: u64,
    is_yaml: bool,
    /// There were too many files, which has been said.
    is_over: bool,
}

impl Reading<'_> {
    /// Takes in the text of a file, and behind it the files that it includes.
    fn take(&mut self, text: &str, file: u16) {
        let Some(mut root) = yaml::read(text, file, self.report) else {
            self.is_yaml = false;
            return;
        };
        variables::substitute(&mut root, raw::is_extension, self.environment, self.report);
        self.backends.fill(&mut root, &mut self.left, self.report);
        let items = raw::includes(&root, &mut raw::Reader::new(self.report));
        self.gathered.roots.push(root);
        self.gathered.included.extend(items.iter().cloned());
        for item in items {
            if let Some(place) = item.spot.place {
                self.include(&item.value, place);
            }
        }
    }

    /// Takes in what one item of `include` stands for.
    fn include(&mut self, text: &str, place: Place) {
        let folder = self.report.source(place.file).folder().to_owned();
        if !Pattern::is_one(text) {
            let path = folder.join(text);
            if !self.report.names(&path, PathUse::Include, Some(place)) {
                return;
            }
            self.report.files.add(&path, FileRole::Config);
            self.file(&path, place, None);
            return;
        }
        if !self.report.names(&folder.join(text), PathUse::Include, Some(place)) {
            return;
        }
        let pattern = match Pattern::new(&folder, text) {
            Ok(pattern) => pattern,
            Err(predicate) => {
                self.report.at(place, format!("{} {predicate}", quoted(text)));
                self.gathered.is_whole = false;
                return;
            }
        };
        let found = self.report.files.add_pattern(pattern, FileRole::Config);
        if let Some((folder, error)) = found.unread {
            let message = format!(
                "{} looks through the folder `{}`, which can't be read: {error}",
                quoted(text),
                folder.display()
            );
            self.report.at(place, message).note("what is in it is a part of the config, whatever it is");
            self.gathered.is_whole = false;
        }
        for path in found.files {
            self.report.files.add(&path, FileRole::Config);
            self.file(&path, place, Some(text));
        }
    }

    /// Takes in one file, unless it has been. `pattern`: the one that it was found by.
    fn file(&mut self, path: &Path, place: Place, pattern: Option<&str>) {
        let identity = identity(path);
        if let Some(at) = self.chain.iter().position(|(other, _)| *other == identity) {
            // A pattern is not about the file that it stands in.
            if pattern.is_none() || at + 1 < self.chain.len() {
                self.refuse_ring(at, path, place);
            }
            return;
        }
        if !self.seen.insert(identity.clone()) || self.is_over {
            return;
        }
        if self.chain.len() > DEPTH_MAX {
            let message = format!("files include files more than {DEPTH_MAX} levels deep");
            self.report.at(place, message);
            self.gathered.is_whole = false;
            return;
        }
        if self.seen.len() > FILES_MAX {
            let message = format!("more than {FILES_MAX} files are included");
            self.report.at(place, message);
            (self.gathered.is_whole, self.is_over) = (false, true);
            return;
        }
        let text = match self.instead.get(path) {
            Some(text) if text.len() as u64 > self.left => Err(Unreadable::TooLarge),
            Some(text) => Ok(Arc::clone(text)),
            None => read(path, self.left).map(Arc::from),
        };
        match text {
            Ok(text) if text.trim().is_empty() => {
                let subject = format!("`{}`", path.display());
                Unreadable::Empty.tell(path, Some((place, &subject)), self.report);
                self.gathered.is_whole = false;
            }
            Ok(text) => {
                self.left -= text.len() as u64;
                let file =
                    self.report.add(SourceFile { text: Arc::clone(&text), ..SourceFile::new(path, "") });
                self.report.bring(file, place);
                self.chain.push((identity, file));
                self.take(&text, file);
                self.chain.pop();
            }
            Err(fault) => {
                let file = path.display();
                let subject = match pattern {
                    Some(pattern) => format!("`{file}`, which {} matches,", quoted(pattern)),
                    None => format!("`{file}`"),
                };
                fault.tell(path, Some((place, &subject)), self.report);
                self.gathered.is_whole = false;
            }
        }
    }

    /// Reports that a file includes itself, by way of those between.
    fn refuse_ring(&mut self, from: usize, path: &Path, place: Place) {
        let mut names: Vec<String> =
            self.chain[from..].iter().map(|(_, file)| self.report.source(*file).name.to_string()).collect();
        names.push(path.display().to_string());
        let message = format!("files include one another in a ring: {}", names.join(" → "));
        self.report.at(place, message).note("remove one of these `include`s");
        self.gathered.is_whole = false;
    }
}

/// One path for all names of a file.
fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
