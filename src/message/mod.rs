//! What a request is made of: head, framing, the cause it ended with, the record it leaves.
//!
//! No sockets and no clock. Everything above speaks in these words.

mod cache_note;
mod cause;
mod client;
pub mod cookie;
mod field;
pub mod grpc;
mod head;
mod peer;
pub mod proxy_header;
mod record;
pub mod status;
mod steering;
mod trace_context;
mod weighted;

pub use cache_note::{CacheNote, WhyNot};
pub use cause::{Blame, Cause};
pub use client::ClientAddress;
pub use field::{Fields, HeaderField};
pub use head::{Head, HeadLine, LineRun, Span, Version, tokens};
pub use peer::Peer;
pub use record::{
    ATTEMPTS, Attempt, BackendId, ListenerId, PickNote, Record, RecordKind, RouteId, TargetId, TlsSession,
    Tracing,
};
pub use steering::steers;
pub use trace_context::{TraceContext, TraceParent};
pub use weighted::weighted;

/// How the length of a body is known (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body, not even an empty one to announce.
    None,
    /// Exactly so many bytes.
    Length(u64),
    /// Chunks, then trailers.
    Chunked,
    /// Answers only: everything until the connection closes.
    UntilClose,
}
