//! What the command line said, as far as it is part of a config.

/// What the command line said; every field overrides the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--backends`: URLs, each perhaps several with commas between them.
    pub backends: Vec<String>,
    /// `--port`: where the only target listens.
    pub port: Option<u16>,
    /// `--address`: the address of listeners that are only a port.
    pub address: Option<String>,
    /// `--algorithm`: for every target.
    pub algorithm: Option<String>,
    /// `--health-path`: what the checks of every HTTP target ask for.
    pub health_path: Option<String>,
    /// `--health-check-frequency-in-seconds`: between the checks of every target.
    pub health_interval: Option<u64>,
    /// `--health-check-max-retries`: bad checks in a row that take a backend out, for every target.
    pub health_fall: Option<u32>,
    /// `--cache-enabled`: whether targets with a listener of their own answer from what is stored.
    pub cache_enabled: Option<bool>,
    /// `--cache-timeout-in-seconds`: for how long, where answers say nothing about it.
    pub cache_ttl: Option<u64>,
    /// `--workers`: threads, 1 to 1,024.
    pub workers: Option<usize>,
    /// `--log-level`.
    pub log_level: Option<String>,
    /// `--log-format`: of events.
    pub log_format: Option<String>,
}
