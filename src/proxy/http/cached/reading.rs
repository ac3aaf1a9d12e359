//! A stored body on its way to a client.

use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::cache::store::{Filling, FillingReader, Object, ObjectBody, Part, StoredBody};
use crate::chunk::Chunk;
use crate::message::{Cause, Framing};
use crate::net::{FreeList, Piece, SharedBytes};

/// A stored body, or a part of it.
pub struct StoredReading {
    source: Source,
    framing: Framing,
    sent: u64,
    buffers: FreeList,
}

enum Source {
    /// It is all here.
    Whole { held: Held, at: u64, end: u64 },
    /// It is still coming.
    Coming(FillingReader),
}

/// What is all here.
enum Held {
    /// The body of an object.
    Body(Arc<Object>),
    /// What it was compressed to.
    Form(StoredBody),
}

impl Held {
    #[inline]
    fn part(&self, at: u64, end: u64) -> Option<(&Chunk, Range<usize>)> {
        match self {
            Held::Body(object) => object.whole()?.part(at, end),
            Held::Form(form) => form.part(at, end),
        }
    }
}

impl StoredReading {
    /// The bytes of a whole body from `first` up to `end`.
    #[must_use]
    pub fn part(object: &Arc<Object>, first: u64, end: u64, buffers: &FreeList) -> StoredReading {
        StoredReading::held(Held::Body(Arc::clone(object)), (first, end), buffers)
    }

    /// Nothing of a whole body: for an answer that only tells of it.
    #[must_use]
    pub fn nothing(object: &Arc<Object>, buffers: &FreeList) -> StoredReading {
        StoredReading { framing: Framing::None, ..StoredReading::part(object, 0, 0, buffers) }
    }

    /// All of what a body was compressed to.
    #[must_use]
    pub fn form(form: StoredBody, buffers: &FreeList) -> StoredReading {
        let length = form.length();
        StoredReading::held(Held::Form(form), (0, length), buffers)
    }

    fn held(held: Held, (at, end): (u64, u64), buffers: &FreeList) -> StoredReading {
        let framing = Framing::Length(end.saturating_sub(at));
        StoredReading { source: Source::Whole { held, at, end }, framing, sent: 0, buffers: buffers.clone() }
    }

    /// What comes, from its beginning. `None`: it is too late for that.
    #[must_use]
    pub fn coming(filling: &Arc<Filling>, buffers: &FreeList) -> Option<StoredReading> {
        let source = Source::Coming(filling.reader()?);
        let framing = filling.expected().map_or(Framing::Chunked, Framing::Length);
        Some(StoredReading { source, framing, sent: 0, buffers: buffers.clone() })
    }

    /// All of a body. `None`: it is too late to read it from the beginning.
    #[must_use]
    pub fn all(object: &Arc<Object>, buffers: &FreeList) -> Option<StoredReading> {
        match &object.body {
            ObjectBody::Whole(body) => Some(StoredReading::part(object, 0, body.length(), buffers)),
            ObjectBody::Filling(filling) => StoredReading::coming(filling, buffers),
        }
    }

    /// The object whose body it is a part of, if that is all here.
    #[must_use]
    pub fn object(&self) -> Option<&Arc<Object>> {
        match &self.source {
            Source::Whole { held: Held::Body(object), .. } => Some(object),
            Source::Whole { .. } | Source::Coming(_) => None,
        }
    }

    /// Bytes that went out.
    #[must_use]
    pub fn content(&self) -> u64 {
        self.sent
    }

    /// How its length is known.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// True when nothing is left.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.source {
            Source::Whole { at, end, .. } => at >= end,
            Source::Coming(reader) => reader.is_done(),
        }
    }

    /// Appends all of it to `out`, if it is here and at most `most` bytes. False: nothing was done.
    pub fn append_rest(&mut self, out: &mut Vec<u8>, most: usize) -> bool {
        let Source::Whole { held, at, end } = &mut self.source else { return false };
        if end.saturating_sub(*at) > most as u64 {
            return false;
        }
        while *at < *end
            && let Some((chunk, range)) = held.part(*at, *end)
        {
            (*at, self.sent) = (*at + range.len() as u64, self.sent + range.len() as u64);
            out.extend_from_slice(&chunk[range]);
        }
        true
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// Why it broke off.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Cause>> {
        let piece = match &mut self.source {
            Source::Whole { held, at, end } => held.part(*at, *end).map(|(chunk, range)| {
                *at += range.len() as u64;
                Piece::Shared(SharedBytes::new(chunk.clone(), range))
            }),
            Source::Coming(reader) => {
                let mut copied = None;
                let mut copy = |bytes: &[u8]| {
                    let buffer = self.buffers.filled(bytes);
                    let count = buffer.len();
                    copied = Some(buffer);
                    count
                };
                match ready!(reader.poll_part(cx, &mut copy))? {
                    Some(Part::Shared(chunk, range)) => Some(Piece::Shared(SharedBytes::new(chunk, range))),
                    Some(Part::Copied(_)) => copied.map(Piece::Buffer),
                    None => None,
                }
            }
        };
        self.sent += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(Ok(piece))
    }
}
