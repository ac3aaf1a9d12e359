//! What is in force and where it came from: the rows of `evenkeel check`.

use super::origin::{Origin, Written};

/// One key in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// Its path, for example `targets.web.timeouts.connect`.
    pub path: String,
    /// Its value in the form it has in a file.
    pub value: String,
    /// Who said so.
    pub origin: Origin,
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
        self.rows.push(Effective { path: path.into(), value: value.into(), origin });
    }

    /// The rows in the order they were noted.
    pub(super) fn into_list(self) -> Vec<Effective> {
        self.rows
    }
}
