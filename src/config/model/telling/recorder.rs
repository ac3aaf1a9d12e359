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
    /// Bytes that each may have: an entry has room for all of them.
    pub const LONGEST_HEADER: usize = 100;

    /// Whether the name of a header has a word in it by which secrets are called, such as `X-Api-Key`.
    #[must_use]
    pub fn sounds_secret(name: &str) -> bool {
        const WORDS: &[&str] = &[
            "apikey",
            "auth",
            "credential",
            "jwt",
            "key",
            "passwd",
            "password",
            "secret",
            "session",
            "token",
        ];
        name.to_ascii_lowercase().split(['-', '_']).any(|word| WORDS.contains(&word.trim_end_matches('s')))
    }
}

impl Default for RecorderConfig {
    fn default() -> RecorderConfig {
        let show_headers = ["User-Agent", "Content-Type"].map(str::to_owned).into();
        RecorderConfig { memory: 4 << 20, show_headers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_that_they_are_secret_are_noticed_and_others_are_not() {
        for name in ["X-Api-Key", "APIKEY", "X-Auth-Token", "x_session_id", "X-Secrets", "X-JWT"] {
            assert!(RecorderConfig::sounds_secret(name), "{name}");
        }
        for name in ["User-Agent", "X-Monkey", "Keep-Alive", "X-Author", "Content-Type", "Sec-CH-UA"] {
            assert!(!RecorderConfig::sounds_secret(name), "{name}");
        }
    }
}
