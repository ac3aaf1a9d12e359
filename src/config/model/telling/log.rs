//! What is logged of requests and of events, where, and in which form.

use std::fmt;
use std::path::PathBuf;

use crate::config::model::template::Template;

/// Where access records go and how they look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// The destination.
    pub path: LogPath,
    /// The form of a line.
    pub format: LogFormat,
    /// The share of records that is logged; those of errors always are. Default: all.
    pub sample: Share,
}

/// A log's destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPath {
    /// Standard output (`stdout` or `-`).
    Stdout,
    /// Appended to a file.
    File(PathBuf),
}

/// The form of an access line.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// One line to read. The default.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
    /// The Common Log Format of Apache and nginx.
    Common,
    /// The same with Referer and User-Agent.
    Combined,
    /// A form of the operator's own.
    Template(Template),
}

impl LogFormat {
    /// Every form that has a name in a config file.
    pub const NAMED: &'static [(&'static str, LogFormat)] = &[
        ("text", LogFormat::Text),
        ("json", LogFormat::Json),
        ("common", LogFormat::Common),
        ("combined", LogFormat::Combined),
    ];
}

/// A part of a whole, in steps of a millionth. Never nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// The whole.
    pub const ALL: Share = Share(1_000_000);

    /// So many millionths, 1 to 1,000,000.
    #[must_use]
    pub const fn from_millionths(count: u32) -> Option<Share> {
        if count == 0 || count > Share::ALL.0 { None } else { Some(Share(count)) }
    }

    /// How many millionths it is.
    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.0
    }
}

/// In percent, as it is written in a file: `1%`, `0.5%`.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / 10_000, self.0 % 10_000);
        write!(f, "{whole}")?;
        if fraction > 0 {
            let digits = format!("{fraction:04}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("%")
    }
}

/// The form of a line about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EventFormat {
    /// One line to read. The default.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl EventFormat {
    /// Every form with the name it has in a config file.
    pub const ALL: &'static [(&'static str, EventFormat)] =
        &[("text", EventFormat::Text), ("json", EventFormat::Json)];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_shows_itself_in_percent() {
        let shown = [1, 100, 5_000, 10_000, 123_400, 999_999, 1_000_000]
            .map(|count| Share::from_millionths(count).expect("in range").to_string());
        assert_eq!(shown, ["0.0001%", "0.01%", "0.5%", "1%", "12.34%", "99.9999%", "100%"]);
        assert_eq!((Share::from_millionths(0), Share::from_millionths(1_000_001)), (None, None));
    }
}
