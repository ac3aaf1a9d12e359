//! A part of a body: bytes in a buffer, bytes that are shared, or bytes in a pipe.

use std::ops::Range;

use crate::chunk::Chunk;

use super::{Buffer, Pipe};

/// A part of a body, on its way from one connection to another.
pub enum Piece {
    /// Bytes.
    Buffer(Buffer),
    /// Bytes that others send as well.
    Shared(SharedBytes),
    /// Bytes that nobody can look at any more.
    Pipe(Pipe),
}

/// A part of bytes that never change.
#[derive(Clone, Debug)]
pub struct SharedBytes {
    bytes: Chunk,
    rest: Range<usize>,
}

impl SharedBytes {
    /// This part of them.
    #[must_use]
    pub fn new(bytes: Chunk, part: Range<usize>) -> SharedBytes {
        SharedBytes { bytes, rest: part }
    }

    /// What is left of it.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.bytes.get(self.rest.clone()).unwrap_or_default()
    }
}

impl Piece {
    /// Its bytes; none if they are in a pipe.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        match self {
            Piece::Buffer(buffer) => buffer.data(),
            Piece::Shared(shared) => shared.data(),
            Piece::Pipe(_) => &[],
        }
    }

    /// Takes the first `count` of its bytes away, of those that are in no pipe.
    pub fn consume(&mut self, count: usize) {
        match self {
            Piece::Buffer(buffer) => buffer.consume(count),
            Piece::Shared(shared) => shared.rest.start += count,
            Piece::Pipe(_) => {}
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Piece::Buffer(buffer) => buffer.len(),
            Piece::Shared(shared) => shared.rest.len(),
            Piece::Pipe(pipe) => pipe.held,
        }
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
