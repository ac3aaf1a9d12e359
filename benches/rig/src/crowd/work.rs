//! What a crowd asks for, and when an answer is whole.

use anyhow::{Result, bail, ensure};

use crate::message::{Body, Head};

/// Bytes of a download and of an upload.
pub(super) const LARGE: usize = 1024 * 1024;
/// Bytes of a small upload, and of a message over TCP.
const SMALL: usize = 64;
/// Messages of a TCP session.
pub(super) const TURNS: u32 = 3;
/// What WebSocket messages are masked with (RFC 6455 §5.3). It hides nothing here.
const MASK: [u8; 4] = [7, 77, 177, 217];

/// What is begun at random moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Get,
    Post,
    Down,
    Up,
    Tls,
    Handshake,
    Session,
}

impl Kind {
    pub(super) const ALL: [Kind; 7] =
        [Kind::Get, Kind::Post, Kind::Down, Kind::Up, Kind::Tls, Kind::Handshake, Kind::Session];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Get => "get",
            Kind::Post => "post",
            Kind::Down => "down",
            Kind::Up => "up",
            Kind::Tls => "tls",
            Kind::Handshake => "handshake",
            Kind::Session => "session",
        }
    }

    /// Whether it is a small request on a connection that is there already.
    pub(super) fn is_small(self) -> bool {
        matches!(self, Kind::Get | Kind::Post | Kind::Tls)
    }

    /// What is sent first: bytes, and how many of no meaning behind them.
    pub(super) fn request(self, host: &str) -> (Vec<u8>, usize) {
        let head = |line: &str, more: &str| {
            format!("{line} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: rig\r\nAccept: */*\r\n{more}\r\n")
                .into_bytes()
        };
        match self {
            Kind::Get | Kind::Tls => (head("GET /", ""), 0),
            Kind::Handshake => (head("GET /", "Connection: close\r\n"), 0),
            Kind::Post => (head("POST /echo", &format!("Content-Length: {SMALL}\r\n")), SMALL),
            Kind::Down => (head(&format!("GET /bytes/{LARGE}"), ""), 0),
            Kind::Up => (head("POST /count", &format!("Content-Length: {LARGE}\r\n")), LARGE),
            Kind::Session => (Vec::new(), SMALL),
        }
    }

    /// What has to come back for it.
    pub(super) fn awaited(self) -> Awaited {
        let content = match self {
            Kind::Post => Some(SMALL as u64),
            Kind::Down => Some(LARGE as u64),
            Kind::Up => Some(LARGE.to_string().len() as u64),
            Kind::Session => return Awaited::Bytes(SMALL),
            Kind::Get | Kind::Tls | Kind::Handshake => None,
        };
        Awaited::Head { come: Vec::new(), content, status: b"200" }
    }
}

/// The request for a WebSocket, and what has to come back.
pub(super) fn opening(host: &str) -> (Vec<u8>, Awaited) {
    let request = format!(
        "GET /socket HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    (request.into_bytes(), Awaited::Head { come: Vec::new(), content: None, status: b"101" })
}

/// A message over a WebSocket, as the client sends it and as it comes back.
pub(super) fn message(number: u64) -> (Vec<u8>, Awaited) {
    let payload = format!("message {number:016}").into_bytes();
    let length = payload.len() as u8;
    let mut sent = vec![0x81, 0x80 | length];
    sent.extend(MASK);
    sent.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    let mut wanted = vec![0x81, length];
    wanted.extend(payload);
    (sent, Awaited::Exactly { come: 0, wanted })
}

/// What is still missing.
#[derive(Debug)]
pub(super) enum Awaited {
    Nothing,
    /// The end of a head, of which this much has come; the bytes of its body, where somebody knows, and its status.
    Head {
        come: Vec<u8>,
        content: Option<u64>,
        status: &'static [u8; 3],
    },
    /// The end of a body, and whether the connection ends with it.
    Body {
        body: Body,
        content: Option<u64>,
        close: bool,
    },
    /// So many bytes.
    Bytes(usize),
    /// These.
    Exactly {
        come: usize,
        wanted: Vec<u8>,
    },
    /// The end of the connection.
    End,
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Missing,
    /// It is whole. `close`: the peer says that the connection ends here.
    Whole {
        close: bool,
    },
}

impl Awaited {
    /// Takes what came.
    ///
    /// # Errors
    /// It is not what was to come.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<Progress> {
        loop {
            match self {
                Awaited::Nothing | Awaited::End => bail!("{} bytes that nobody asked for", bytes.len()),
                Awaited::Bytes(left) => {
                    ensure!(bytes.len() <= *left, "{} bytes too many", bytes.len() - *left);
                    *left -= bytes.len();
                    return Ok(if *left == 0 { Progress::Whole { close: false } } else { Progress::Missing });
                }
                Awaited::Exactly { come, wanted } => {
                    let rest = &wanted[*come..];
                    if !rest.starts_with(bytes) {
                        bail!(
                            "another message than was sent: {}",
                            bytes[..bytes.len().min(40)].escape_ascii()
                        );
                    }
                    *come += bytes.len();
                    let whole = *come == wanted.len();
                    return Ok(if whole { Progress::Whole { close: false } } else { Progress::Missing });
                }
                Awaited::Head { come, content, status } => {
                    let before = come.len();
                    come.extend_from_slice(bytes);
                    let Some(head) = Head::read(come) else { return Ok(Progress::Missing) };
                    let line = come.split(|&byte| byte == b'\r').next().unwrap_or_default();
                    ensure!(line.get(9..12) == Some(&status[..]), "answered {}", line.escape_ascii());
                    ensure!(
                        *status == b"101" || head.chunked || head.length.is_some(),
                        "an answer without a length"
                    );
                    bytes = &bytes[head.len - before..];
                    let (close, content) = (head.close, *content);
                    match Body::after(&head) {
                        Some(body) if *status != b"101" => {
                            if let (Some(wanted), Some(length)) = (content, head.length) {
                                ensure!(wanted == length, "{length} bytes of content, not {wanted}");
                            }
                            *self = Awaited::Body { body, content, close };
                        }
                        _ => {
                            ensure!(bytes.is_empty(), "more than the answer");
                            ensure!(content.is_none_or(|content| content == 0), "an answer without content");
                            return Ok(Progress::Whole { close: close && *status != b"101" });
                        }
                    }
                }
                Awaited::Body { body, content, close } => {
                    let (taken, whole) = body.skip(bytes);
                    ensure!(taken == bytes.len(), "more than the answer");
                    if !whole {
                        return Ok(Progress::Missing);
                    }
                    if let (Some(wanted), Body::Chunks(chunks)) = (&content, &body) {
                        ensure!(
                            chunks.content == *wanted,
                            "{} bytes of content, not {wanted}",
                            chunks.content
                        );
                    }
                    return Ok(Progress::Whole { close: *close });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_back_unmasked_and_no_other_one() {
        let (sent, mut awaited) = message(7);
        let payload: Vec<u8> =
            sent[6..].iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        assert_eq!(payload, b"message 0000000000000007");
        let back = [&[0x81, payload.len() as u8][..], &payload].concat();
        assert_eq!(awaited.take(&back[..5]).unwrap(), Progress::Missing);
        assert_eq!(awaited.take(&back[5..]).unwrap(), Progress::Whole { close: false });
        assert!(message(8).1.take(&back).is_err());
        // A Close with code 1001.
        let (_, mut awaited) = message(9);
        assert!(awaited.take(&[0x88, 2, 3, 0xe9]).is_err());
    }

    #[test]
    fn an_answer_is_whole_at_its_end_and_says_whether_the_connection_is() {
        let take = |kind: Kind, bytes: &[u8]| kind.awaited().take(bytes);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
        assert_eq!(take(Kind::Get, answer).unwrap(), Progress::Whole { close: true });
        assert_eq!(take(Kind::Get, &answer[..answer.len() - 1]).unwrap(), Progress::Missing);
        assert!(take(Kind::Down, answer).is_err(), "a download of 2 bytes");
        assert!(take(Kind::Get, b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n").is_err());
        assert!(take(Kind::Get, &[answer, &b"HTTP/1.1"[..]].concat()).is_err());
        let (_, mut awaited) = opening("a");
        let switched = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\r\n";
        assert_eq!(awaited.take(switched).unwrap(), Progress::Whole { close: false });
    }
}
