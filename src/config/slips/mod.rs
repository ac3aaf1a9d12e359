//! Slips of the hand that YAML itself can't name: it reads on until nothing makes sense, or takes them for text.
//!
//! Looked for only in files that do not load, so a file that is right is never taken for a wrong one. Pure text; called by
//! `advice`.

mod lines;
mod repairs;
mod slip;

use super::edit::Fix;
use super::origin::Place;
use super::snippet::lines as lines_of;
pub(super) use repairs::{comment, repair};
use slip::{Burden, Slip, small};

/// Every slip, and the text without them.
pub(super) fn find(text: &str, burden: Burden<'_>) -> (Vec<Slip>, String) {
    if let Some((slip, mended)) = conflict(text) {
        return (vec![slip], mended);
    }
    if let Some((slip, mended)) = tabs(text, burden) {
        return (vec![slip], mended);
    }
    let mut slips = Vec::new();
    let mended: Vec<String> = lines_of(text)
        .enumerate()
        .map(|(index, line)| {
            let number = small(index + 1);
            match lines::slip(line, number) {
                Some((slip, mended)) => {
                    slips.push(slip);
                    mended
                }
                None => line.to_owned(),
            }
        })
        .collect();
    (slips, mended.join("\n"))
}

/// What a merge has left behind; the text without it has the first side.
fn conflict(text: &str) -> Option<(Slip, String)> {
    let is = |line: &str, mark: &str| {
        line.starts_with(mark) && line[mark.len()..].starts_with([' ', '\r']) || line == mark
    };
    let all: Vec<&str> = text.split('\n').collect();
    let first = all.iter().position(|line| is(line, "<<<<<<<"))?;
    all.iter().skip(first).position(|line| is(line, ">>>>>>>"))?;
    let mut is_other = false;
    let mut kept = Vec::new();
    for line in &all {
        if is(line, "<<<<<<<") {
            is_other = false;
        } else if is(line, "=======") || is(line, "|||||||") {
            is_other = true;
        } else if is(line, ">>>>>>>") {
            is_other = false;
        } else if !is_other {
            kept.push(*line);
        }
    }
    let mended = kept.join("\n");
    let slip = Slip {
        place: Place::new(small(first + 1), 1, 7),
        message: "a merge that was not finished has left its marks here".to_owned(),
        expected: None,
        hint: "keep one side, for example the upper one, and remove the lines with `<<<<<<<`, `=======` and `>>>>>>>`"
            .to_owned(),
        fix: Fix::Text(mended.clone()),
        secret: None,
    };
    Some((slip, mended))
}

/// Tabs in front of lines; the text without them has as many blanks for each as make the most sense.
fn tabs(text: &str, burden: Burden<'_>) -> Option<(Slip, String)> {
    let lead = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let has_tab = |line: &str| line[..lead(line)].contains('\t') && !line.trim().is_empty();
    let found: Vec<usize> =
        text.split('\n').enumerate().filter(|(_, line)| has_tab(line)).map(|(index, _)| index).collect();
    let first = *found.first()?;
    let with = |width: usize| -> String {
        let line = |line: &str| {
            let (blanks, rest) = line.split_at(lead(line));
            blanks.replace('\t', &" ".repeat(width)) + rest
        };
        text.split('\n').map(line).collect::<Vec<_>>().join("\n")
    };
    let (width, mended) =
        [2, 4, 8].map(|width| (width, with(width))).into_iter().min_by_key(|(_, text)| burden(text))?;
    let column = text.split('\n').nth(first)?.chars().position(|c| c == '\t')? + 1;
    let more = match found.len() {
        1 => String::new(),
        2 => ", and in front of another line".to_owned(),
        count => format!(", and in front of {} other lines", count - 1),
    };
    let slip = Slip {
        place: Place::new(small(first + 1), small(column), 1),
        message: format!("a tab stands where YAML allows only spaces{more}"),
        expected: None,
        hint: format!("write {width} spaces for each tab"),
        fix: Fix::Text(mended.clone()),
        secret: None,
    };
    Some((slip, mended))
}
