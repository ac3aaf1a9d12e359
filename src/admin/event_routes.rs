//! What is asked about events: those that are kept, or a stream of those to come.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{ACCEPT, HeaderName};

use super::api::Api;
use super::event_feed::{EventFeed, is_of};
use super::exchange::answers::{StreamReader, ok, stream};
use super::exchange::problem_document::ProblemDocument;
use super::exchange::question::Question;
use super::route::AdminOutcome;
use super::wire::EventList;
use crate::events::EventKind;

/// What a stream is asked for by.
pub const EVENT_STREAM: &str = "text/event-stream";
/// The last event that a client has got, of one that comes again.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// More are not kept.
pub const LIMIT_MAX: usize = 4096;

/// The events that are kept, or a stream.
pub(super) fn events(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    let accepts = asked.headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let kinds = kinds(asked)?;
    if accepts.into_iter().any(|line| line.to_ascii_lowercase().contains(EVENT_STREAM)) {
        return feed(api, asked, kinds);
    }
    let limit = match asked.query("limit") {
        Some(limit) => {
            limit.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit)).ok_or_else(|| {
                ProblemDocument::plain(
                    StatusCode::BAD_REQUEST,
                    format!("`limit` is a whole number from 1 to {LIMIT_MAX}"),
                )
            })?
        }
        None => LIMIT_MAX,
    };
    let history = &api.events;
    let after = asked.query("after").map(|name| history.number(&name));
    let found = history.after(after.unwrap_or(0), usize::MAX);
    let mut events = found.events;
    events.retain(|event| is_of(&kinds, event));
    match after {
        // The next ones.
        Some(_) => events.truncate(limit),
        // The latest.
        None => drop(events.drain(..events.len().saturating_sub(limit))),
    }
    Ok(ok(&EventList {
        events: events.iter().map(|event| history.report(event)).collect(),
        latest: history.name(found.latest),
        missed: if after.is_some() { found.missed } else { 0 },
    }))
}

/// A stream from the last event on that the client has got, or else from now on.
fn feed(api: &Arc<Api>, asked: &Question, kinds: Vec<EventKind>) -> AdminOutcome {
    if asked.query("limit").is_some() {
        return Err(ProblemDocument::plain(StatusCode::BAD_REQUEST, "a stream has no `limit`"));
    }
    let resumes = asked.headers.get(LAST_EVENT_ID).map(|name| name.to_str().unwrap_or_default().to_owned());
    let after = resumes.or_else(|| asked.query("after")).map(|name| api.events.number(&name));
    let reader = api.events.reader(after.unwrap_or_else(|| api.events.latest()));
    let drains = api.running.reloader.draining();
    let who = asked.caller.who.clone();
    let body = EventFeed::new(Arc::clone(&api.events), reader, kinds, drains, who.clone()).body();
    let mut answer = stream(EVENT_STREAM, body);
    answer.extensions_mut().insert(StreamReader(who));
    Ok(answer)
}

/// The kinds that are asked for.
fn kinds(asked: &Question) -> Result<Vec<EventKind>, ProblemDocument> {
    let Some(written) = asked.query("kind") else { return Ok(Vec::new()) };
    let names = written.split(',').map(str::trim).filter(|name| !name.is_empty());
    let kinds: Vec<EventKind> =
        names.map(|name| EventKind::named(name).ok_or_else(|| unknown(name))).collect::<Result<_, _>>()?;
    if kinds.is_empty() {
        // None would stand for all of them.
        return Err(ProblemDocument::plain(StatusCode::BAD_REQUEST, "`kind` names no kind"));
    }
    Ok(kinds)
}

fn unknown(name: &str) -> ProblemDocument {
    // What somebody sends may be long.
    let name: String = name.chars().take(40).collect();
    let likeness = |kind: &EventKind| strsim::jaro_winkler(kind.name(), &name);
    let nearest = EventKind::ALL.iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    let meant = nearest.filter(|kind| likeness(kind) > 0.8);
    let meant = meant.map_or(String::new(), |kind| format!("; did you mean `{}`?", kind.name()));
    ProblemDocument::plain(StatusCode::BAD_REQUEST, format!("there is no kind `{name}` of events{meant}"))
}
