//! Where a value was written, so that every message and every effective value can say so.
//!
//! The walker wraps each value in [`Written`]; validation carries the origin on to `evenkeel check`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody wrote it.
    Default,
    /// A line of the config file.
    File {
        /// The file as it was named on the command line.
        file: Arc<str>,
        /// Counted from 1.
        line: usize,
    },
    /// A line of the config file whose value was filled in from the environment.
    Environment {
        /// The name inside `${…}`; the first one when there are several.
        variable: String,
        /// The file as it was named on the command line.
        file: Arc<str>,
        /// Counted from 1.
        line: usize,
    },
    /// A command-line flag, with its dashes.
    Flag(&'static str),
    /// A change by hand.
    Hand {
        /// Whose: `uid 0`, `token ci`.
        who: Arc<str>,
        /// When, in milliseconds since 1970.
        at_ms: u64,
    },
}

impl Origin {
    /// What the text of a change by hand begins with.
    pub const BY_HAND: &'static str = "by hand";
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { file, line } => write!(f, "{file}:{line}"),
            Origin::Environment { variable, file, line } => write!(f, "{file}:{line} (${{{variable}}})"),
            Origin::Flag(name) => f.write_str(name),
            Origin::Hand { who, at_ms } => {
                let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(*at_ms));
                let at = at.unwrap_or(SystemTime::UNIX_EPOCH);
                write!(f, "{}, {who}, {}", Origin::BY_HAND, humantime::format_rfc3339_seconds(at))
            }
        }
    }
}

/// A stretch of one line of a config file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// 0 is the config file itself; those that it includes are counted on in the order in which they are read.
    pub file: u16,
    /// Counted from 1.
    pub line: u32,
    /// In characters, counted from 1.
    pub column: u32,
    /// In characters, at least 1.
    pub width: u32,
}

impl Place {
    /// A place in the config file itself.
    #[must_use]
    pub const fn new(line: u32, column: u32, width: u32) -> Place {
        Place { file: 0, line, column, width }
    }
}

/// One file of a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceFile {
    /// As messages name it.
    pub(super) name: Arc<str>,
    /// Where it is.
    pub(super) path: PathBuf,
    /// What is in it.
    pub(super) text: Arc<str>,
}

impl SourceFile {
    /// A file with this content.
    pub(super) fn new(path: &Path, text: &str) -> SourceFile {
        SourceFile { name: path.display().to_string().into(), path: path.to_owned(), text: text.into() }
    }

    /// Where relative paths in it count from.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }
}

/// A value's origin and, when it stands in the file, its place there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spot {
    /// Told to the user by `check`.
    pub(super) origin: Origin,
    /// Where a caret points; `None` for flags and defaults.
    pub(super) place: Option<Place>,
}

impl Spot {
    /// The spot of something nobody wrote.
    pub(super) const NOWHERE: Spot = Spot { origin: Origin::Default, place: None };

    /// The spot of a flag's value.
    pub(super) const fn flag(name: &'static str) -> Spot {
        Spot { origin: Origin::Flag(name), place: None }
    }
}

/// A value that somebody wrote.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Written<T> {
    /// The value, already of its type and in its range.
    pub(super) value: T,
    /// Where it was written.
    pub(super) spot: Spot,
}

impl<T> Written<T> {
    /// A value with its spot.
    pub(super) const fn new(value: T, spot: Spot) -> Self {
        Written { value, spot }
    }
}

/// A key that must be there: absent and faulty differ, because a fault is reported once only.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Field<T> {
    /// The key is not there.
    #[default]
    Absent,
    /// The key is there and its fault has been reported.
    Faulty,
    /// The key is there and good.
    Given(Written<T>),
}

impl<T> Field<T> {
    /// What a reader made of a key that is there: `None` means that it reported a fault.
    pub(super) fn read(outcome: Option<Written<T>>) -> Self {
        outcome.map_or(Field::Faulty, Field::Given)
    }
}
