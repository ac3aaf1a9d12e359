//! SIGHUP: the file is read again, and what it says is put into force, or refused as a whole.

use std::sync::Arc;

use tokio::signal::unix::Signal;

use super::start_fault::where_written;
use crate::config::{Effective, Loaded, Problems};
use crate::events;
use crate::reload::difference::difference;
use crate::reload::{Refused, Reloader};

/// Reads the config again from where the first one came.
pub(super) type Loader = Arc<dyn Fn() -> anyhow::Result<Loaded> + Send + Sync>;

/// Reads the config again with each signal. `rows` are those of the config in force.
pub(super) async fn obey(
    signals: &mut Signal,
    reloader: &Reloader,
    loader: &Loader,
    mut rows: Vec<Effective>,
) {
    while signals.recv().await.is_some() {
        let read = Arc::clone(loader);
        // Files may be slow.
        let Ok(read) = tokio::task::spawn_blocking(move || read()).await else { continue };
        match read {
            Ok(loaded) => match reloader.apply(&loaded.config).await {
                Ok(_) => {
                    let differing: Vec<String> =
                        difference(&rows, &loaded.effective).iter().map(ToString::to_string).collect();
                    events::reloaded(&differing);
                    loaded.warnings.iter().for_each(|warning| events::reload_warning(warning));
                    rows = loaded.effective;
                }
                Err(refused) => events::reload_refused(&located(&refused, &loaded.effective), 0),
            },
            Err(error) => match error.downcast_ref::<Problems>() {
                Some(problems) => {
                    let first = problems.list().first().map(ToString::to_string).unwrap_or_default();
                    let first = first.lines().next().unwrap_or_default();
                    events::reload_refused(first, problems.list().len().saturating_sub(1));
                }
                None => events::reload_refused(&format!("{error:#}"), 0),
            },
        }
    }
}

/// The refusal with the place of what it is about in front, in one line.
fn located(refused: &Refused, rows: &[Effective]) -> String {
    let text = refused.to_string();
    let text = text.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    let place = match refused {
        Refused::Bind(unbound) => where_written(unbound, rows),
        Refused::Restart { key } => {
            // `access_log` has rows for its parts only.
            let is_of_it = |path: &str| {
                path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            rows.iter().find(|row| is_of_it(&row.path)).map(|row| row.origin.to_string())
        }
        Refused::Ending => None,
    };
    place.map_or(text.clone(), |place| format!("{place}: {text}"))
}
