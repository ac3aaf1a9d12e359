//! A client that speaks HTTP/2: its connection, and its streams through the one pipeline.
//!
//! `connection` moves bytes between the socket and the engine, `stream` serves a request in a task of its own, `edge` is the side of the
//! pipeline that it sees, `answer` writes heads, and `tunnel` has WebSockets on streams.

mod answer;
pub mod connection;
mod edge;
mod stream;
mod tunnel;
