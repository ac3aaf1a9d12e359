//! HTTP/2 on the wire (RFC 9113). No sockets and no clock.
//!
//! `hpack` codes the lines of heads. What they mean is no concern of it.

pub mod hpack;
