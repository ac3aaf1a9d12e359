//! The stream of the process: begun, read, and begun again when it has ended.

use std::time::Duration;

use anyhow::bail;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{Method, StatusCode};
use tokio::sync::mpsc::Sender;
use tokio::time::{sleep, timeout};

use super::frames::ToldRows;
use crate::admin::ProblemDocument;
use crate::admin::event_routes::EVENT_STREAM;
use crate::cli::args::running::ProcessOptions;
use crate::cli::running::ask::{AdminQuestion, begin};
use crate::cli::running::find;
use crate::cli::running::stream_pieces::StreamPieces;

/// For the head of an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Each second brings a frame.
const SILENCE: Duration = Duration::from_secs(5);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(500);

/// What comes of the stream.
#[derive(Debug)]
pub(super) enum FeedNews {
    Frame(ToldRows),
    /// It has ended, or could not be begun.
    Lost(String),
}

/// Finds the process and begins its stream.
///
/// # Errors
/// There is none, or it refuses.
pub(super) async fn connect(process: &ProcessOptions) -> anyhow::Result<Incoming> {
    let socket = find::socket(process).await?;
    let question = AdminQuestion { method: Method::GET, path: "/api/v1/stream".to_owned(), body: Vec::new() };
    let answer = match timeout(PATIENCE, begin(&socket, question, EVENT_STREAM)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => bail!("{}: no answer: {error:#}", socket.display()),
        Err(_) => bail!("{}: no answer within {} seconds", socket.display(), PATIENCE.as_secs()),
    };
    if answer.status() == StatusCode::OK {
        return Ok(answer.into_body());
    }
    let status = answer.status();
    let body = timeout(PATIENCE, answer.into_body().collect()).await??.to_bytes();
    match serde_json::from_slice::<ProblemDocument>(&body) {
        Ok(problem) => bail!("{}", problem.detail),
        Err(_) => bail!("an answer that this version does not understand ({status})"),
    }
}

/// Reads one stream until it ends. False: nobody wants it any more.
pub(super) async fn read(mut body: Incoming, into: &Sender<FeedNews>) -> anyhow::Result<bool> {
    let mut pieces = StreamPieces::default();
    while let Some(frame) = timeout(SILENCE, body.frame()).await? {
        for message in pieces.add(&frame?.into_data().unwrap_or_default()) {
            if let Some(told) = ToldRows::of(&message.event, &message.data)
                && into.send(FeedNews::Frame(told)).await.is_err()
            {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Reads this stream, and those that take its place, until nobody wants them.
pub(super) async fn follow(process: ProcessOptions, first: Incoming, into: Sender<FeedNews>) {
    let mut body = Ok(first);
    loop {
        let why = match body {
            Ok(body) => match read(body, &into).await {
                Ok(true) => "it has ended its stream".to_owned(),
                Ok(false) => return,
                Err(error) => format!("{error:#}"),
            },
            Err(error) => format!("{error:#}"),
        };
        if into.send(FeedNews::Lost(why)).await.is_err() {
            return;
        }
        sleep(PAUSE).await;
        body = connect(&process).await;
    }
}
