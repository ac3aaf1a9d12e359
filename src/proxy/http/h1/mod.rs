//! HTTP/1.0 and 1.1 on the wire (RFC 9112), in both directions.
//!
//! `search`, `parse` (by `scan`) and `framing` read heads, of which `known_lines` knows some already, `opening` tells what begins with none, `chunk` and `decode` read bodies, `write` (by `digits` and `nominated`) makes heads,
//! `transmit` sends messages. None of them knows what a target is.

pub mod chunk;
pub mod classes;
pub mod decode;
pub mod digits;
pub mod edit;
pub mod framing;
pub mod known_lines;
pub mod nominated;
pub mod opening;
pub mod parse;
pub(super) mod scan;
pub mod search;
pub mod transmit;
pub mod write;
