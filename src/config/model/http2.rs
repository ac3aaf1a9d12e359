//! HTTP/2 with clients, in the accepted form.

use std::time::Duration;

/// What HTTP/2 with the clients of a listener may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2 {
    /// Streams that a client may have open at once on one connection, 1 to 256 (SETTINGS_MAX_CONCURRENT_STREAMS, RFC 9113 §6.5.2).
    /// Default 128.
    pub max_streams: u32,
    /// Bytes to which a receive window of a stream or a connection may grow, from [`Http2::WINDOW`] to 16 MiB. Default 4 MiB.
    pub window_max: u32,
    /// Bytes per worker that its connections stop at; what those of other listeners hold counts too. From `window_max` to 64 GiB. Default 64 MiB.
    pub memory: u64,
    /// After which time a connection is told to go elsewhere (GOAWAY, RFC 9113 §6.8), at least 1 s; `None` (`off`, the
    /// default): never.
    pub max_age: Option<Duration>,
}

impl Http2 {
    /// Bytes of the receive windows with which each connection begins.
    pub const WINDOW: u32 = 256 << 10;
}

impl Default for Http2 {
    fn default() -> Self {
        Http2 { max_streams: 128, window_max: 4 << 20, memory: 64 << 20, max_age: None }
    }
}
