//! What is told to people: every event has one function here and one wording.
//!
//! Who greps for a line in an incident finds the place that writes it. One line per transition, never one per probe or
//! request. The message is a whole sentence; as text it stands alone, and JSON has each of its facts as a field too.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// Fields whose values are objects, as JSON.
pub const OBJECTS: [&str; 3] = ["by_cause", "by_listener", "by_target"];

mod change;
mod overlay;
mod refusals;
mod wording;

pub use change::{BackendChange, TargetChange};
pub use overlay::{
    overlay_aside, overlay_behind, overlay_changed, overlay_cut, overlay_ended, overlay_laid, overlay_over,
    overlay_unkept,
};
pub use refusals::{RefusalPlace, Refusals};

use refusals::RefusalText;
use wording::{SENTENCE, millis, name, rough, sentence};

/// Logs a backend's transition: a warning when it was lost, information otherwise.
pub fn backend_changed(change: &BackendChange<'_>) {
    let BackendChange { target, backend, from, to, source, reason, after, left, of } = change;
    let after_ms = after.map(millis);
    if change.is_lost() {
        tracing::warn!(target, backend, from, to, source, reason, after_ms, left, of, "{change}");
    } else {
        tracing::info!(target, backend, from, to, source, reason, after_ms, left, of, "{change}");
    }
}

/// Logs a target's transition: an error when it has nobody left, a warning when it has backups only, information otherwise.
pub fn target_changed(change: &TargetChange<'_>) {
    let TargetChange { target, from, state, after, left, of } = change;
    let after_ms = after.map(millis);
    match *state {
        "down" => tracing::error!(target, from, state, after_ms, left, of, "{change}"),
        "backups" => tracing::warn!(target, from, state, after_ms, left, of, "{change}"),
        _ => tracing::info!(target, from, state, after_ms, left, of, "{change}"),
    }
}

/// Logs that a backend could not be probed for want of a local resource; its last verdict stands.
///
/// Called once per stretch of shortage, not once per probe.
pub fn probe_starved(target: &str, backend: &str, reason: &str) {
    tracing::warn!(
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

/// Logs that a certificate ends soon: it is still shown, and somebody should renew it.
///
/// `owner` is the listener or the target that shows it.
pub fn certificate_expires(owner: &str, file: &Path, days: i64) {
    let file = file.display().to_string();
    let middle = format!(" expires in {days} days: ");
    tracing::warn!(owner, file, days, "{}", sentence("the certificate of ", &[owner], &middle, &file, ""));
}

/// Logs that a name which had addresses no longer resolves; the last good ones stay in use.
///
/// Called once per stretch of failures, not once per lookup.
pub fn name_lost(host: &str, reason: &str) {
    tracing::warn!(
        host,
        reason,
        "{}",
        sentence("cannot resolve ", &[host], ", its last addresses stay in use: ", reason, "")
    );
}

/// Logs that TLS with a backend failed, and why.
///
/// Called once, and again only when it lasts or comes back: not once per connection.
pub fn upstream_tls_failed(identity: &str, reason: &str) {
    tracing::warn!(
        backend = identity,
        reason,
        "{}",
        sentence("TLS with backend ", &[identity], " failed: ", reason, "")
    );
}

/// The same of each further connection, for whoever debugs.
pub fn upstream_tls_failed_again(identity: &str, reason: &str) {
    tracing::debug!(backend = identity, reason, "TLS with backend {identity} failed again: {reason}");
}

/// Logs, for whoever debugs, that a connection to a backend could not be opened.
pub fn connect_failed(identity: &str, endpoint: &dyn fmt::Display, error: &io::Error) {
    tracing::debug!(backend = identity, %endpoint, %error, "connect failed: backend {identity} at {endpoint}: {error}");
}

/// Logs that whoever answers is taken for a backend of this target. Called once per accepted config.
pub fn upstream_unverified(target: &str) {
    tracing::warn!(
        target,
        "target {}: `upstream_tls.insecure`: whoever redirects its traffic can read and change it",
        name(target)
    );
}

/// Logs that the sticky cookies of this target are made with a key of this process. Called once per start.
pub fn sticky_key_made(target: &str) {
    tracing::warn!(
        target,
        "target {}: `sticky` has no `key`: cookies last until the restart, and on this node only",
        name(target)
    );
}

/// Logs that so few backends of a target are left, `left` of `of`, that those left out as outliers get requests again.
pub fn panic_began(target: &str, percent: u32, left: usize, of: usize) {
    let panic = true;
    tracing::warn!(
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
        target,
        limit,
        "target {}: a backend has as many requests as it may have ({limit}, adaptive); some may wait now",
        name(target)
    );
}

/// Logs that one of a target's new backends may be picked, so that those before get no more requests.
pub fn successors_up(target: &str, before: usize) {
    tracing::info!(
        target,
        before,
        "target {target}: its new backends have taken over from the {before} before them"
    );
}

/// Logs that none of a target's new backends may be picked, and those before get no more requests all the same.
pub fn successors_late(target: &str, before: usize, patience: Duration) {
    let (patience_ms, patience) = (millis(patience), rough(patience));
    tracing::warn!(
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
    tracing::warn!(count, span_ms, by_cause, by_listener, by_target, "{head}{shown}");
}

/// Logs that connections could not be accepted, over all listeners and workers. Called at most once in ten seconds.
pub fn accept_failed(count: u64, error: &io::Error) {
    tracing::warn!(count, %error, "accept failed, new connections wait: {error} ({count} since the last line)");
}

/// Logs that a listener which a reload has removed has waited long enough for its connections.
pub fn connections_cut(listener: &str, count: u64) {
    let shown = name(listener);
    tracing::warn!(listener, count, "listener {shown} is gone: {count} of its connections were cut");
}

/// Logs what the process may open. One with little is warned of: a crowd will be refused. `is_chosen`: the config says so.
pub fn descriptor_budget(descriptors: u64, max_connections: usize, workers: usize, is_chosen: bool) {
    const FEW: usize = 500;
    let why = if is_chosen { "`max_connections`" } else { "`ulimit -n`, `LimitNOFILE=`" };
    if max_connections < FEW {
        tracing::warn!(
            descriptors,
            max_connections,
            workers,
            "room for {max_connections} connections only ({why}): descriptors {descriptors}, workers {workers}"
        );
    } else {
        tracing::info!(
            descriptors,
            max_connections,
            workers,
            "room for {max_connections} connections: descriptors {descriptors}, workers {workers}"
        );
    }
}

/// Logs that more connections may come than there are descriptors for.
pub fn descriptors_short(affordable: usize) {
    tracing::warn!(affordable, "`max_connections` is more than the descriptors are enough for: {affordable}");
}

/// Logs that the system shortens the queues of listening sockets.
pub fn backlog_capped(most: i32, wanted: i32) {
    tracing::warn!(
        most,
        wanted,
        "net.core.somaxconn caps the backlog of listeners at {most}; {wanted} is better"
    );
}

/// Logs an address that is bound, and says of one that only this machine reaches what to write instead: that surprises people.
pub fn listening(listener: &str, address: &dyn fmt::Display, socket: Option<SocketAddr>) {
    match socket.filter(|socket| socket.ip().is_loopback()) {
        Some(socket) => {
            let (port, this_machine_only) = (socket.port(), true);
            tracing::info!(
                listener,
                %address,
                this_machine_only,
                "listening {address} (this machine only; \"*:{port}\" for every address), listener {}",
                name(listener)
            );
        }
        None => tracing::info!(listener, %address, "listening {address}, listener {}", name(listener)),
    }
}

/// Logs where the process can be asked and told things while it serves.
pub fn admin_socket(path: &Path, name: &str) {
    let socket = path.display();
    tracing::info!(%socket, name, "admin socket {socket}");
}

/// Logs that the process can't be asked or told anything, and why.
pub fn no_admin_socket(reason: &str) {
    tracing::warn!(reason, "no admin socket for `evenkeel plan`: {reason}");
}

/// Logs where it can be asked and told things over TCP, and by whom.
pub fn admin_listener(address: SocketAddr, has_tokens: bool) {
    let who = if has_tokens { "with a token" } else { "read-only, no tokens" };
    tracing::info!(%address, has_tokens, "admin listener {address} ({who})");
}

/// Logs that nobody is answered over TCP, and why.
pub fn no_admin_listener(reason: &str) {
    tracing::warn!(reason, "no admin listener: {reason}");
}

/// Logs the end of a process that cut nothing, or so many `connections`.
pub fn stopped(connections: u64) {
    if connections == 0 {
        tracing::info!(connections, "stopped; everything was finished");
    } else {
        tracing::warn!(connections, "stopped; connections were cut: {connections}");
    }
}

/// Logs that a signal was taken, and what it leads to.
pub fn draining(signal: &str, delay: Duration) {
    if delay.is_zero() {
        tracing::info!(signal, "{signal}: draining; a second signal cuts");
    } else {
        let (delay_ms, delay) = (millis(delay), rough(delay));
        tracing::info!(
            signal,
            delay_ms,
            "{signal}: serving on for {delay} (`shutdown_delay`); a second signal drains at once"
        );
    }
}

/// Logs that the demo ends because nobody is there any more who could end it.
pub fn nobody_reads() {
    tracing::info!("standard output was closed: draining; a signal cuts");
}

/// Logs that the time of `shutdown_delay` is over.
pub fn delay_over() {
    tracing::info!("`shutdown_delay` is over: draining; a second signal cuts");
}

/// Logs that a second signal cuts what is left.
pub fn cutting(signal: &str) {
    tracing::warn!(signal, "{signal} again: cutting what is left");
}

/// Logs what a reload has changed, one text for each thing; all of them in JSON, some in the sentence.
pub fn reloaded(differing: &[String]) {
    const SHOWN: usize = 3;
    let count = differing.len();
    let shown = differing.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("; ");
    let all = differing.join("\n");
    match count {
        0 => tracing::info!(differing = count, "reloaded: nothing differs"),
        1..=SHOWN => tracing::info!(differing = count, keys = all, "reloaded: {shown}"),
        more => {
            tracing::info!(differing = count, keys = all, "reloaded: {shown}; and {} more", more - SHOWN)
        }
    }
}

/// Logs that the kernel can't say of all files of the config when they change, so that they are looked at every so often.
pub fn watch_falls_back(reason: &str, every: Duration) {
    let every = rough(every);
    tracing::warn!(reason, every, "the config's files are looked at every {every}: {reason}");
}

/// Logs, for whoever debugs, that all workers have gone over to the config of this number. `alive`: configs that are still
/// held, which is 1 once the one before is gone; `longest_turn`: what going over has cost one worker on a processor.
pub fn snapshot_swapped(number: u64, alive: usize, listeners: usize, longest_turn: Duration) {
    let longest_turn_us = u64::try_from(longest_turn.as_micros()).unwrap_or(u64::MAX);
    tracing::debug!(
        number,
        alive,
        listeners,
        longest_turn_us,
        "config {number} is in force, {alive} alive; workers took over {listeners} listeners in {longest_turn_us} µs at most"
    );
}

/// Logs what `check` would warn of in a config that has just been put into force.
pub fn reload_warning(warning: &str) {
    tracing::warn!(warning, "{warning}");
}

/// Logs that another config was not taken, and nothing has changed. `more`: problems beside the one that is told.
pub fn reload_refused(reason: &str, more: usize) {
    if more == 0 {
        tracing::error!(reason, "reload refused, nothing has changed: {reason}");
    } else {
        let check = "`evenkeel check` shows all";
        tracing::error!(
            reason,
            more,
            "reload refused, nothing has changed: {reason} (and {more} more; {check})"
        );
    }
}

/// Logs that there is no file to reopen.
pub fn no_log_file() {
    tracing::info!("SIGUSR1: there is no access log file to reopen");
}

/// Logs that something of the access log failed: `what` with its consequence.
pub fn access_log_failed(what: &str, error: &io::Error) {
    tracing::error!(what, %error, "access log: {what}: {error}");
}

/// Logs that the access log can be written again.
pub fn access_log_works() {
    tracing::warn!("access log: writing works again");
}

/// Logs that the access log goes on in a new file.
pub fn access_log_reopened() {
    tracing::info!("access log: reopened");
}

/// Logs how many records never reached the destination of the access log.
pub fn records_dropped(dropped: u64) {
    tracing::warn!(
        dropped,
        "access log: {dropped} records were dropped, the destination fails or does not keep up"
    );
}

/// Logs how many events never reached standard error.
pub fn events_lost(lost: u64) {
    tracing::warn!(lost, "{lost} events were lost: standard error did not take them");
}

/// What a start that failed was about; `None`: it has no such thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartFault<'a> {
    /// Where the config says what can't be done: `evenkeel.yaml:4`.
    pub place: Option<&'a str>,
    /// The listener.
    pub listener: Option<&'a str>,
    /// The address that can't be bound.
    pub address: Option<&'a str>,
    /// The process that has it.
    pub held_by: Option<&'a str>,
    /// What the system's words mean here.
    pub why: Option<&'a str>,
    /// What to do about it.
    pub hint: Option<&'a str>,
    /// What the system said.
    pub error: &'a str,
}

/// Logs the error that ends the process, with what is known of it.
pub fn fatal(said: &str, fault: &StartFault<'_>) {
    let StartFault { place, listener, address, held_by, why, hint, error } = fault;
    tracing::error!(place, listener, address, held_by, why, hint, error, "{said}");
}

/// Logs a panic, with its place.
pub fn task_panicked(panic: &dyn fmt::Display) {
    tracing::error!(%panic, "a task panicked: {panic}");
}

/// Logs that what lasts was begun again.
pub fn begun_again(what: &dyn fmt::Display) {
    tracing::error!(%what, "{what}: begun again after a panic");
}

/// Logs, for whoever debugs, that a listening socket goes on answering handshakes until it is closed.
pub fn handshakes_not_refused(error: &io::Error) {
    tracing::debug!(%error, "handshakes can't be refused, one may be reset at the close: {error}");
}

/// Logs that a connection which another worker has accepted can't be served.
pub fn handed_over_in_vain(error: &io::Error) {
    tracing::warn!(%error, "a connection of another worker can't be served: {error}");
}

/// Logs that no TLS session can be made for a client: a bug, since the config was judged before.
pub fn no_tls_session(listener: &str, error: &dyn fmt::Display) {
    tracing::error!(listener, %error, "listener {listener}: no TLS session can be made: {error}");
}

/// Logs, for whoever debugs, that the TLS handshake of a client failed.
pub fn handshake_failed(listener: &str, client: Option<IpAddr>, cause: &str, error: &str) {
    let client = client.map_or_else(|| "a unix socket".to_owned(), |ip| ip.to_string());
    tracing::debug!(
        listener,
        client,
        cause,
        error,
        "TLS handshake of {client} with listener {listener} failed: {cause}: {error}"
    );
}

/// Logs that one of the system's trusted certificates is not usable.
pub fn authority_unreadable(error: &dyn fmt::Display) {
    tracing::warn!(%error, "some of the trusted certificates can't be read: {error}");
}

/// Logs that the variables that name trusted certificates lead to none.
pub fn no_authorities(variables: &str) {
    tracing::warn!(variables, "{variables} give no certificate: no backend can be verified");
}

/// Logs that a list of our own is trusted where the system has none.
pub fn own_authorities() {
    tracing::warn!("this system has no trusted certificates; Mozilla's list is used instead");
}

#[cfg(test)]
mod tests;
