//! What must hold for any input, whoever made it up.
//!
//! Each function below takes the bytes of one case and panics when something does not hold. The targets in
//! `fuzz/fuzz_targets` call them from a fuzzer, `tests/corpus.rs` with every file of `fuzz/corpus` and every
//! message of `fixtures/http`. [`strict`] is a second reader of HTTP/1.1, made from the RFCs alone; [`naive`] is a second router, made from
//! the documentation, and [`readers`] are backends that read paths in ways of their own.
//!
//! Some cases begin with one byte that chooses between variants; the rest is the message or the text as it is.

mod admin_path;
mod agent;
mod cache;
mod chunk;
mod client_hello;
mod conditions;
mod differential;
pub mod fixture;
mod heads;
mod hpack;
mod http2;
mod jwt;
pub mod naive;
mod numbers;
mod ours;
mod path_form;
mod proxy_header;
pub mod readers;
mod router;
mod shown;
pub mod strict;
mod token_file;
mod websocket;
mod writer;
mod yaml;

pub use admin_path::admin_path;
pub use agent::agent;
pub use cache::{cache_directives, cache_key, cache_range};
pub use chunk::chunk;
pub use client_hello::client_hello;
pub use differential::differential;
pub use heads::{request_head, response_head};
pub use hpack::hpack;
pub use http2::http2;
pub use jwt::jwt;
pub use numbers::Numbers;
pub use path_form::path_form;
pub use proxy_header::proxy_header;
pub use router::router;
pub use token_file::token_file;
pub use websocket::websocket;
pub use writer::head_writer;
pub use yaml::yaml;

/// What runs one case.
pub type Check = fn(&[u8]);

/// Every target, by the name of its folder in `fuzz/corpus`.
pub const TARGETS: &[(&str, Check)] = &[
    ("request_head", request_head),
    ("response_head", response_head),
    ("chunk", chunk),
    ("head_writer", head_writer),
    ("yaml", yaml),
    ("differential", differential),
    ("agent", agent),
    ("admin_path", admin_path),
    ("token_file", token_file),
    ("jwt", jwt),
    ("websocket", websocket),
    ("path_form", path_form),
    ("router", router),
    ("cache_directives", cache_directives),
    ("cache_range", cache_range),
    ("cache_key", cache_key),
    ("hpack", hpack),
    ("proxy_header", proxy_header),
    ("client_hello", client_hello),
    ("http2", http2),
];
