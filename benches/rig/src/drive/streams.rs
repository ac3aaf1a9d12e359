//! HTTP/2 (RFC 9113) on one connection: as many requests in one piece as are to be under way, and then their answers. It
//! understands no more of it than a measurement needs, and trusts its peer with the rest.

use anyhow::{Result, bail, ensure};

use super::request::Blocks;
use super::transport::Transport;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes that the server may send of one answer, and of all, before it hears that they were taken.
const WINDOW: u32 = 16 << 20;
/// What a connection's window is before anybody says anything.
const FIRST_WINDOW: u32 = 65_535;
/// Longest payload: we allow no more.
const MOST_PAYLOAD: usize = 16 * 1024;
/// Bytes in front of a payload.
const FRAME_HEAD: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

/// Of SETTINGS and PING.
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
/// Of HEADERS: five bytes that nobody heeds any more come first.
const PRIORITY: u8 = 0x20;

const ENABLE_PUSH: u16 = 2;
const INITIAL_WINDOW_SIZE: u16 = 4;

/// A frame that has come whole.
struct Frame<'a> {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &'a [u8],
}

impl Frame<'_> {
    /// Reads the frame that `bytes` begins with; `None` while its end is missing.
    fn read(bytes: &[u8]) -> Result<Option<Frame<'_>>> {
        let Some((&[a, b, c, kind, flags, stream @ ..], rest)) = bytes.split_first_chunk::<FRAME_HEAD>()
        else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        ensure!(length <= MOST_PAYLOAD, "a frame of {length} bytes");
        let stream = u32::from_be_bytes(stream) & (u32::MAX >> 1);
        Ok(rest.get(..length).map(|payload| Frame { kind, flags, stream, payload }))
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The payload without what it is filled up with.
    fn content(&self) -> Result<&[u8]> {
        if !self.has(PADDED) {
            return Ok(self.payload);
        }
        let content = self.payload.split_first().and_then(|(&padding, rest)| {
            let end = rest.len().checked_sub(usize::from(padding))?;
            rest.get(..end)
        });
        content.map_or_else(|| bail!("more padding than payload"), Ok)
    }

    /// The code at the end of `bytes`.
    fn code(bytes: Option<&[u8; 4]>) -> u32 {
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }
}

fn write(output: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    output.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    output.extend_from_slice(&[kind, flags]);
    output.extend_from_slice(&stream.to_be_bytes());
    output.extend_from_slice(payload);
}

/// One answer, as far as it has come.
#[derive(Clone, Copy, Default)]
struct Answer {
    begun: bool,
    ended: bool,
    content: u64,
    /// Bytes that the server has not heard of yet.
    taken: u32,
}

/// What a connection of HTTP/2 has under way.
pub(super) struct Streams {
    /// Number of the stream that has the first of the answers.
    first: u32,
    answers: Vec<Answer>,
    /// Those of them that have not ended.
    open: usize,
    /// Bytes of all answers that the server has not heard of yet.
    taken: u32,
    /// What is to be said before anything is waited for.
    output: Vec<u8>,
    /// Bytes that are left in the connection's buffer.
    filled: usize,
}

impl Streams {
    /// Nothing, and what a client says first.
    pub(super) fn begin() -> Streams {
        let mut output = PREFACE.to_vec();
        let mut settings = Vec::new();
        for (name, value) in [(ENABLE_PUSH, 0), (INITIAL_WINDOW_SIZE, WINDOW)] {
            settings.extend_from_slice(&name.to_be_bytes());
            settings.extend_from_slice(&value.to_be_bytes());
        }
        write(&mut output, SETTINGS, 0, 0, &settings);
        write(&mut output, WINDOW_UPDATE, 0, 0, &(WINDOW - FIRST_WINDOW).to_be_bytes());
        Streams { first: 1, answers: Vec::new(), open: 0, taken: 0, output, filled: 0 }
    }

    /// Sends `count` requests in one piece. Those before have been answered.
    pub(super) fn send(&mut self, transport: &mut Transport, blocks: &Blocks, count: u64) -> Result<()> {
        self.ask(blocks, usize::try_from(count)?);
        self.flush(transport)
    }

    fn ask(&mut self, blocks: &Blocks, count: usize) {
        self.first += 2 * self.answers.len() as u32;
        self.answers.clear();
        self.answers.resize(count, Answer::default());
        self.open = count;
        for key in 0..count as u32 {
            let stream = self.first + 2 * key;
            let block = if stream == 1 { &blocks.first } else { &blocks.next };
            write(&mut self.output, HEADERS, END_STREAM | END_HEADERS, stream, block);
        }
    }

    fn flush(&mut self, transport: &mut Transport) -> Result<()> {
        if !self.output.is_empty() {
            transport.send(&self.output)?;
            self.output.clear();
        }
        Ok(())
    }

    /// Reads to the end of the last answer, and calls `ended` at the end of each. The buffer is the same each time.
    pub(super) fn receive(
        &mut self,
        transport: &mut Transport,
        buffer: &mut [u8],
        content: u64,
        mut ended: impl FnMut(),
    ) -> Result<()> {
        while self.open > 0 {
            self.flush(transport)?;
            let count = transport.read(&mut buffer[self.filled..])?;
            ensure!(count > 0, "closed before {} answers", self.open);
            self.filled += count;
            let taken = self.take_all(&buffer[..self.filled], content, &mut ended)?;
            buffer.copy_within(taken..self.filled, 0);
            self.filled -= taken;
        }
        Ok(())
    }

    /// Takes the frames that have come whole. Returns how many bytes they are.
    fn take_all(&mut self, bytes: &[u8], content: u64, ended: &mut impl FnMut()) -> Result<usize> {
        let mut at = 0;
        while let Some(frame) = Frame::read(&bytes[at..])? {
            at += FRAME_HEAD + frame.payload.len();
            if self.take(&frame, content)? {
                ended();
            }
        }
        Ok(at)
    }

    /// Tells whether an answer ends with this frame.
    fn take(&mut self, frame: &Frame<'_>, content: u64) -> Result<bool> {
        let Frame { kind, flags, stream, payload } = *frame;
        match kind {
            HEADERS => self.head(frame)?,
            DATA => self.data(frame)?,
            SETTINGS if !frame.has(ACK) => write(&mut self.output, SETTINGS, ACK, 0, &[]),
            PING if !frame.has(ACK) => write(&mut self.output, PING, ACK, 0, payload),
            RST_STREAM => bail!("stream {stream} was reset with code {}", Frame::code(payload.first_chunk())),
            GOAWAY => bail!(
                "the connection is ended with code {}: {}",
                Frame::code(payload.get(4..).and_then(<[u8]>::first_chunk)),
                payload.get(8..).unwrap_or_default().escape_ascii()
            ),
            PUSH_PROMISE | CONTINUATION => bail!("a frame of type {kind}"),
            _ => {}
        }
        if !matches!(kind, HEADERS | DATA) || flags & END_STREAM == 0 {
            return Ok(false);
        }
        let answer = self.answer(stream)?;
        answer.ended = true;
        ensure!(answer.content == content, "{} bytes of content, not {content}", answer.content);
        self.open -= 1;
        Ok(true)
    }

    fn answer(&mut self, stream: u32) -> Result<&mut Answer> {
        let key =
            stream.checked_sub(self.first).filter(|distance| distance % 2 == 0).map(|distance| distance / 2);
        let answer = key.and_then(|key| self.answers.get_mut(key as usize)).filter(|answer| !answer.ended);
        answer.map_or_else(|| bail!("nothing was to come on stream {stream}"), Ok)
    }

    /// A head, or the trailers, which may say what they like.
    fn head(&mut self, frame: &Frame<'_>) -> Result<()> {
        ensure!(frame.has(END_HEADERS), "a head in several frames");
        let answer = self.answer(frame.stream)?;
        if std::mem::replace(&mut answer.begun, true) {
            return Ok(());
        }
        let block = frame.content()?;
        let block = block.get(if frame.has(PRIORITY) { 5 } else { 0 }..).unwrap_or_default();
        // `:status: 200`, perhaps behind the word that no table is used.
        let field = block.strip_prefix(&[0x20]).unwrap_or(block);
        ensure!(field.starts_with(&[0x88]), "answered {}", block.escape_ascii());
        Ok(())
    }

    fn data(&mut self, frame: &Frame<'_>) -> Result<()> {
        let ends = frame.has(END_STREAM);
        let answer = self.answer(frame.stream)?;
        ensure!(answer.begun, "content before a head");
        answer.content += frame.content()?.len() as u64;
        let length = frame.payload.len() as u32;
        answer.taken += length;
        let of_stream = if ends { 0 } else { renewed(&mut answer.taken) };
        self.taken += length;
        for (stream, count) in [(frame.stream, of_stream), (0, renewed(&mut self.taken))] {
            if count > 0 {
                write(&mut self.output, WINDOW_UPDATE, 0, stream, &count.to_be_bytes());
            }
        }
        Ok(())
    }
}

/// What the server is to hear of: nothing, until it is half of a window.
fn renewed(taken: &mut u32) -> u32 {
    if *taken < WINDOW / 2 { 0 } else { std::mem::take(taken) }
}

#[cfg(test)]
mod tests;
