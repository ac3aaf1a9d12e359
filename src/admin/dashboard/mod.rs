//! The dashboard: a page for browsers, and the stream of what it shows.
//!
//! What is shown are rows with names (`rows`). Once a second, while anybody looks, they are written anew as a frame: all of them,
//! and what has changed since the one before. A page gets one whole frame and then changes, all pages the same bytes; one that has
//! missed a frame gets a whole one again, so a slow page holds up nobody and is never wrong.

mod feed;
mod frame;
mod keeper;
mod latest;
mod login;
mod nodes;
mod page;
mod rows;
mod verdict;

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::ACCEPT;

use self::feed::DashboardFeed;
pub use self::keeper::FrameKeeper;
use self::latest::latest;
pub(super) use self::login::{log_in, log_out, session};
pub(super) use self::page::page;
use super::api::Api;
use super::event_routes::EVENT_STREAM;
use super::exchange::answers::{StreamReader, raw_json, stream};
use super::exchange::problem_document::ProblemDocument;
use super::exchange::question::Question;
use super::route::AdminOutcome;

/// What the dashboard shows: now, or as a stream.
pub(super) async fn look(api: Arc<Api>, asked: Question) -> AdminOutcome {
    let wants_nodes = asked.query("nodes").as_deref() == Some("on");
    if wants_nodes {
        api.frames.want_nodes();
    }
    let Some(frame) = latest(&api).await else {
        let detail = "no config is in force yet";
        return Err(ProblemDocument::plain(StatusCode::SERVICE_UNAVAILABLE, detail));
    };
    let mut accepts = asked.headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    if !accepts.any(|line| line.to_ascii_lowercase().contains(EVENT_STREAM)) {
        return Ok(raw_json(frame.all().clone()));
    }
    let who = asked.caller.who.clone();
    let mut answer = stream(EVENT_STREAM, DashboardFeed::new(&api, frame, &asked, wants_nodes).body());
    answer.extensions_mut().insert(StreamReader(who));
    Ok(answer)
}
