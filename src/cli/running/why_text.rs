//! Requests that are over as text for a terminal of 80 columns.
//!
//! Clients wrote paths, hosts and header lines, so each piece is escaped before it is cut and placed.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use crate::admin::requests::report::{RequestList, RequestStory, RequestSummary, StoryStep};
use crate::cli::output::shown;

/// Columns.
const WIDTH: usize = 80;
/// Those of the bars.
const BAR: usize = 16;
/// Those before the text of a step.
const BEFORE: usize = 52;
/// Lines that one piece of text takes at most.
const MOST_LINES: usize = 30;

/// A list, the latest first.
pub(super) fn list(list: &RequestList) -> String {
    let mut text = String::new();
    for one in &list.requests {
        let RequestSummary { id, time_ms, duration_ms, attempts, .. } = one;
        let begun = humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(*time_ms));
        let ended = shown(&ended(one));
        push(&mut text, &format!("{id}  {begun}  {ended}"), 0);
        let went = match (&one.target, &one.backend) {
            (Some(target), Some(backend)) => format!(", {target}/{backend}"),
            (Some(target), None) => format!(", {target}"),
            (None, _) => format!(", listener {}", one.listener),
        };
        let tried = if *attempts > 1 { format!(", {attempts} attempts") } else { String::new() };
        let facts = format!("{}, {duration_ms} ms{went}{tried}", one.kept_for);
        push(&mut text, &shown(&facts), 4);
        if one.method.is_some() {
            push(&mut text, &shown(&asked(one)), 4);
        }
    }
    if list.more {
        text += "there are more: -n COUNT\n";
    }
    text
}

/// All of one.
pub(super) fn story(story: &RequestStory) -> String {
    let one = &story.summary;
    let mut text = String::new();
    push(&mut text, &shown(&asked(one)), 0);
    let fault = match story.fault.as_str() {
        "nobody" => String::new(),
        whose => format!(", by the fault of {whose}").replace("of client", "of the client"),
    };
    let fault = fault.replace("of backend", "of the backend");
    push(&mut text, &shown(&format!("{} after {} ms{fault}", ended(one), one.duration_ms)), 0);
    push(&mut text, &shown(&story.verdict), 2);
    let begun = humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(one.time_ms));
    text.push('\n');
    push(&mut text, &shown(&format!("{begun}  id {}", one.id)), 2);
    if let Some(trace) = one.trace_id.as_ref().filter(|trace| **trace != one.id) {
        push(&mut text, &shown(&format!("in trace {trace}")), 2);
    }
    let kept = match one.kept_for.as_str() {
        "retried" => "was tried again",
        "slow" => "was slow",
        "refused" => "was refused",
        "sampled" => "stands for a thousand",
        other => other,
    };
    push(&mut text, &shown(&format!("kept as one that {kept}")), 2);
    for line in &story.headers {
        push(&mut text, &format!("{}: {}", shown(&line.name), shown(&line.value)), 2);
    }
    let _ = writeln!(text, "\n{:>10} {:>9}", "at ms", "took ms");
    for step in &story.steps {
        push_step(&mut text, step, one.duration_ms);
    }
    if !story.config.is_empty() {
        let which = if story.config_changed { ", as it is now: it has changed since" } else { "" };
        let _ = writeln!(text, "\nconfig{which}");
    }
    for key in &story.config {
        push(&mut text, &shown(&format!("{}: {} ({})", key.key, key.value, key.place.text)), 2);
    }
    if !story.events.is_empty() {
        text += "\nwhat else happened within ten seconds\n";
    }
    for near in &story.events {
        let seconds = near.at_ms / 1000.0;
        let level = near.event.level.to_uppercase();
        push(&mut text, &format!("{seconds:+.3} s {} {}", shown(&level), shown(&near.event.text)), 2);
    }
    text
}

/// What was asked for.
fn asked(one: &RequestSummary) -> String {
    match &one.method {
        Some(method) => {
            let part = |text: &Option<String>| text.clone().unwrap_or_default();
            format!("{method} {}{}", part(&one.host), part(&one.path))
        }
        None if one.kind == "tcp" => format!("a TCP connection to listener {}", one.listener),
        None => format!("a request to listener {}, of which nothing was read", one.listener),
    }
}

/// How it ended.
fn ended(one: &RequestSummary) -> String {
    match (one.status, &one.cause) {
        (Some(status), Some(cause)) => format!("{status} {cause}"),
        (Some(status), None) => status.to_string(),
        (None, Some(cause)) => cause.clone(),
        (None, None) => "done".to_owned(),
    }
}

/// A step with its bar: where it lies between the beginning and the end.
fn push_step(text: &mut String, step: &StoryStep, whole_ms: f64) {
    let is_inside = matches!(step.step.as_str(), "connect" | "send" | "first byte" | "body" | "tunnel");
    let name = format!("{}{}", if is_inside { "  " } else { "" }, shown(&step.step));
    let took = step.took_ms.map_or(String::new(), |took| format!("{took:.3}"));
    let bar = bar(step, whole_ms);
    let before = format!("{:>10.3} {took:>9}  {name:<12} {bar:<BAR$} ", step.at_ms);
    let lines = wrapped(&shown(&step.text), WIDTH.saturating_sub(BEFORE.max(before.chars().count())));
    let mut lines = lines.iter();
    let _ = writeln!(text, "{}", format!("{before}{}", lines.next().map_or("", String::as_str)).trim_end());
    for line in lines {
        let _ = writeln!(text, "{:BEFORE$}{line}", "");
    }
}

fn bar(step: &StoryStep, whole_ms: f64) -> String {
    // What came before the request is no part of it.
    let Some(took) = step.took_ms.filter(|_| whole_ms > 0.0 && step.at_ms >= 0.0) else {
        return String::new();
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "columns"
    )]
    let column = |at: f64| ((at / whole_ms).clamp(0.0, 1.0) * BAR as f64) as usize;
    let start = column(step.at_ms).min(BAR - 1);
    let end = column(step.at_ms + took).max(start + 1);
    format!("{}{}", " ".repeat(start), "█".repeat(end - start))
}

/// Appends a piece of text in lines, `indent` blanks before each.
fn push(text: &mut String, piece: &str, indent: usize) {
    for line in wrapped(piece, WIDTH - indent) {
        let _ = writeln!(text, "{:indent$}{line}", "");
    }
}

/// Lines of at most `width` characters, broken at blanks where there are any.
fn wrapped(piece: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in piece.split_inclusive(' ') {
        let mut rest: Vec<char> = word.chars().collect();
        while !rest.is_empty() {
            if used == 0 && rest.iter().all(|sign| *sign == ' ') {
                break;
            }
            let length = rest.iter().rev().skip_while(|sign| **sign == ' ').count();
            if used > 0 && used + length > width {
                lines.push(String::new());
                used = 0;
            }
            let taken: String = rest.drain(..rest.len().min(width - used)).collect();
            used += taken.chars().count();
            lines.last_mut().into_iter().for_each(|line| line.push_str(&taken));
            if used == width {
                lines.push(String::new());
                used = 0;
            }
        }
    }
    if lines.last().is_some_and(|line| line.trim().is_empty()) && lines.len() > 1 {
        lines.pop();
    }
    if lines.len() > MOST_LINES {
        lines.truncate(MOST_LINES);
        lines.push("…".to_owned());
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests;
