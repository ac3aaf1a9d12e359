//! What a case may wait for. Whatever else comes meanwhile is passed over.

use std::fmt;

use super::frames::{Frame, code, code_name, flag, kind, kind_name, setting};
use super::peer::{Came, Peer};

/// Why a case has not passed.
#[derive(Debug)]
pub enum Miss {
    /// It can't be tried with this server.
    Skipped(&'static str),
    Instead {
        expected: String,
    },
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Miss::Skipped(why) => write!(f, "was skipped: {why}"),
            Miss::Instead { expected } => write!(f, "expected: {expected}"),
        }
    }
}

/// How a case went.
pub type Outcome = Result<(), Miss>;

impl Peer {
    /// The preface, and the settings of both sides: the server's are taken, ours acknowledged.
    pub fn shake(&mut self) -> Outcome {
        self.preface();
        let (mut is_set, mut is_acknowledged) = (false, false);
        while !(is_set && is_acknowledged) {
            match self.next() {
                Came::Frame(frame) if frame.kind != kind::SETTINGS => {}
                Came::Frame(frame) if frame.has(flag::ACK) => is_acknowledged = true,
                Came::Frame(frame) => {
                    is_set = true;
                    self.settings.extend(frame.settings());
                    self.frame(kind::SETTINGS, flag::ACK, 0, &[]);
                }
                _ => return instead("SETTINGS of the server, and its ACK for ours"),
            }
        }
        self.log = vec!["(settings)".to_owned()];
        Ok(())
    }

    /// Waits for what `is_it` accepts.
    fn wait(&mut self, expected: String, is_it: impl Fn(&Came) -> bool) -> Outcome {
        while !self.is_over {
            if is_it(&self.next()) {
                return Ok(());
            }
        }
        instead(expected)
    }

    /// The next frame of this type.
    fn first(&mut self, wanted: u8) -> Option<Frame> {
        while !self.is_over {
            if let Came::Frame(frame) = self.next()
                && frame.kind == wanted
            {
                return Some(frame);
            }
        }
        None
    }

    /// The next frame of this type is one that `is_it` accepts.
    fn first_is(&mut self, wanted: u8, expected: &str, is_it: impl Fn(&Frame) -> bool) -> Outcome {
        match self.first(wanted) {
            Some(frame) if is_it(&frame) => Ok(()),
            _ => instead(format!("as the next {}: {expected}", kind_name(wanted))),
        }
    }

    /// GOAWAY with one of these codes, or the end.
    pub fn connection_error(&mut self, codes: &[u32]) -> Outcome {
        self.wait(format!("GOAWAY with {}, or the end", names(codes)), |came| match came {
            Came::Frame(frame) => frame.kind == kind::GOAWAY && has_code(frame, codes),
            came => matches!(came, Came::End),
        })
    }

    /// RST_STREAM or GOAWAY with one of these codes, or the end.
    pub fn stream_error(&mut self, codes: &[u32]) -> Outcome {
        self.wait(format!("RST_STREAM or GOAWAY with {}, or the end", names(codes)), |came| match came {
            Came::Frame(frame) => has_code(frame, codes),
            came => matches!(came, Came::End),
        })
    }

    /// The end of the connection.
    pub fn end(&mut self) -> Outcome {
        self.wait("the end of the connection".to_owned(), |came| matches!(came, Came::End))
    }

    /// The end of a stream without an error.
    pub fn stream_end(&mut self) -> Outcome {
        self.wait("the end of the stream".to_owned(), |came| match came {
            Came::Frame(frame) if frame.kind == kind::RST_STREAM => has_code(frame, &[code::NO_ERROR]),
            Came::Frame(frame) => frame.ends_stream(),
            _ => false,
        })
    }

    /// An answer to this stream.
    pub fn answer(&mut self, stream: u32) -> Outcome {
        self.first_is(kind::HEADERS, &format!("that of stream {stream}"), |frame| frame.stream == stream)
    }

    /// That our SETTINGS are acknowledged.
    pub fn settings_ack(&mut self) -> Outcome {
        self.first_is(kind::SETTINGS, "an ACK", |frame| frame.has(flag::ACK))
    }

    /// The answer to a PING with these octets.
    pub fn ping_ack(&mut self, words: [u8; 8]) -> Outcome {
        self.first_is(kind::PING, &format!("an ACK with {words:?}"), |frame| is_ping_ack(frame, words))
    }

    /// The same, or the end.
    pub fn ping_ack_or_end(&mut self, words: [u8; 8]) -> Outcome {
        self.wait(format!("PING with ACK and {words:?}, or the end"), |came| match came {
            Came::Frame(frame) => is_ping_ack(frame, words),
            came => matches!(came, Came::End),
        })
    }

    /// Any frame of this type.
    pub fn some(&mut self, wanted: u8) -> Outcome {
        self.first_is(wanted, "any", |_| true)
    }

    /// The next DATA has one octet.
    pub fn one_octet(&mut self) -> Outcome {
        self.first_is(kind::DATA, "one with 1 octet", |frame| frame.payload.len() == 1)
    }

    /// The next frame of this type has this code.
    pub fn code(&mut self, wanted: u8, code: u32) -> Outcome {
        self.first_is(wanted, &format!("one with {}", code_name(code)), |frame| has_code(frame, &[code]))
    }

    /// The server's first frame is its SETTINGS.
    pub fn server_preface(&mut self) -> Outcome {
        match self.next() {
            Came::Frame(frame) if frame.kind == kind::SETTINGS && !frame.has(flag::ACK) => Ok(()),
            _ => instead("SETTINGS without ACK as the first frame"),
        }
    }

    /// The answer to a GET of `/`, which is asked for on a connection of its own, has so many octets at least.
    pub fn needs_body(&self, least: usize) -> Outcome {
        let mut peer =
            Peer::connect(&self.door).map_err(|error| Miss::Instead { expected: error.to_string() })?;
        peer.shake()?;
        peer.get(1);
        let mut octets = 0;
        while let Came::Frame(frame) = peer.next() {
            if frame.kind == kind::DATA {
                octets += frame.payload.len();
            }
            if frame.ends_stream() {
                return if octets < least { Err(Miss::Skipped("too short a body")) } else { Ok(()) };
            }
        }
        instead("a whole answer")
    }

    /// A header block with one long line.
    pub fn long_line(&mut self) -> Vec<u8> {
        self.block(&[("x-dummy0", &"x".repeat(4000))])
    }

    /// A length of frames that the server does not take.
    pub fn too_long(&self) -> Result<usize, Miss> {
        let longer = self.longest() + 1;
        if longer < 1 << 24 {
            Ok(longer)
        } else {
            Err(Miss::Skipped("the server takes frames of every length"))
        }
    }

    /// The server's limit of streams at once.
    pub fn most_streams(&self) -> Result<u32, Miss> {
        let limit = self.settings.get(&setting::MAX_CONCURRENT_STREAMS);
        limit.copied().ok_or(Miss::Skipped("the server has no limit of streams at once"))
    }
}

fn instead(expected: impl Into<String>) -> Outcome {
    Err(Miss::Instead { expected: expected.into() })
}

fn has_code(frame: &Frame, codes: &[u32]) -> bool {
    frame.code().is_some_and(|code| codes.contains(&code))
}

fn is_ping_ack(frame: &Frame, words: [u8; 8]) -> bool {
    frame.kind == kind::PING && frame.has(flag::ACK) && frame.payload == words
}

fn names(codes: &[u32]) -> String {
    codes.iter().map(|code| code_name(*code)).collect::<Vec<_>>().join(" or ")
}
