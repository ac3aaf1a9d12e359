//! The flight recorder, in the accepted form.

/// What is kept of requests that are over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderConfig {
    /// Bytes of memory for each worker, 256 KiB to 1 GiB. Default: 4 MiB.
    pub memory: u64,
    /// Names of header lines that are kept, in the order of the file. Default: User-Agent and Content-Type.
    pub show_headers: Vec<String>,
}

impl RecorderConfig {
    /// Header lines that have secrets in them, so that they are never kept.
    pub const HIDDEN: &'static [&'static str] =
        &["authorization", "proxy-authorization", "cookie", "set-cookie"];
    /// How many names there may be.
    pub const MOST_HEADERS: usize = 16;
}

impl Default for RecorderConfig {
    fn default() -> RecorderConfig {
        let show_headers = ["User-Agent", "Content-Type"].map(str::to_owned).into();
        RecorderConfig { memory: 4 << 20, show_headers }
    }
}
