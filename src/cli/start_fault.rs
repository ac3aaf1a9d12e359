//! A start that failed, with the line of the config that it is about.

use std::path::Path;

use crate::config::{Effective, Origin};
use crate::reload::bound::{Bound, Unbound};
use crate::server::StartError;

/// The error with the place of what it is about in front, where that is written in a file.
pub(super) fn located(error: StartError, rows: &[Effective]) -> anyhow::Error {
    match place(&error, rows) {
        Some(place) => anyhow::anyhow!("{place}: {error}"),
        None => error.into(),
    }
}

fn place(error: &StartError, rows: &[Effective]) -> Option<String> {
    let row = match error {
        StartError::Bind(Unbound { listener, address, .. }) => {
            let path = format!("targets.{listener}.listener");
            let is_own = |row: &&Effective| row.path == path || row.path.starts_with(&format!("{path}["));
            let own: Vec<&Effective> = rows.iter().filter(is_own).collect();
            let fits = |row: &&&Effective| match address {
                Bound::Tcp(address) => row.value.ends_with(&format!(":{}", address.port())),
                Bound::Unix(path) => {
                    row.value.strip_prefix("unix:").is_some_and(|other| Path::new(other) == path)
                }
            };
            own.iter().find(fits).or(own.first()).copied()?
        }
        StartError::AccessLog(_) => rows.iter().find(|row| row.path == "access_log.path")?,
        StartError::System(_) => return None,
    };
    match &row.origin {
        Origin::File { .. } | Origin::Environment { .. } => Some(row.origin.to_string()),
        Origin::Flag(name) => Some((*name).to_owned()),
        Origin::Default => None,
    }
}
