//! A start that failed, with the line of the config that it is about.

use crate::config::Effective;
use crate::reload::place::said;
use crate::server::StartError;

/// The error with the place of what it is about in front, where that is written in a file.
pub(super) fn located(error: StartError, rows: &[Effective]) -> anyhow::Error {
    match place(&error, rows) {
        Some(place) => anyhow::anyhow!("{place}: {error}"),
        None => error.into(),
    }
}

fn place(error: &StartError, rows: &[Effective]) -> Option<String> {
    match error {
        StartError::Bind(unbound) => unbound.place(rows),
        StartError::AccessLog(_) => said(rows.iter().find(|row| row.path == "access_log.path")?),
        StartError::System(_) => None,
    }
}
