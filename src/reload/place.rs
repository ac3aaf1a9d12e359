//! Where in the config something stands that can't be done.

use std::path::Path;

use super::Refused;
use super::bound::{Bound, Unbound};
use super::fault::Fault;
use crate::config::{Effective, Origin};

impl Refused {
    /// Who has written what is refused, if anybody has.
    #[must_use]
    pub fn origin<'a>(&self, rows: &'a [Effective]) -> Option<&'a Origin> {
        match self {
            Refused::Bind(unbound) => unbound.origin(rows),
            Refused::Restart { key } => {
                // Some keys have rows for their parts only.
                let is_of_it = |path: &str| {
                    path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                };
                said(rows.iter().find(|row| is_of_it(&row.path))?)
            }
            Refused::AccessLog(_) => said(rows.iter().find(|row| row.path == "access_log.path")?),
            Refused::System(_) | Refused::Ending => None,
        }
    }

    /// The same as a fault of the config whose rows these are.
    #[must_use]
    pub fn fault(&self, rows: &[Effective]) -> Fault {
        let message = self.to_string();
        let origin = self.origin(rows);
        let place = origin.map_or_else(String::new, |origin| format!("{origin}: "));
        let (file, line) = match origin {
            Some(Origin::File { file, line } | Origin::Environment { file, line, .. }) => {
                (Some(file.to_string()), Some(*line))
            }
            Some(Origin::Flag(_) | Origin::Hand { .. } | Origin::Default) | None => (None, None),
        };
        Fault { file, line, text: format!("{place}{message}"), message, ..Fault::default() }
    }
}

impl Unbound {
    /// Who has written where this listener listens, if anybody has.
    #[must_use]
    pub fn origin<'a>(&self, rows: &'a [Effective]) -> Option<&'a Origin> {
        let path = format!("targets.{}.listener", self.listener);
        let is_own = |row: &&Effective| row.path == path || row.path.starts_with(&format!("{path}["));
        let own: Vec<&Effective> = rows.iter().filter(is_own).collect();
        let fits = |row: &&&Effective| match &self.address {
            Bound::Tcp(address) => row.value.ends_with(&format!(":{}", address.port())),
            Bound::Unix(path) => {
                row.value.strip_prefix("unix:").is_some_and(|other| Path::new(other) == path)
            }
        };
        said(own.iter().find(fits).or(own.first()).copied()?)
    }
}

/// Who has said a row, if anybody has.
#[must_use]
pub fn said(row: &Effective) -> Option<&Origin> {
    match &row.origin {
        Origin::File { .. } | Origin::Environment { .. } | Origin::Flag(_) | Origin::Hand { .. } => {
            Some(&row.origin)
        }
        Origin::Default => None,
    }
}
