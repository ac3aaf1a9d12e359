//! HTTP: one pipeline (`exchange` → `forward`) between an edge that faces the client and pooled connections to
//! backends.
//!
//! `connection` and `wire` speak HTTP/1 with the client; `call` and `reply` with a backend; both over `h1`. `h2` is HTTP/2's codec.
//! `memory` is the edge without a wire.

pub mod after;
pub mod answer_body;
pub mod body;
pub mod cached;
pub mod call;
pub mod client;
pub mod compressed;
pub mod connection;
pub mod edge;
pub mod exchange;
pub mod forward;
pub mod gate;
pub mod h1;
pub mod h2;
pub mod hash_key;
pub mod identity;
pub mod incoming;
pub mod job_futures;
pub mod memory;
pub mod mirror;
pub mod multiplexed;
pub mod own;
mod parting;
pub mod reply;
pub mod request_body;
pub mod routing;
pub mod sticky;
pub mod stream_tasks;
pub mod tunnel;
pub mod upstream;
pub mod websocket;
pub mod wire;
