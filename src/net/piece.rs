//! A part of a body: bytes in a buffer, or in a pipe.

use super::{Buffer, Pipe};

/// A part of a body, on its way from one connection to another.
pub enum Piece {
    /// Bytes.
    Buffer(Buffer),
    /// Bytes that nobody can look at any more.
    Pipe(Pipe),
}

impl Piece {
    /// Its bytes; none if they are in a pipe.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        match self {
            Piece::Buffer(buffer) => buffer.data(),
            Piece::Pipe(_) => &[],
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Piece::Buffer(buffer) => buffer.len(),
            Piece::Pipe(pipe) => pipe.held,
        }
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
