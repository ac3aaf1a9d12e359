//! What to say to whoever wrote a file that does not load, beyond its problems one by one.
//!
//! A file of another program is told as such, in one problem. Slips that YAML can't name (a blank that is none, quotes of a
//! word processor, a missing blank) are told by name, and what else is wrong is found in the text without them. Then every hint
//! is followed, one at a time: one that leads to a problem which was not there before is shown as a note.
//! Called by `load_text`.

use std::collections::HashMap;

use super::edit::Fix;
use super::error::{Problem, Problems, Report};
use super::{slips, strangers};

/// A file larger than this is shown its problems as they are.
const TEXT_MAX: usize = 64 * 1024;
/// Most problems whose hints are followed.
const PROBLEMS_MAX: usize = 64;

/// The problems of a text; `None`: it loads.
type Load<'l> = &'l dyn Fn(&str) -> Option<Problems>;

/// The problems of `text` as they are shown.
pub(super) fn give(problems: Problems, text: &str, name: &str, load: Load<'_>) -> Problems {
    if text.len() > TEXT_MAX {
        return problems;
    }
    if let Some(stranger) = strangers::recognised(text) {
        let mut report = Report::new(name);
        stranger.tell(&mut report);
        return report.finish(text);
    }
    let mut problems = named(problems, text, name, load);
    if problems.list().len() > PROBLEMS_MAX {
        return problems;
    }
    let before = counted(&problems);
    for problem in problems.list_mut() {
        let leads_on = |mended: String| is_better(problem, &before, &mended, name, load);
        if !problem.mended(text).is_some_and(leads_on) {
            problem.demote();
        }
    }
    problems
}

/// The problems with slips called by their names, and with a repair for a text that is no YAML.
fn named(problems: Problems, text: &str, name: &str, load: Load<'_>) -> Problems {
    let burden = |text: &str| match load(text) {
        None => 0,
        Some(problems) if problems.list().iter().any(|problem| problem.is_syntax) => usize::MAX,
        Some(problems) => problems.list().len(),
    };
    let (slips, mended) = slips::find(text, &burden);
    if !slips.is_empty() {
        let mut report = Report::new(name);
        for slip in slips {
            slip.tell(&mut report);
        }
        let told = report.finish(text);
        return match load(&mended) {
            None => told,
            Some(rest) => told.with(rest),
        };
    }
    let mut problems = problems;
    for problem in problems.list_mut() {
        let place = problem.place.filter(|_| problem.is_syntax);
        if let Some((words, fix)) = place.and_then(|place| slips::repair(text, place, &burden)) {
            problem.note = None;
            problem.hint(words, fix);
        } else if problem.hint.is_none()
            && let Some(place) = problem.place
        {
            // Nothing is wrong with that line any more.
            let is_accepted = |fix: &Fix| {
                let left = fix.apply(text, place).map(|mended| load(&mended));
                let on_line = |problem: &Problem| problem.place.is_some_and(|at| at.line == place.line);
                left.is_some_and(|left| !left.is_some_and(|left| left.list().iter().any(on_line)))
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

/// Whether the text with one hint followed has this problem less, and no other one more.
fn is_better(
    problem: &Problem,
    before: &HashMap<String, usize>,
    mended: &str,
    name: &str,
    load: Load<'_>,
) -> bool {
    let Some(left) = load(mended) else { return true };
    let after = counted(&named(left, mended, name, load));
    let gone =
        after.get(&key(problem)).copied().unwrap_or(0) < before.get(&key(problem)).copied().unwrap_or(0);
    // Where the file was no YAML, nobody knew what else was wrong with it.
    gone && (problem.is_syntax
        || after.iter().all(|(key, count)| before.get(key).is_some_and(|old| count <= old)))
}

/// How often there is which problem, wherever it stands.
fn counted(problems: &Problems) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for problem in problems.list() {
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
