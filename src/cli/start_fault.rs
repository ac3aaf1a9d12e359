//! A start that failed, with the line of the config that it is about.

use std::fmt;

use crate::config::{Effective, Origin};
use crate::events::{self, StartFault};
use crate::reload::place::said;
use crate::server::StartError;

/// Why a server did not start, and who has written what can't be done.
#[derive(Debug)]
pub(super) struct FailedStart {
    place: Option<String>,
    error: StartError,
}

impl fmt::Display for FailedStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.error),
            None => self.error.fmt(f),
        }
    }
}

impl std::error::Error for FailedStart {}

/// The error with the place of what it is about in front, where that is written in a file.
pub(super) fn located(error: StartError, rows: &[Effective]) -> anyhow::Error {
    FailedStart { place: place(&error, rows).map(ToString::to_string), error }.into()
}

/// Logs what ends the process: all that is known of it as fields, and what fits into one line as the sentence.
pub(super) fn tell(error: &anyhow::Error) {
    let text = format!("{error:#}");
    let sentence = text.lines().next().unwrap_or_default();
    let Some(FailedStart { place, error }) = error.downcast_ref::<FailedStart>() else {
        events::fatal(&text, &StartFault { error: &text, ..StartFault::default() });
        return;
    };
    let place = place.as_deref();
    match error {
        StartError::Bind(unbound) | StartError::AdminDoor(unbound) | StartError::MetricsDoor(unbound) => {
            let (address, error, cure) =
                (unbound.address.to_string(), unbound.error.to_string(), unbound.cure());
            let fault = StartFault {
                place,
                listener: Some(&unbound.listener),
                address: Some(&address),
                held_by: cure.held_by.as_deref(),
                why: cure.why.as_deref(),
                hint: cure.hint.as_deref(),
                error: &error,
            };
            events::fatal(sentence, &fault);
        }
        StartError::Admin(unopened) => {
            let error = unopened.to_string();
            events::fatal(sentence, &StartFault { place, error: &error, ..StartFault::default() });
        }
        StartError::AccessLog(error) | StartError::System(error) => {
            let error = error.to_string();
            events::fatal(sentence, &StartFault { place, error: &error, ..StartFault::default() });
        }
    }
}

fn place<'a>(error: &StartError, rows: &'a [Effective]) -> Option<&'a Origin> {
    match error {
        StartError::Bind(unbound) => unbound.origin(rows),
        StartError::AccessLog(_) => said(rows.iter().find(|row| row.path == "access_log.path")?),
        StartError::AdminDoor(_) => said(rows.iter().find(|row| row.path == "admin.listener")?),
        StartError::MetricsDoor(_) => said(rows.iter().find(|row| row.path == "metrics.listener")?),
        StartError::Admin(_) => said(rows.iter().find(|row| row.path == "admin.socket")?),
        StartError::System(_) => None,
    }
}
