//! HTTP/2 (RFC 9113) without the pipeline.
//!
//! `engine` is a connection without its socket, over `frame`, `hpack`, `flow`, `stream`, `priority` and `budget` and `debts`; `draft` makes heads of what was
//! decoded. `session` is what the tasks of one connection share, and `upload` a request's body. Who serves the streams is `multiplexed`'s
//! business.

pub mod budget;
pub mod code;
pub mod debts;
pub mod draft;
pub mod engine;
pub mod flow;
pub mod frame;
pub mod hpack;
pub mod output;
pub mod priority;
pub mod repeated;
pub mod repeated_answers;
pub mod session;
pub mod space;
pub mod stream;
pub mod stream_bytes;
pub mod upload;
pub mod writer_bell;
