//! What becomes of a route's requests.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::config::error::{Wrong, quoted};
use crate::config::model::Protocol;
use crate::config::model::route::{Action, Respond, Split, SplitBy, SplitSide};
use crate::config::origin::{Field, Written};
use crate::config::raw::{RawRespond, RawRoute, RawSplit};
use crate::config::report::Report;

/// Most bytes of a body: it is held in memory.
const BODY_MAX: u64 = 1 << 20;

/// Makes it; `None`: there is a fault, which has been reported. `targets`: all there are.
pub(super) fn accept(
    raw: &RawRoute,
    targets: &HashMap<&str, Protocol>,
    report: &mut Report,
) -> Option<Action> {
    if raw.is_idle() {
        let problem = report.spot(&raw.spot, "a route without `target`");
        problem
            .expected("`target: web`, with the name of a target")
            .note("or one of `split`, `redirect` and `respond`");
        return None;
    }
    let mut all_known = true;
    for target in raw.targets() {
        all_known &= is_known(target, targets, report);
    }
    if matches!(raw.target, Field::Absent) && matches!(raw.split, Field::Absent) {
        refuse_idle_keys(raw, report);
    }
    let action = match (&raw.target, &raw.split, &raw.redirect, &raw.respond) {
        (Field::Given(target), ..) => Action::Forward(target.value.as_str().into()),
        (_, Field::Given(split), ..) => Action::Split(self::split(&split.value)),
        (_, _, Field::Given(redirect), _) => Action::Redirect(redirect.value.0.clone()),
        (.., Field::Given(respond)) => Action::Respond(Arc::new(self::respond(&respond.value, report)?)),
        _ => return None,
    };
    all_known.then_some(action)
}

fn is_known(target: &Written<String>, targets: &HashMap<&str, Protocol>, report: &mut Report) -> bool {
    if targets.contains_key(&*target.value) {
        return true;
    }
    let problem = report.spot(&target.spot, format!("there is no target {}", quoted(&target.value)));
    let near = targets.keys().map(|name| (strsim::levenshtein(name, &target.value), *name)).min();
    match near.filter(|(distance, _)| *distance <= 2) {
        Some((_, near)) => problem.note(format!("did you mean {}?", quoted(near))),
        None => problem.note("its name stands under `targets`"),
    };
    false
}

/// A key without effect is a misunderstanding, so it is refused.
fn refuse_idle_keys(raw: &RawRoute, report: &mut Report) {
    let action = if matches!(raw.redirect, Field::Absent) { "respond" } else { "redirect" };
    for (key, spot) in &raw.forward_only {
        let message = format!("`{key}` has no effect: with `{action}` nothing goes to a backend");
        report.spot(spot, message).note("remove it");
    }
    if let Field::Given(headers) = &raw.headers
        && !headers.value.edits().request.is_empty()
    {
        let message =
            format!("`headers: {{request: …}}` has no effect: with `{action}` nothing goes to a backend");
        report.spot(&headers.spot, message).note("remove it; `response` is for the answer");
    }
}

fn split(raw: &RawSplit) -> Split {
    let side = |(target, weight): &(Written<String>, Written<u32>)| SplitSide {
        target: target.value.as_str().into(),
        weight: weight.value,
    };
    Split {
        sides: raw.targets.iter().map(side).collect(),
        by: raw.by.as_ref().map_or(SplitBy::Chance, |key| SplitBy::Key(key.value.clone())),
    }
}

fn respond(raw: &RawRespond, report: &mut Report) -> Option<Respond> {
    let status = raw.status.as_ref().and_then(|status| u16::try_from(status.value).ok()).unwrap_or(200);
    let body = match (&raw.body, &raw.body_file) {
        (Some(body), _) => {
            let bytes = body.value.clone().into_bytes();
            if bytes.len() as u64 > BODY_MAX {
                report.wrong(&body.spot, "`body`", Wrong::new("is larger than 1MiB", "a shorter one"));
                return None;
            }
            bytes
        }
        (None, Some(file)) => match content(&file.value) {
            Ok(bytes) => bytes,
            Err(wrong) => {
                report.wrong(&file.spot, "`body_file`", wrong);
                return None;
            }
        },
        (None, None) => Vec::new(),
    };
    let written = raw.body.as_ref().map(|body| &body.spot).or(raw.body_file.as_ref().map(|file| &file.spot));
    if let (204 | 205 | 304, Some(spot)) = (status, written) {
        let message = format!("an answer with the status {status} has no body (RFC 9110 §15)");
        report.spot(spot, message).note("remove it, or take another `status`");
        return None;
    }
    if let (Some(kind), None) = (&raw.content_type, written) {
        let message = "`content_type` has no effect: there is neither `body` nor `body_file`";
        report.spot(&kind.spot, message).note("remove it");
        return None;
    }
    let usual = match (&raw.body, &raw.body_file) {
        (Some(_), _) => Some("text/plain; charset=utf-8"),
        (None, Some(file)) => Some(type_of(&file.value)),
        (None, None) => None,
    };
    Some(Respond {
        status,
        body,
        content_type: raw.content_type.as_ref().map(|kind| kind.value.as_str()).or(usual).map(str::to_owned),
        headers: raw.headers.iter().map(|(name, text)| (name.clone(), text.value.clone())).collect(),
    })
}

/// What is in a file, by its name.
pub(super) fn type_of(file: &Path) -> &'static str {
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "xml" => "application/xml",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        _ => "application/octet-stream",
    }
}

/// The whole content of a file.
fn content(file: &Path) -> Result<Vec<u8>, Wrong> {
    const EXPECTED: &str = "a file of at most 1MiB";
    let name = quoted(&file.display().to_string());
    let wrong = |why: String| Wrong::new(format!("is {name}, which {why}"), EXPECTED);
    let facts = std::fs::metadata(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => wrong("does not exist".to_owned())
            .note("a relative path counts from the folder of the config file"),
        _ => wrong(format!("can't be read: {error}")),
    })?;
    if !facts.is_file() {
        return Err(wrong("is no file".to_owned()));
    }
    if facts.len() > BODY_MAX {
        return Err(wrong("is larger than 1MiB".to_owned()));
    }
    std::fs::read(file).map_err(|error| wrong(format!("can't be read: {error}")))
}
