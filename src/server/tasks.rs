//! What control does all the time, beside those who ask it.

use std::sync::Arc;

use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::jwks;
use crate::lasting::again;
use crate::reload::Reloader;
use crate::scale;
use crate::tls::ROTATION;

/// Begins all of it.
pub(super) fn start(control: &Runtime, reloader: &Arc<Reloader>, succeeded: CancellationToken) {
    probe(control, reloader);
    rotate_tickets(control, reloader);
    fetch_keys(control, reloader, succeeded);
    watch_scale(control, reloader);
}

/// Has the backends probed of the config in force, and of later ones.
fn probe(control: &Runtime, reloader: &Reloader) {
    let _inside = control.enter();
    reloader.probe();
}

fn rotate_tickets(control: &Runtime, reloader: &Reloader) {
    let tickets = Arc::clone(reloader.snapshots.tickets());
    let rotate = async move || {
        let mut turns = tokio::time::interval(ROTATION);
        // The first turn is due at once.
        turns.tick().await;
        loop {
            turns.tick().await;
            tickets.rotate();
        }
    };
    control.spawn(again("replacing ticket keys", rotate));
}

/// Has the keys of tokens fetched that are behind URLs.
fn fetch_keys(control: &Runtime, reloader: &Arc<Reloader>, succeeded: CancellationToken) {
    let reloader = Arc::clone(reloader);
    let fetching = again("the keys of tokens", async move || jwks::keep(&reloader).await);
    // Another process fetches them then.
    control.spawn(async move { succeeded.run_until_cancelled_owned(fetching).await });
}

/// Has it told which targets have too few backends, or more than they need.
fn watch_scale(control: &Runtime, reloader: &Arc<Reloader>) {
    let reloader = Arc::clone(reloader);
    control.spawn(again("scale signals", async move || scale::watch(&reloader).await));
}
