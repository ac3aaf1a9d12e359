//! Sockets, buffers and time: the I/O edge, without any protocol.
//!
//! Everything is `!Send` by use: a worker's thread owns its sockets, buffers and deadlines.

pub mod buffer;
pub mod carried;
pub mod connect;
pub mod datagrams;
pub mod deadline;
pub mod fresh;
pub mod holder;
mod option;
pub mod piece;
pub mod plain;
pub mod prompt;
pub mod relay;
pub mod socket;
pub mod socket_file;
pub mod splice;
pub mod stream;
pub mod supervisor;
pub mod tls;
pub mod wall;

pub use buffer::{Buffer, FreeList};
pub use carried::Carried;
pub use deadline::{Deadline, Ticker, now};
pub use piece::{Piece, SharedBytes};
pub use splice::Pipe;
pub use stream::{Stream, Tls};
