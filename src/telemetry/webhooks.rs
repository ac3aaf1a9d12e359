//! How it goes with webhooks: written by who sends, read by who reports.

use std::sync::{Arc, Mutex, PoisonError};

/// How it goes with one receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookCounts {
    /// Scheme and host, `https://hooks.example/…`.
    pub url: String,
    /// What it is told.
    pub events: Vec<&'static str>,
    /// Messages that wait for it, those that are being sent included.
    pub waiting: usize,
    /// Messages that it has taken since the process began.
    pub delivered: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Messages that are not sent any more.
    pub dropped: u64,
    /// Why the latest attempt that failed did, and when that was, in milliseconds since 1970.
    pub last_error: Option<(String, u64)>,
}

/// The latest of it, in the order of the config.
#[derive(Debug, Default)]
pub struct WebhookBoard(Mutex<Arc<[WebhookCounts]>>);

impl WebhookBoard {
    /// Shows these.
    pub fn show(&self, counts: Vec<WebhookCounts>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = counts.into();
    }

    /// What is shown.
    #[must_use]
    pub fn counts(&self) -> Arc<[WebhookCounts]> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
