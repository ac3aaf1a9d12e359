//! What is in force and where it came from: the rows of `evenkeel check`.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::sync::OnceLock;

use super::origin::{Origin, Written};

/// How a secret is shown.
const HIDDEN: &str = "(hidden)";

/// One key in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// Its path, for example `targets.web.timeouts.connect`.
    pub path: String,
    /// Its value in the form it has in a file.
    pub value: String,
    /// Who said so.
    pub origin: Origin,
    /// Where it names a file that was read, or is a secret: a number for what that is, which is the same for the same content.
    /// It says nothing about that, and nothing in another process.
    pub content: Option<u64>,
}

/// The numbers that a target's backends have in their rows, by their names.
#[must_use]
pub fn backend_numbers<'r>(rows: &'r [Effective], target: &str) -> HashMap<&'r str, usize> {
    let prefix = format!("targets.{target}.backends[");
    let named = rows.iter().filter_map(|row| {
        let number = row.path.strip_prefix(&prefix)?.strip_suffix("].name")?;
        Some((&*row.value, number.parse().ok()?))
    });
    named.collect()
}

/// The rows in the making: fills in defaults and notes what was filled in.
#[derive(Debug, Default)]
pub(super) struct EffectiveRows {
    rows: Vec<Effective>,
}

impl EffectiveRows {
    /// The written value, or the default; either is noted.
    pub(super) fn settle<T: Clone>(
        &mut self,
        path: impl Into<String>,
        written: Option<&Written<T>>,
        default: T,
        show: impl Fn(&T) -> String,
    ) -> T {
        let (value, origin) = match written {
            Some(written) => (written.value.clone(), written.spot.origin.clone()),
            None => (default, Origin::Default),
        };
        self.note(path, show(&value), origin);
        value
    }

    /// Notes a value that was settled elsewhere.
    pub(super) fn note(&mut self, path: impl Into<String>, value: impl Into<String>, origin: Origin) {
        self.rows.push(Effective { path: path.into(), value: value.into(), origin, content: None });
    }

    /// Notes a value that nobody is to see. Whether it is another one than before can be told all the same.
    pub(super) fn note_secret(&mut self, path: String, secret: &[u8], origin: Origin) {
        let content = Some(number_of([secret]));
        self.rows.push(Effective { path, value: HIDDEN.to_owned(), origin, content });
    }

    /// Notes a value of which only a part may be shown, with the number of the whole.
    pub(super) fn note_hidden(&mut self, path: String, shown: String, origin: Origin, content: u64) {
        self.rows.push(Effective { path, value: shown, origin, content: Some(content) });
    }

    /// Notes a file that was read, with the number of its content.
    pub(super) fn note_file(&mut self, path: String, file: &Path, origin: Origin, content: Option<u64>) {
        self.rows.push(Effective { path, value: file.display().to_string(), origin, content });
    }

    /// The rows in the order they were noted.
    pub(super) fn into_list(self) -> Vec<Effective> {
        self.rows
    }
}

/// A number for what was in a file, part by part. Its key is made anew in each process, so that nobody learns anything about a
/// secret from it.
pub(super) fn number_of<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> u64 {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    let mut hasher = KEY.get_or_init(RandomState::new).build_hasher();
    for part in parts {
        hasher.write_usize(part.len());
        hasher.write(part);
    }
    hasher.finish()
}
