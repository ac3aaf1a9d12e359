//! What to say to whoever wrote a file that does not load, beyond its problems one by one.
//!
//! A file of another program is told as such, in one problem. Slips that YAML can't name (a blank that is none, quotes of a
//! word processor, a missing blank) are told by name, and what else is wrong is found in the text without them. Then every hint
//! is followed, one at a time: one that leads to a problem which was not there before is shown as a note.
//! All of it file by file, with the others as they are. Called by `load_source`.

use std::collections::HashMap;

use super::edit::Fix;
use super::error::{Problem, Problems};
use super::origin::SourceFile;
use super::report::Report;
use super::{slips, strangers};

/// A file larger than this is shown its problems as they are.
const TEXT_MAX: usize = 64 * 1024;
/// Most problems whose hints are followed.
const PROBLEMS_MAX: usize = 64;

/// The problems with this text in the file of this number; `None`: it loads.
type Load<'l> = &'l dyn Fn(usize, &str) -> Option<Problems>;

/// The problems of a config as they are shown.
pub(super) fn give(mut problems: Problems, load: Load<'_>) -> Problems {
    let sources = std::mem::take(&mut problems.sources);
    if sources.iter().map(|source| source.text.len()).sum::<usize>() > TEXT_MAX {
        return problems;
    }
    let is_wrong = |problems: &Problems, source: &SourceFile| {
        problems.list.iter().any(|problem| problem.file.as_ref() == Some(&source.name))
    };
    for (file, source) in sources.iter().enumerate() {
        if !is_wrong(&problems, source) {
            continue;
        }
        if let Some(stranger) = strangers::recognised(&source.text) {
            let mut report = Report::new(sources.clone());
            stranger.tell(small(file), &mut report);
            let told = report.finish();
            if file == 0 {
                return told;
            }
            problems.list.retain(|problem| problem.file.as_ref() != Some(&source.name));
            problems = problems.with(told.list);
            continue;
        }
        problems = named(problems, file, &sources, &source.text, load);
    }
    if problems.list.len() > PROBLEMS_MAX {
        return problems;
    }
    let before = counted(&problems);
    for problem in &mut problems.list {
        let of = |source: &SourceFile| Some(&source.name) == problem.file.as_ref();
        let file = sources.iter().position(of);
        let leads_on = |file: usize| {
            let mended = problem.mended(&sources[file].text)?;
            Some(is_better(problem, &before, file, &sources, &mended, load))
        };
        if file.and_then(leads_on) != Some(true) {
            problem.demote();
        }
    }
    problems
}

/// The problems with slips in one file called by their names, and with a repair for one that is no YAML.
fn named(problems: Problems, file: usize, sources: &[SourceFile], text: &str, load: Load<'_>) -> Problems {
    let name = &sources[file].name;
    let burden = |text: &str| match load(file, text) {
        None => 0,
        Some(problems) if problems.list.iter().any(|problem| problem.is_syntax) => usize::MAX,
        Some(problems) => problems.list.len(),
    };
    let (slips, mended) = slips::find(text, &burden);
    if !slips.is_empty() {
        let mut sources = sources.to_vec();
        sources[file].text = text.into();
        let mut report = Report::new(sources);
        for slip in slips {
            slip.tell(small(file), &mut report);
        }
        let told = report.finish();
        let is_here = |problem: &Problem| problem.file.as_ref() == Some(name);
        let elsewhere = |problem: &Problem| problem.file.is_some() && !is_here(problem);
        let mut others: Vec<Problem> = problems.list.into_iter().filter(elsewhere).collect();
        let rest = load(file, &mended).map(|rest| rest.list).unwrap_or_default();
        others.extend(rest.into_iter().filter(|problem| !elsewhere(problem)));
        return told.with(others);
    }
    let mut problems = problems;
    for problem in problems.list.iter_mut().filter(|problem| problem.file.as_ref() == Some(name)) {
        let place = problem.place.filter(|_| problem.is_syntax);
        if let Some((words, fix)) = place.and_then(|place| slips::repair(text, place, &burden)) {
            problem.note = None;
            problem.hint(words, fix);
        } else if problem.hint.is_none()
            && let Some(place) = problem.place
        {
            // Nothing is wrong with that line any more.
            let is_accepted = |fix: &Fix| {
                let left = fix.apply(text, place).map(|mended| load(file, &mended));
                let on_line = |problem: &Problem| {
                    problem.place.is_some_and(|at| (at.file, at.line) == (place.file, place.line))
                };
                left.is_some_and(|left| !left.is_some_and(|left| left.list.iter().any(on_line)))
            };
            match slips::comment(text, place, is_accepted) {
                Some((words, Some(fix))) => problem.hint(words, fix),
                Some((words, None)) => problem.note(words),
                None => problem,
            };
        }
    }
    problems
}

/// Whether the file with one hint followed has this problem less, and no other one more.
fn is_better(
    problem: &Problem,
    before: &HashMap<String, usize>,
    file: usize,
    sources: &[SourceFile],
    mended: &str,
    load: Load<'_>,
) -> bool {
    let Some(left) = load(file, mended) else { return true };
    let after = counted(&named(left, file, sources, mended, load));
    let gone =
        after.get(&key(problem)).copied().unwrap_or(0) < before.get(&key(problem)).copied().unwrap_or(0);
    // Where the file was no YAML, nobody knew what else was wrong with it.
    gone && (problem.is_syntax
        || after.iter().all(|(key, count)| before.get(key).is_some_and(|old| count <= old)))
}

/// The number of a file in places.
fn small(file: usize) -> u16 {
    u16::try_from(file).unwrap_or(u16::MAX)
}

/// How often there is which problem, wherever it stands.
fn counted(problems: &Problems) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for problem in &problems.list {
        *counts.entry(key(problem)).or_default() += 1;
    }
    counts
}

/// A problem without the numbers of lines, which an edit may change.
fn key(problem: &Problem) -> String {
    let mut key = String::new();
    let mut rest = problem.message.as_str();
    while let Some((before, after)) = rest.split_once("line ") {
        key.push_str(before);
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    key + rest
}
