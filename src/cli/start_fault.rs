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

/// The line that says where this listener listens.
pub(super) fn where_written(unbound: &Unbound, rows: &[Effective]) -> Option<String> {
    let Unbound { listener, address, .. } = unbound;
    let path = format!("targets.{listener}.listener");
    let is_own = |row: &&Effective| row.path == path || row.path.starts_with(&format!("{path}["));
    let own: Vec<&Effective> = rows.iter().filter(is_own).collect();
    let fits = |row: &&&Effective| match address {
        Bound::Tcp(address) => row.value.ends_with(&format!(":{}", address.port())),
        Bound::Unix(path) => row.value.strip_prefix("unix:").is_some_and(|other| Path::new(other) == path),
    };
    said(own.iter().find(fits).or(own.first()).copied()?)
}

fn place(error: &StartError, rows: &[Effective]) -> Option<String> {
    let row = match error {
        StartError::Bind(unbound) => return where_written(unbound, rows),
        StartError::AccessLog(_) => rows.iter().find(|row| row.path == "access_log.path")?,
        StartError::System(_) => return None,
    };
    said(row)
}

/// Who has written a row, if anybody has.
fn said(row: &Effective) -> Option<String> {
    match &row.origin {
        Origin::File { .. } | Origin::Environment { .. } => Some(row.origin.to_string()),
        Origin::Flag(name) => Some((*name).to_owned()),
        Origin::Default => None,
    }
}
