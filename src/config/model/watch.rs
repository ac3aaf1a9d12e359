//! Which files a process watches.

/// Which files are watched, so that a change of them is put into force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchMode {
    /// The config and all files that it names. The default.
    #[default]
    On,
    /// Certificates, keys and lists: what the config names.
    Files,
    /// None.
    Off,
}

impl WatchMode {
    /// All with the names they have in a config file.
    pub const ALL: &'static [(&'static str, WatchMode)] =
        &[("on", WatchMode::On), ("files", WatchMode::Files), ("off", WatchMode::Off)];
}
