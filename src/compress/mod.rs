//! Which answers are compressed, and how: decisions without I/O, on the heads of both.
//!
//! [`Compression::of`] says of an answer whether it may be compressed, whoever asks: only then, or where it is a part of such a one, does
//! [`vary`] belong into it, compressed or not. [`negotiated`] says what this client gets. If that is a coding, [`recode`] makes the head of the compressed answer. The order
//! of the three matters to caches: of an answer that is never compressed there is one variant.

mod accepted;
mod coder;
mod compressible;

pub use accepted::negotiated;
pub use coder::Coder;
pub use compressible::{Compression, WhyPlain, recode, vary};
