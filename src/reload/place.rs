//! Where in the config something stands that can't be done.

use std::path::Path;

use super::Refused;
use super::bound::{Bound, Unbound};
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
        Origin::File { .. } | Origin::Environment { .. } | Origin::Flag(_) => Some(&row.origin),
        Origin::Default => None,
    }
}
