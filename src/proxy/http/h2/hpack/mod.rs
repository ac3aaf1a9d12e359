//! HPACK (RFC 7541): lines of heads as blocks of bytes, and back.
//!
//! A decoder hands out whole lines in the form that HTTP/1.1 writes, each with its verdict and with what we know of its name:
//! the lines of the `statics` table are made beforehand, those of the dynamic `table` are judged once, when they come as
//! literals (`judge`). An encoder has no table of its own: what `encode` says needs no memory on either side.
//!
//! A malformed line is no error of the connection (RFC 9113 §8.1.1): it is handed out as such, and the table stays in step with the peer's.
//! Everything that a peer can make us hold or do is bounded, and counted while decoding.

mod codes;
mod decode;
pub mod encode;
mod encoded_lines;
mod huffman;
mod integer;
mod judge;
mod line;
mod statics;
mod table;
#[cfg(test)]
mod tests;

pub use decode::{BlockReading, HpackDecoder};
pub use encoded_lines::EncodedLines;
pub use line::{FieldLine, HpackError, LineKind, Pseudo};
