//! `evenkeel log`: the latest events, and those to come.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context as _;
use http_body_util::BodyExt as _;
use hyper::{Method, StatusCode};
use tokio::time::{sleep, timeout};

use super::ask::{AdminQuestion, begin};
use super::stream_pieces::{StreamMessage, StreamPieces};
use super::{Heard, complain, find, lost, tell, understood};
use crate::admin::event_routes::{EVENT_STREAM, LIMIT_MAX};
use crate::admin::exchange::percent::encoded;
use crate::admin::wire::EventList;
use crate::cli::args::log::LogOptions;
use crate::cli::json_events::escaped;
use crate::cli::output;
use crate::events::EventReport;

/// Events before those that are followed.
const BEFORE: usize = 10;
/// Between two tries to find the process again.
const PAUSE: Duration = Duration::from_millis(500);
/// A stream says more often that it is alive.
const SILENCE: Duration = Duration::from_secs(60);

/// How a stream has ended.
enum StreamEnd {
    /// The process has ended it.
    Closed,
    /// The command ends with this.
    Final(anyhow::Result<ExitCode>),
}

/// Prints what there is, and what comes if that is wanted.
pub(in crate::cli) fn run(options: &LogOptions) -> anyhow::Result<ExitCode> {
    let count = options.count.unwrap_or(if options.follow { BEFORE } else { LIMIT_MAX });
    let limit = count.clamp(1, LIMIT_MAX);
    let heard = match tell(&options.process, question(options, &format!("limit={limit}"))) {
        Ok(heard) => heard,
        Err(error) => return lost(&format!("{error:#}")),
    };
    if heard.status != StatusCode::OK {
        return complain(&heard, options.json);
    }
    let list: EventList = understood(&heard)?;
    let lines: Vec<String> = list.events.iter().map(|event| line(event, options.json)).collect();
    let is_read = output::put(&if count == 0 { String::new() } else { lines.concat() })?;
    if !options.follow || !is_read {
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(follow(options, list.latest))
}

/// Prints what comes after the event `seen`, also from another process in the place of this one.
async fn follow(options: &LogOptions, mut seen: String) -> anyhow::Result<ExitCode> {
    let mut is_told = false;
    loop {
        let before = seen.clone();
        match read(options, &mut seen).await {
            Ok(StreamEnd::Final(outcome)) => return outcome,
            Ok(StreamEnd::Closed) | Err(_) => {}
        }
        is_told &= before == seen;
        if !is_told {
            let _ = writeln!(std::io::stderr(), "the process does not answer; trying again until Ctrl-C");
            is_told = true;
        }
        sleep(PAUSE).await;
    }
}

/// Reads one stream, each message of which has its place. `seen` is where another one goes on.
async fn read(options: &LogOptions, seen: &mut String) -> anyhow::Result<StreamEnd> {
    let socket = find::socket(&options.process).await?;
    let asked = question(options, &format!("after={}", encoded(seen)));
    let answer = timeout(SILENCE, begin(&socket, asked, EVENT_STREAM)).await??;
    let (status, mut body) = (answer.status(), answer.into_body());
    if status != StatusCode::OK {
        let body = body.collect().await?.to_bytes().into();
        return Ok(StreamEnd::Final(complain(&Heard { status, body }, options.json)));
    }
    let mut pieces = StreamPieces::default();
    while let Some(frame) = timeout(SILENCE, body.frame()).await? {
        for message in pieces.add(&frame?.into_data().unwrap_or_default()) {
            match show(&message, options.json) {
                Ok(true) => *seen = message.id,
                Ok(false) => return Ok(StreamEnd::Final(Ok(ExitCode::SUCCESS))),
                // Output that can't be written does not get better.
                Err(error) => return Ok(StreamEnd::Final(Err(error))),
            }
        }
    }
    Ok(StreamEnd::Closed)
}

/// Prints a message of the stream. False: nobody reads any more.
fn show(message: &StreamMessage, is_json: bool) -> anyhow::Result<bool> {
    match message.event.as_str() {
        "" => Ok(true),
        "missed" => {
            let _ = writeln!(std::io::stderr(), "some events are gone: {}", output::shown(&message.data));
            Ok(true)
        }
        _ => {
            let event = serde_json::from_str(&message.data)
                .context("an event that this version does not understand")?;
            output::put(&line(&event, is_json))
        }
    }
}

fn question(options: &LogOptions, more: &str) -> AdminQuestion {
    let kinds = match &options.kind[..] {
        [] => String::new(),
        kinds => format!("kind={}&", encoded(&kinds.join(","))),
    };
    AdminQuestion { method: Method::GET, path: format!("/api/v1/events?{kinds}{more}"), body: Vec::new() }
}

/// An event as a line of the log, or as JSON.
fn line(event: &EventReport, is_json: bool) -> String {
    if is_json {
        // It has texts for keys.
        return escaped(serde_json::to_string(event).unwrap_or_default()) + "\n";
    }
    let time = humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(event.time_ms));
    format!("{time} {:>5} {}\n", event.level.to_uppercase(), output::shown(&event.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_looks_like_one_of_the_log_and_steers_no_terminal() {
        let event = EventReport {
            id: "a-1".into(),
            time_ms: 1_795_441_200_007,
            level: "warn".into(),
            kind: "backend_down".into(),
            object: Some("web/b1".into()),
            text: "no \u{1b}[2J\nway".into(),
            facts: serde_json::Map::new(),
        };
        assert_eq!(line(&event, false), "2026-11-23T13:40:00.007Z  WARN no \\u{1b}[2J\\nway\n");
        let json = line(&EventReport { text: "\u{9b}".into(), ..event }, true);
        assert!(json.contains(r#""text":"\u009b""#) && json.ends_with("}\n"), "{json}");
    }
}
