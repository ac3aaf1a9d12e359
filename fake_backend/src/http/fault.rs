//! Answers that are wrong, byte by byte. Called by `turn` once the request is read; what a proxy must do about
//! each is in RFC 9112 §6.3 and §11.

use std::io;
use std::time::Duration;

use super::turn::{Next, Turn};
use crate::behaviour::{Ending, Fault};

/// Where an endless head ends after all, so that a peer without a limit does not keep a test for ever.
const ENDLESS: usize = 64 * 1024 * 1024;
/// How many unasked 1xx come in a flood.
const FLOOD: usize = 10_000;
/// The pause between two bytes of a slow head.
const SLOW: Duration = Duration::from_millis(10);

/// Answers in this wrong way.
pub(crate) async fn misbehave(turn: &mut Turn<'_>, fault: &Fault) -> io::Result<Next> {
    let greeting = turn.greeting();
    let length = greeting.len();
    let id = turn.state.id.clone();
    let head = |framing: &str| format!("HTTP/1.1 200 OK\r\nX-Backend: {id}\r\n{framing}\r\n");
    let right = head(&format!("Content-Length: {length}\r\n")) + &greeting;
    let (bytes, ending) = match fault {
        // The first four never get here when the protocol can tell them earlier: before the request, or by
        // never answering. Without an answer they all look alike.
        Fault::CloseOnAccept | Fault::Hang | Fault::HangUnread | Fault::CloseUnanswered => {
            (String::new(), Ending::Close)
        }
        Fault::ResetOnAccept | Fault::ResetUnanswered => (String::new(), Ending::Reset),
        Fault::CloseMidHead => (format!("HTTP/1.1 200 OK\r\nX-Backend: {id}\r\nContent-Le"), Ending::Close),
        Fault::ResetMidHead => (format!("HTTP/1.1 200 OK\r\nX-Backend: {id}\r\nContent-Le"), Ending::Reset),
        Fault::LengthTooLong => {
            (head(&format!("Content-Length: {}\r\n", length + 10)) + &greeting, Ending::Close)
        }
        Fault::LengthTooShort => {
            let short = length.saturating_sub(3);
            (head(&format!("Content-Length: {short}\r\n")) + &greeting, Ending::KeepOpen)
        }
        Fault::LengthAndChunked => (
            head(&format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"))
                + &format!("{length:x}\r\n{greeting}\r\n0\r\n\r\n"),
            Ending::KeepOpen,
        ),
        Fault::TwoLengths => (
            head(&format!("Content-Length: {length}\r\nContent-Length: {}\r\n", length + 1)) + &greeting,
            Ending::KeepOpen,
        ),
        Fault::BadChunk => (
            head("Transfer-Encoding: chunked\r\n") + &format!("zz\r\n{greeting}\r\n0\r\n\r\n"),
            Ending::KeepOpen,
        ),
        Fault::BareLineFeeds => (right.replace("\r\n", "\n"), Ending::KeepOpen),
        Fault::Garbage => ("\u{16}\u{3}\u{1} this is no HTTP\r\n\r\n\r\n".to_owned(), Ending::KeepOpen),
        Fault::ExtraBytes => {
            (right.clone() + "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nunasked", Ending::KeepOpen)
        }
        Fault::UnsolicitedUpgrade => (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
                .to_owned(),
            Ending::KeepOpen,
        ),
        Fault::NulInHeader => {
            (head(&format!("X-Bad: a\0b\r\nContent-Length: {length}\r\n")) + &greeting, Ending::KeepOpen)
        }
        Fault::Raw { bytes, ending } => {
            let pace = turn.behaviour.pace;
            let most = pace.map_or(usize::MAX, |pace| usize::try_from(pace.bytes).unwrap_or(usize::MAX));
            for piece in bytes.chunks(most.max(1)) {
                turn.wire.send(piece).await?;
                if let Some(pace) = pace {
                    tokio::time::sleep(pace.every).await;
                }
            }
            return Ok(if *ending == Ending::Serve { Next::Again } else { Next::End(*ending) });
        }
        Fault::SlowHead => return send_slowly(turn, right.as_bytes()).await,
        Fault::EndlessHead => return send_for_ever(turn, &id).await,
        Fault::InformationalFlood => return flood(turn, right.as_bytes()).await,
        // These break in `turn`, while the answer is sent.
        Fault::CloseMidBody | Fault::ResetMidBody => (right, Ending::Close),
    };
    turn.wire.send(bytes.as_bytes()).await?;
    Ok(Next::End(ending))
}

async fn send_slowly(turn: &mut Turn<'_>, bytes: &[u8]) -> io::Result<Next> {
    for byte in bytes {
        turn.wire.send(std::slice::from_ref(byte)).await?;
        tokio::time::sleep(SLOW).await;
    }
    Ok(Next::Again)
}

async fn send_for_ever(turn: &mut Turn<'_>, id: &str) -> io::Result<Next> {
    turn.wire.send(format!("HTTP/1.1 200 OK\r\nX-Backend: {id}\r\n").as_bytes()).await?;
    let line = format!("X-Filler: {}\r\n", "a".repeat(1_000)).into_bytes();
    let mut sent = 0;
    while sent < ENDLESS {
        turn.wire.send(&line).await?;
        sent += line.len();
    }
    Ok(Next::End(Ending::Close))
}

async fn flood(turn: &mut Turn<'_>, answer: &[u8]) -> io::Result<Next> {
    for _ in 0..FLOOD {
        turn.wire.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n").await?;
    }
    turn.wire.send(answer).await?;
    Ok(Next::Again)
}
