//! What is told to people: every event has one function here and one wording.
//!
//! Who greps for a line in an incident finds the place that writes it. One line per transition, never one per probe or
//! request. The message is a whole sentence; as text it stands alone, and JSON has each of its facts as a field too.

use std::fmt;
use std::io;
use std::time::Duration;

use tracing::Level;

mod asked;
mod change;
mod cluster;
mod discovery;
mod event;
mod history;
mod kind;
mod life;
mod logs;
mod overlay;
mod receivers;
mod refusals;
mod reloads;
mod scale;
mod threads;
mod tls;
mod trial;
mod webhooks;
mod wording;

pub use asked::{
    admin_listener, admin_socket, event_reader_dropped, metrics_listener, no_admin_listener, no_admin_socket,
};
pub use change::{BackendChange, TargetChange};
pub use cluster::{
    blocked_elsewhere, cluster_detached, cluster_joined, cluster_refused, cluster_relisted,
    cluster_store_refuses, cluster_store_works, cluster_unheard, cluster_unkept, file_differs, node_gone,
    node_joined, node_restarted, overlay_stored_again, own_changes_ended, owner_by_hand, proposal_judged,
    proposal_unread, revision_behind, revision_gone, revision_in_force, revision_unkept, revision_unread,
    secret_unread, secrets_unshared, unseeded,
};
pub use discovery::{
    address_left_out, backends_found, found_refused, name_found_again, name_has_too_many, name_not_found,
    resolvers_changed,
};
pub use event::{Event, EventFacts, EventReport, Saying, level_of};
pub use history::{EventHistory, EventReader, EventsAfter, HistoryLayer, KindTally};
pub use kind::EventKind;
pub use life::{
    StartFault, backlog_capped, begun_again, cut_for_upgrade, cutting, delay_over, descriptor_budget,
    descriptors_short, draining, elder_cut, fatal, listening, nobody_reads, socket_unused, stopped,
    succeeded, supervisor_not_told, task_panicked, upgrade_begun, upgrade_failed, upgraded, worker_stuck,
};
pub use logs::{
    access_log_failed, access_log_reopened, access_log_works, event_lost, events_lost, lost_so_far,
    no_log_file, records_dropped,
};
pub use overlay::{
    blocked, blocked_from_the_start, let_in, overlay_aside, overlay_behind, overlay_changed, overlay_cut,
    overlay_ended, overlay_laid, overlay_over, overlay_saved, overlay_unkept, unblocked,
};
pub use receivers::{statsd_fails, statsd_works, traces_fail, traces_work};
pub use refusals::{RefusalPlace, Refusals};
pub use reloads::{reload_refused, reload_warning, reloaded, snapshot_swapped, watch_falls_back};
pub use scale::{scale_in, scale_out};
pub use threads::here_as_there;
pub use tls::{
    authority_unreadable, certificate_expires, certificate_issued, certificate_missing,
    certificate_not_issued, certificate_taken, handshake_failed, keys_fetched, keys_not_fetched,
    no_authorities, no_tls_session, orders_unkept, own_authorities, proof_unseen, proxy_header_refused,
    renewal_overdue, revocation_list_overdue, upstream_tls_failed, upstream_tls_failed_again,
    upstream_unverified,
};
pub use trial::{applied, confirmed, edit_on_trial, leftover_removed, rollback_failed, rolled_back};
pub use webhooks::{
    webhook_dropped, webhook_fails, webhook_works, webhooks_cut, webhooks_kept, webhooks_missed,
    webhooks_unkept,
};

use refusals::RefusalText;
use wording::{SENTENCE, millis, name, rough, sentence};

/// What is told at a level that is not known before.
macro_rules! told_at {
    ($level:expr, $kind:expr, $($said:tt)+) => {
        match $level {
            Level::ERROR => tracing::error!(kind = $kind.name(), $($said)+),
            Level::WARN => tracing::warn!(kind = $kind.name(), $($said)+),
            _ => tracing::info!(kind = $kind.name(), $($said)+),
        }
    };
}

/// Logs a backend's transition: a warning when it was lost, information otherwise.
pub fn backend_changed(change: &BackendChange<'_>) {
    let BackendChange { target, backend, from, to, source, reason, after, left, of } = change;
    let after_ms = after.map(millis);
    let level = if change.is_lost() { Level::WARN } else { Level::INFO };
    told_at!(level, change.kind(), target, backend, from, to, source, reason, after_ms, left, of, "{change}");
}

/// Logs a target's transition: an error when it has nobody left, a warning when it has backups only, information otherwise.
pub fn target_changed(change: &TargetChange<'_>) {
    let TargetChange { target, from, state, after, left, of } = change;
    let after_ms = after.map(millis);
    let level = match *state {
        "down" => Level::ERROR,
        "backups" => Level::WARN,
        _ => Level::INFO,
    };
    told_at!(level, change.kind(), target, from, state, after_ms, left, of, "{change}");
}

/// Logs that a backend could not be probed for want of a local resource; its last verdict stands.
///
/// Called once per stretch of shortage, not once per probe.
pub fn probe_starved(target: &str, backend: &str, reason: &str) {
    tracing::warn!(
        kind = EventKind::ProbeStarved.name(),
        target,
        backend,
        reason,
        "{}",
        sentence("cannot probe backend ", &[target, backend], ", its verdict stands: ", reason, "")
    );
}

/// Logs that a backend's agent could not be asked, or what of its words was not understood; what it said before stands.
///
/// Called once per stretch of failures, not once per interval.
pub fn agent_unheard(target: &str, backend: &str, reason: &str) {
    tracing::warn!(
        kind = EventKind::AgentUnheard.name(),
        target,
        backend,
        reason,
        "{}",
        sentence(
            "the agent of backend ",
            &[target, backend],
            " tells nothing new, its words stand: ",
            reason,
            ""
        )
    );
}

/// Logs that a name which had addresses no longer resolves; the last good ones stay in use.
///
/// Called once per stretch of failures, not once per lookup.
pub fn name_lost(host: &str, reason: &str) {
    tracing::warn!(
        kind = EventKind::NameLost.name(),
        host,
        reason,
        "{}",
        sentence("cannot resolve ", &[host], ", its last addresses stay in use: ", reason, "")
    );
}

/// Logs, for whoever debugs, that a connection to a backend could not be opened.
pub fn connect_failed(identity: &str, endpoint: &dyn fmt::Display, error: &io::Error) {
    tracing::debug!(backend = identity, %endpoint, %error, "connect failed: backend {identity} at {endpoint}: {error}");
}

/// Logs that the sticky cookies of this target are made with a key of this process. Called once per start.
pub fn sticky_key_made(target: &str) {
    tracing::warn!(
        kind = EventKind::StickyKeyMade.name(),
        target,
        "target {}: `sticky` has no `key`: cookies last until the restart, and on this node only",
        name(target)
    );
}

/// Logs that so few backends of a target are left, `left` of `of`, that those left out as outliers get requests again.
pub fn panic_began(target: &str, percent: u32, left: usize, of: usize) {
    let panic = true;
    tracing::warn!(
        kind = EventKind::PanicBegan.name(),
        target,
        panic,
        percent,
        left,
        of,
        "target {}: less than {percent}% left, so outliers get requests again ({left} of {of} left)",
        name(target)
    );
}

/// Logs that enough backends are left again, `left` of `of`, and for how long outliers have got requests.
pub fn panic_ended(target: &str, after: Duration, left: usize, of: usize) {
    let (panic, after_ms, span) = (false, millis(after), rough(after));
    tracing::info!(
        kind = EventKind::PanicEnded.name(),
        target,
        panic,
        after_ms,
        left,
        of,
        "target {}: enough are left, so outliers are left out again after {span} ({left} of {of} left)",
        name(target)
    );
}

/// Logs that for the first time a backend of a target has as many requests as were found out to be good for it.
pub fn limit_met(target: &str, limit: u32) {
    tracing::info!(
        kind = EventKind::LimitMet.name(),
        target,
        limit,
        "target {}: a backend has as many requests as it may have ({limit}, adaptive); some may wait now",
        name(target)
    );
}

/// Logs that one of a target's new backends may be picked, so that those before get no more requests.
pub fn successors_up(target: &str, before: usize) {
    tracing::info!(
        kind = EventKind::SuccessorsUp.name(),
        target,
        before,
        "target {target}: its new backends have taken over from the {before} before them"
    );
}

/// Logs that none of a target's new backends may be picked, and those before get no more requests all the same.
pub fn successors_late(target: &str, before: usize, patience: Duration) {
    let (patience_ms, patience) = (millis(patience), rough(patience));
    tracing::warn!(
        kind = EventKind::SuccessorsLate.name(),
        target,
        before,
        patience_ms,
        "target {target}: none of its new backends is up after {patience}; the {before} before them get no more requests"
    );
}

/// Logs how many requests and connections were refused for want of room or of a local resource, over all workers.
///
/// Called at most once in ten seconds. The fields `by_cause`, `by_listener` and `by_target` are objects.
pub fn refused(refusals: &Refusals, span: Duration) {
    let (count, span_ms, span) = (refusals.count(), millis(span), rough(span));
    let by_cause = refusals.by_cause();
    let (by_listener, by_target) = (refusals.by_listener(), refusals.by_target());
    let head = format!("refused {count} in {span}: ");
    let shown = RefusalText(refusals, SENTENCE - head.len());
    tracing::warn!(
        kind = EventKind::Refused.name(),
        count,
        span_ms,
        by_cause,
        by_listener,
        by_target,
        "{head}{shown}"
    );
}

/// Logs that connections could not be accepted, over all listeners and workers. Called at most once in ten seconds.
pub fn accept_failed(count: u64, error: &io::Error) {
    tracing::warn!(kind = EventKind::AcceptFailed.name(), count, %error, "accept failed, new connections wait: {error} ({count} since the last line)");
}

/// Logs that a listener which a reload has removed has waited long enough for its connections.
pub fn connections_cut(listener: &str, count: u64) {
    let shown = name(listener);
    tracing::warn!(
        kind = EventKind::ConnectionsCut.name(),
        listener,
        count,
        "listener {shown} is gone: {count} of its connections were cut"
    );
}

/// Logs that header lines which a listener was to write, of routes or of what tokens claim, were left out. Called at most once in ten seconds.
pub fn fields_dropped(listener: &str, count: u64) {
    let shown = name(listener);
    tracing::warn!(
        kind = EventKind::FieldsDropped.name(),
        listener,
        count,
        "listener {shown}: {count} header lines of ours were left out, for want of a valid value"
    );
}

/// Logs, for whoever debugs, that a listening socket goes on answering handshakes until it is closed.
pub fn handshakes_not_refused(error: &io::Error) {
    tracing::debug!(%error, "handshakes can't be refused, one may be reset at the close: {error}");
}

/// Logs that a connection which another worker has accepted can't be served.
pub fn handed_over_in_vain(error: &io::Error) {
    tracing::warn!(kind = EventKind::HandoverFailed.name(), %error, "a connection of another worker can't be served: {error}");
}

#[cfg(test)]
mod tests;
