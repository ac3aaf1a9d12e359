//! The paths that answer something special, so that tests can ask through a proxy for what they need. A pure
//! function from the request to its answer; `turn` does the rest. The list is in the crate's documentation.

use std::time::Duration;

use super::answer::{Answer, Content, Shape};
use super::request::Request;
use crate::behaviour::Pace;

/// What a path asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The answer every other path gets.
    Greeting,
    /// This answer.
    Answer(Box<Answer>),
    /// The request's body back, while it arrives.
    Echo,
    /// How many bytes the request's body had.
    Count,
    /// A login, or the name of who has logged in on the connection.
    Login,
    /// Another protocol from here on.
    Upgrade {
        /// WebSocket frames are answered with frames; otherwise bytes with bytes.
        frames: bool,
    },
}

/// What this request asks for.
pub(crate) fn wish(request: &Request, id: &str) -> Wish {
    let raw = request.path == "/upgrade";
    let websocket = request.upgrade.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("websocket"));
    if request.upgrade.is_some() && (raw || websocket) {
        return Wish::Upgrade { frames: !raw };
    }
    let (first, rest) = request
        .path
        .trim_start_matches('/')
        .split_once('/')
        .unwrap_or((&request.path[1.min(request.path.len())..], ""));
    let greeting = || format!("Hello from {id}");
    let number = || rest.parse::<u64>().ok();
    let answer = match first {
        "echo" => return Wish::Echo,
        "count" => return Wish::Count,
        "login" => return Wish::Login,
        "head" => Some(Answer::text(200, request.head.clone())),
        "bytes" => number().map(|length| sized(request, length, Shape::Length)),
        "chunked" => number().map(|length| sized(request, length, chunks(request))),
        "close" => number().map(|length| sized(request, length, Shape::UntilClose)),
        "status" => number()
            .and_then(|status| u16::try_from(status).ok())
            .filter(|status| (200..=999).contains(status))
            .map(|status| Answer::text(status, greeting())),
        "delay" => number()
            .map(|millis| Answer { delay: Duration::from_millis(millis), ..Answer::text(200, greeting()) }),
        "early-hints" if request.old => Some(Answer::text(200, greeting())),
        "early-hints" => Some(Answer {
            before: b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n".to_vec(),
            ..Answer::text(200, greeting())
        }),
        "upgrade" => Some(Answer {
            headers: "Upgrade: websocket\r\nConnection: upgrade\r\n".to_owned(),
            ..Answer::text(426, "There was no Upgrade")
        }),
        _ => return Wish::Greeting,
    };
    Wish::Answer(Box::new(
        answer.unwrap_or_else(|| {
            Answer::text(400, format!("{} needs a number that makes sense", request.path))
        }),
    ))
}

/// So many bytes, at the pace of `?piece=BYTES&every=MILLISECONDS` if there is one.
fn sized(request: &Request, length: u64, shape: Shape) -> Answer {
    let number = |key| request.asked(key).and_then(|value| value.parse::<u64>().ok());
    let pace = match (number("piece"), number("every")) {
        (None, None) => None,
        (bytes, every) => {
            Some(Pace { bytes: bytes.unwrap_or(1), every: Duration::from_millis(every.unwrap_or(0)) })
        }
    };
    Answer { content: Content::Pattern(length), shape, pace, ..Answer::text(200, "") }
}

/// Chunks; HTTP/1.0 knows none.
fn chunks(request: &Request) -> Shape {
    if request.old {
        return Shape::UntilClose;
    }
    Shape::Chunked { trailer: request.asked("trailer").is_some_and(|value| value != "0") }
}
