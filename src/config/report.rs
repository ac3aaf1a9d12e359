//! Collects what is wrong with a configuration; nothing stops at the first.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::error::{Problem, Problems, Shown, Wrong, order};
use super::files::Files;
use super::files::fence::{Fence, Guard, NamedPaths, PathUse};
use super::hidden;
use super::origin::{Origin, Place, SourceFile, Spot};
use super::pattern::Pattern;
use super::snippet::{lines, snippet};

/// What is wrong so far, and the files that it may be wrong in.
#[derive(Debug)]
pub(super) struct Report {
    /// The config file, and those that it includes. Their places here are the numbers in places.
    sources: Vec<SourceFile>,
    list: Vec<Problem>,
    /// Values that are known to be unusable, with the number of problems before anybody looked at them.
    broken: HashMap<Place, usize>,
    /// Where secrets stand.
    secrets: Vec<Place>,
    /// What is right and yet may not be what somebody wants.
    warnings: Vec<String>,
    /// What was read, or would have been.
    pub(super) files: Files,
    /// What it names.
    named: NamedPaths,
    /// What it may name; `None`: whatever this process may read.
    guard: Option<Guard>,
}

impl Report {
    /// An empty report about a config file and those that it includes.
    pub(super) fn new(sources: Vec<SourceFile>) -> Self {
        Report {
            sources,
            list: Vec::new(),
            broken: HashMap::new(),
            secrets: Vec::new(),
            warnings: Vec::new(),
            files: Files::default(),
            named: NamedPaths::new(),
            guard: None,
        }
    }

    /// The same about a config that may name only some files.
    pub(super) fn behind(fence: Option<&Fence>, sources: Vec<SourceFile>) -> Self {
        Report { guard: fence.cloned().map(Guard::new), ..Report::new(sources) }
    }

    /// Notes that something is named at `place`; reports it, if it may not be.
    pub(super) fn names(&mut self, path: &Path, using: PathUse, place: Option<Place>) -> bool {
        self.named.insert((using, path.to_owned()));
        let is_pattern = using == PathUse::Include && path.to_str().is_some_and(Pattern::is_one);
        let guard = self.guard.as_mut();
        let is_fine = guard.is_none_or(|guard| guard.admits(path, using, is_pattern, place));
        if let (false, Some(place)) = (is_fine, place) {
            let words = self.guard.as_ref().map(|guard| guard.words(path, using)).unwrap_or_default();
            self.at(place, words);
        }
        is_fine
    }

    /// The same of a file that was found in a folder which may be named.
    pub(super) fn note_name(&mut self, using: PathUse, path: &Path) {
        self.named.insert((using, path.to_owned()));
    }

    /// The file of this number is a part of the config because of what stands at `place`.
    pub(super) fn bring(&mut self, file: u16, place: Place) {
        if let Some(guard) = &mut self.guard {
            guard.bring(file, place);
        }
    }

    /// It came from afar.
    pub(super) fn is_guarded(&self) -> bool {
        self.guard.as_ref().is_some_and(Guard::is_discreet)
    }

    /// From this file on they are the node's own, and may name what they like.
    pub(super) fn trust_from(&mut self, number: u16) {
        if let Some(guard) = &mut self.guard {
            guard.trusted = number;
        }
    }

    /// Where secrets stand.
    pub(super) fn secrets(&self) -> &[Place] {
        &self.secrets
    }

    /// It names what it may not, so nothing of what it names is to be opened.
    pub(super) fn is_breached(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.is_breached)
    }

    /// The same about one file with this text.
    pub(super) fn about(name: &str, text: &str) -> Self {
        Report::new(vec![SourceFile::new(Path::new(name), text)])
    }

    /// Adds a file; its number.
    pub(super) fn add(&mut self, source: SourceFile) -> u16 {
        self.sources.push(source);
        // There are far fewer of them (`include`).
        u16::try_from(self.sources.len() - 1).unwrap_or(u16::MAX)
    }

    /// The file of this number.
    pub(super) fn source(&self, file: u16) -> &SourceFile {
        self.sources.get(usize::from(file)).unwrap_or(&self.sources[0])
    }

    /// The name of the file that something stands in.
    pub(super) fn name(&self, place: Place) -> Arc<str> {
        Arc::clone(&self.source(place.file).name)
    }

    /// All files.
    pub(super) fn sources(&self) -> &[SourceFile] {
        &self.sources
    }

    /// Nothing was wrong so far.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A problem at a place in a file.
    pub(super) fn at(&mut self, place: Place, message: impl Into<String>) -> &mut Problem {
        let file = Some(self.name(place));
        self.push(file, Some(place), message.into())
    }

    /// What stands at `place` is unusable and that has been said; what is found wrong with it later is not.
    pub(super) fn silence(&mut self, place: Place) {
        self.broken.insert(place, self.list.len());
    }

    /// What stands at `place` is a secret; no line that is shown has it.
    pub(super) fn hide(&mut self, place: Place) {
        self.secrets.push(place);
    }

    /// A problem of the whole config.
    pub(super) fn whole(&mut self, message: impl Into<String>) -> &mut Problem {
        let file = Some(Arc::clone(&self.source(0).name));
        self.push(file, None, message.into())
    }

    /// A problem of the command line.
    pub(super) fn command_line(&mut self, message: impl Into<String>) -> &mut Problem {
        self.push(None, None, message.into())
    }

    /// A problem of a value that stands at `spot`.
    pub(super) fn spot(&mut self, spot: &Spot, message: impl Into<String>) -> &mut Problem {
        match (&spot.origin, spot.place) {
            (_, Some(place)) => self.at(place, message),
            (Origin::Flag(_), None) => self.command_line(message),
            (
                Origin::Default | Origin::File { .. } | Origin::Environment { .. } | Origin::Hand { .. },
                None,
            ) => self.whole(message),
        }
    }

    /// A problem of the value of `subject` that stands at `spot`.
    pub(super) fn wrong(&mut self, spot: &Spot, subject: &str, wrong: Wrong) {
        let problem = self.spot(spot, format!("{subject} {}", wrong.message));
        problem.expected = wrong.expected;
        (problem.hint, problem.note, problem.fix) = (wrong.hint, wrong.note, wrong.fix.map(|fix| *fix));
        if let Origin::Environment { variable, .. } = &spot.origin
            && !problem.message.contains(&format!("${{{variable}}}"))
        {
            let from = format!("from the variable `{variable}`");
            problem.note = Some(problem.note.take().map_or(from.clone(), |note| format!("{note}; {from}")));
        }
    }

    /// Something that is right and yet may not be what somebody wants.
    pub(super) fn warn(&mut self, spot: &Spot, message: &str) {
        let message = match &spot.origin {
            Origin::Default => Shown(message).to_string(),
            origin => format!("{}: {}", Shown(&origin.to_string()), Shown(message)),
        };
        self.warnings.push(message);
    }

    /// The warnings of a config in which nothing is wrong, the files that it was made of, and what it names.
    pub(super) fn into_accepted(self) -> (Vec<String>, Files, NamedPaths) {
        (self.warnings, self.files, self.named)
    }

    /// Ends the collection.
    pub(super) fn finish(mut self) -> Problems {
        let broken = self.broken;
        let mut number = 0;
        self.list.retain(|problem| {
            number += 1;
            problem.place.and_then(|place| broken.get(&place)).is_none_or(|said| number <= *said)
        });
        if let Some(guard) = &self.guard {
            self.list.iter_mut().for_each(|problem| guard.mask(problem));
            if guard.is_discreet() {
                self.sources.truncate(1);
            }
        }
        // A stable sort keeps the order of discovery at one place.
        self.list.sort_by_key(order);
        self.list.dedup();
        show_lines(&mut self.list, &self.sources, &self.secrets);
        Problems { list: self.list, files: self.files, sources: self.sources }
    }

    /// Problems without words at these spots, as they would be told.
    pub(super) fn dressed<'s>(&self, spots: impl Iterator<Item = &'s Spot>) -> Vec<Problem> {
        let bare = |spot: &Spot| Problem {
            file: spot.place.map(|place| self.name(place)),
            place: spot.place,
            message: String::new(),
            expected: None,
            hint: None,
            note: None,
            fix: None,
            is_syntax: false,
            snippet: None,
        };
        let mut list: Vec<Problem> = spots.map(bare).collect();
        if let Some(guard) = &self.guard {
            list.iter_mut().for_each(|problem| guard.mask(problem));
        }
        show_lines(&mut list, &self.sources, &self.secrets);
        list
    }

    fn push(&mut self, file: Option<Arc<str>>, place: Option<Place>, message: String) -> &mut Problem {
        let problem = Problem {
            file,
            place,
            message,
            expected: None,
            hint: None,
            note: None,
            fix: None,
            is_syntax: false,
            snippet: None,
        };
        self.list.push(problem);
        let last = self.list.len() - 1;
        &mut self.list[last]
    }
}

/// Adds the line that each is about.
fn show_lines(list: &mut [Problem], sources: &[SourceFile], secrets: &[Place]) {
    let mut shown: HashMap<u16, Vec<&str>> = HashMap::new();
    for problem in list {
        if let Some(place) = problem.place {
            let source = sources.get(usize::from(place.file));
            let text = || source.map(|source| lines(&source.text).collect()).unwrap_or_default();
            let line =
                shown.entry(place.file).or_insert_with(text).get((place.line as usize).saturating_sub(1));
            let secrets: Vec<Place> =
                secrets.iter().filter(|secret| secret.file == place.file).copied().collect();
            problem.snippet = line.map(|line| snippet(&hidden::mask(line, place.line, &secrets), place));
        }
    }
}
