//! The end of a relay that says goodbye: last words to both sides, each between two units of what passes to it.
//!
//! Each direction goes on until the unit is over that has begun. Then its sink hears its last words, and nothing behind them; what
//! its source still says is read for the source's own last unit, which is the answer, and thrown away.
//!
//! Invariants of a direction:
//!
//! 1. Last words begin where a unit has ended, and are said once.
//! 2. Nothing is said behind them, nor behind the last unit or the end of the source: who was told goodbye by the other side
//!    needs no word of ours.

use std::io;
use std::task::{Context, Poll, ready};

use super::{BytesMoved, Direction, Follow, Relay, Waiting};
use crate::net::{FreeList, Stream};

/// Reads of what nobody wants, before other connections of the worker get their turn.
const READS: u32 = 16;

/// What one side is told last.
#[derive(Clone, Copy, Debug)]
pub struct LastWords {
    bytes: [u8; 8],
    length: u8,
}

impl LastWords {
    /// At most 8 bytes; more are left out.
    #[must_use]
    pub fn new(words: &[u8]) -> LastWords {
        let length = words.len().min(8);
        let mut bytes = [0; 8];
        bytes[..length].copy_from_slice(&words[..length]);
        LastWords { bytes, length: length as u8 }
    }
}

/// A relay that ends.
pub struct Parting<'a, F> {
    relay: Relay<'a, F>,
    up: Goodbye,
    down: Goodbye,
}

/// How far one direction has come.
struct Goodbye {
    words: LastWords,
    said: usize,
    stage: Stage,
    /// The sink knows that this was the end: from us, or from the source.
    told: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The unit that has begun passes on.
    Finishing,
    /// The last words go out.
    Saying,
    /// The source's last unit is waited for.
    Hearing,
    Over,
}

impl<'a, F: Follow> Relay<'a, F> {
    /// Ends it in this way.
    #[must_use]
    pub fn part(self, to_client: LastWords, to_backend: LastWords) -> Parting<'a, F> {
        let goodbye = |words| Goodbye { words, said: 0, stage: Stage::Finishing, told: false };
        Parting { relay: self, up: goodbye(to_backend), down: goodbye(to_client) }
    }
}

impl<F: Follow> Parting<'_, F> {
    /// Ready when both sides have been told and have answered, as far as they can be. Whoever waits for it has a deadline.
    pub fn poll(&mut self, cx: &mut Context<'_>, client: &mut Stream, backend: &mut Stream) -> Poll<()> {
        let Relay { up, down, buffers, moved, .. } = &mut self.relay;
        let BytesMoved { up: moved_up, down: moved_down } = moved;
        let up = self.up.poll(cx, up, client, backend, (buffers, moved_up));
        let down = self.down.poll(cx, down, backend, client, (buffers, moved_down));
        if up.is_ready() && down.is_ready() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Whether all is said that can be said: what is left is to hear the answers.
    #[must_use]
    pub fn is_said(&self) -> bool {
        [&self.up, &self.down].iter().all(|side| matches!(side.stage, Stage::Hearing | Stage::Over))
    }

    /// Whether the client knows that this was the end, and the backend.
    #[must_use]
    pub fn told(&self) -> (bool, bool) {
        (self.down.told, self.up.told)
    }
}

impl Goodbye {
    fn poll<F: Follow>(
        &mut self,
        cx: &mut Context<'_>,
        direction: &mut Direction<F>,
        source: &mut Stream,
        sink: &mut Stream,
        (buffers, moved): (&FreeList, &std::cell::Cell<u64>),
    ) -> Poll<()> {
        let mut reads = 0;
        while self.stage != Stage::Over {
            let step = match self.stage {
                Stage::Finishing => {
                    let before = moved.get();
                    let polled = self.finish(cx, direction, source, sink, (buffers, moved));
                    // One that does not end must not keep the worker to itself.
                    reads += u32::from(moved.get() != before);
                    polled
                }
                Stage::Saying => self.say(cx, sink),
                Stage::Hearing => {
                    reads += 1;
                    self.hear(cx, direction, source, buffers)
                }
                Stage::Over => Poll::Ready(Ok(Stage::Over)),
            };
            // Whoever can't be told any more, or says nothing any more, has ended.
            self.stage = ready!(step).unwrap_or(Stage::Over);
            if reads >= READS && self.stage != Stage::Over {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Passes on what is left of the unit that has begun.
    fn finish<F: Follow>(
        &mut self,
        cx: &mut Context<'_>,
        direction: &mut Direction<F>,
        source: &mut Stream,
        sink: &mut Stream,
        (buffers, moved): (&FreeList, &std::cell::Cell<u64>),
    ) -> Poll<io::Result<Stage>> {
        if direction.follow.is_lost() {
            return Poll::Ready(Ok(Stage::Over));
        }
        if direction.shut || direction.follow.is_over() {
            self.told = true;
            return Poll::Ready(Ok(Stage::Over));
        }
        let most = if sink.is_writing() {
            // It has them already.
            usize::MAX
        } else {
            let waiting = if let Waiting::Buffer(buffer) = &direction.waiting { buffer.data() } else { &[] };
            match direction.follow.gap(waiting) {
                Some(0) => return Poll::Ready(Ok(Stage::Saying)),
                Some(count) => count,
                None => usize::MAX,
            }
        };
        if !matches!(direction.waiting, Waiting::Nothing) {
            let count = ready!(direction.poll_pass(cx, sink, most))?;
            moved.set(moved.get() + count as u64);
        } else if direction.ended {
            return Poll::Ready(Ok(Stage::Over));
        } else {
            ready!(direction.poll_take(cx, source, sink, buffers))?;
        }
        Poll::Ready(Ok(Stage::Finishing))
    }

    fn say(&mut self, cx: &mut Context<'_>, sink: &mut Stream) -> Poll<io::Result<Stage>> {
        let words = &self.words.bytes[..usize::from(self.words.length)];
        while self.said < words.len() {
            match ready!(sink.poll_write(cx, &words[self.said..]))? {
                0 => return Poll::Ready(Ok(Stage::Over)),
                count => self.said += count,
            }
        }
        self.told = true;
        Poll::Ready(Ok(Stage::Hearing))
    }

    /// Reads what comes once, and throws it away.
    fn hear<F: Follow>(
        &mut self,
        cx: &mut Context<'_>,
        direction: &mut Direction<F>,
        source: &mut Stream,
        buffers: &FreeList,
    ) -> Poll<io::Result<Stage>> {
        if let Waiting::Buffer(buffer) = std::mem::take(&mut direction.waiting) {
            direction.follow.see(buffer.data());
        }
        if direction.ended || direction.follow.is_over() || direction.follow.is_lost() {
            return Poll::Ready(Ok(Stage::Over));
        }
        ready!(source.poll_readable(cx))?;
        let mut buffer = buffers.take();
        match ready!(buffer.poll_fill(cx, source))? {
            0 => direction.ended = true,
            _ => direction.waiting = Waiting::Buffer(buffer),
        }
        Poll::Ready(Ok(Stage::Hearing))
    }
}

#[cfg(test)]
mod tests;
