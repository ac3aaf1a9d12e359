//! What files are to say, and what comes of that.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A file of a config, with what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// As messages name it.
    pub name: Arc<str>,
    /// Where it is.
    pub path: PathBuf,
    /// What is in it.
    pub text: Arc<str>,
}

/// What a file is to say of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The target's name.
    pub target: String,
    /// What of it.
    pub change: WantedChange,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedChange {
    /// `state` or `weight` of the backend of this name.
    Field {
        /// The backend's name.
        backend: String,
        /// The key.
        key: &'static str,
        /// As a file has it.
        value: WantedValue,
    },
    /// `max_in_flight`.
    InFlight(WantedValue),
    /// One more backend, with these keys.
    Add(Vec<(&'static str, WantedValue)>),
    /// One backend less: the one of this name.
    Remove(String),
}

/// A value as it is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedValue {
    /// A number, or a truth value: never in quotes.
    Plain(String),
    /// A text: in quotes where it has to be.
    Text(String),
}

/// A file that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// Its number among those that were given.
    pub source: usize,
    /// What is in it then.
    pub text: String,
    /// The lines that differ.
    pub lines: Vec<ChangedLine>,
}

/// A line of a file that comes or goes. What may be a secret is hidden.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedLine {
    /// `-`: it goes; `+`: it comes.
    pub sign: char,
    /// Counted from 1: of one that goes as it was, of one that comes as it is then.
    pub line: usize,
    /// What stands there.
    pub text: String,
}

impl fmt::Display for ChangedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.sign, self.line, self.text)
    }
}

/// What can't be done by spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// The file; `None`: it is in none.
    pub file: Option<Arc<str>>,
    /// Counted from 1.
    pub line: Option<usize>,
    /// What stands in the way.
    pub why: String,
    /// What to do there instead.
    pub instead: String,
    /// The lines for that.
    pub lines: Vec<String>,
}

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, _) => {}
        }
        write!(f, "{}; {}", self.why, self.instead)?;
        if !self.lines.is_empty() {
            f.write_str(":")?;
        }
        self.lines.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}
