//! What is told to people: every event has one function here and one wording.
//!
//! Who greps for a line in an incident finds the place that writes it. One line per transition, never one per probe or
//! request. The message is a whole sentence; as text it stands alone, and JSON has each of its facts as a field too.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// Characters of a sentence about a transition: with time and level in front of it a line has no more than 160.
const SENTENCE: usize = 125;
/// What is always shown of a reason, however long the names are.
const REASON: usize = 40;

/// A backend changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendChange<'a> {
    /// The target's name.
    pub target: &'a str,
    /// The backend's name inside the target.
    pub backend: &'a str,
    /// The state it left: `unknown`, `up`, `down` or `draining`.
    pub from: &'a str,
    /// The state it is in now.
    pub to: &'a str,
    /// Who decided that: `probe`, `agent`, `name`, `breaker` or `outlier`.
    pub source: &'a str,
    /// What the deciding input said.
    pub reason: &'a str,
    /// How long it was in the state that it left; `None`: it had none.
    pub after: Option<Duration>,
    /// How many backends of the target get requests now.
    pub left: usize,
    /// How many there are.
    pub of: usize,
}

impl BackendChange<'_> {
    fn is_lost(&self) -> bool {
        self.to == "down"
    }
}

impl fmt::Display for BackendChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BackendChange { target, backend, from, to, source, reason, after, left, of } = self;
        let again = match after {
            Some(after) if *to == "up" && *from == "down" => format!(" again after {}", rough(*after)),
            _ => String::new(),
        };
        let how = match (self.is_lost(), *source) {
            (true, "breaker") => ", breaker open",
            (true, "outlier") => ", left out",
            _ => "",
        };
        let head = format!("backend {target}/{backend} is {to}{again}{how}: ");
        let tail = format!(" ({left} of {of} {})", if *to == "up" { "up" } else { "left" });
        let room = SENTENCE.saturating_sub(head.chars().count() + tail.len());
        write!(f, "{head}{}{tail}", clipped(reason, room.max(REASON)))
    }
}

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

/// Logs that no backend of a target gets requests any more.
pub fn target_lost(target: &str, of: usize) {
    let (state, left) = ("down", 0);
    tracing::error!(target, state, left, of, "target {target}: no backend left (0 of {of})");
}

/// Logs that only backups of a target get requests.
pub fn target_on_backups(target: &str, left: usize, of: usize) {
    let state = "backups";
    tracing::warn!(target, state, left, of, "target {target}: on backups ({left} of {of} left)");
}

/// Logs that a target has backends again that are no backups.
pub fn target_back(target: &str, after: Duration, left: usize, of: usize) {
    let (state, after_ms, span) = ("up", millis(after), rough(after));
    tracing::info!(
        target,
        state,
        after_ms,
        left,
        of,
        "target {target}: back after {span} ({left} of {of} up)"
    );
}

/// Logs that a backend could not be probed for want of a local resource; its last verdict stands.
///
/// Called once per stretch of shortage, not once per probe.
pub fn probe_starved(target: &str, backend: &str, reason: &str) {
    tracing::warn!(
        target,
        backend,
        reason,
        "cannot probe backend {target}/{backend}, its verdict stands: {reason}"
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
        "the agent of backend {target}/{backend} has told nothing new, its last words stand: {reason}"
    );
}

/// Logs that a certificate ends soon: it is still shown, and somebody should renew it.
///
/// `owner` is the listener or the target that shows it.
pub fn certificate_expires(owner: &str, file: &Path, days: i64) {
    let file = file.display();
    tracing::warn!(owner, %file, days, "the certificate {file} of {owner} expires in {days} days");
}

/// Logs that a name which had addresses no longer resolves; the last good ones stay in use.
///
/// Called once per stretch of failures, not once per lookup.
pub fn name_lost(host: &str, reason: &str) {
    tracing::warn!(host, reason, "cannot resolve {host}, its last addresses stay in use: {reason}");
}

/// Logs that TLS with a backend failed, and why.
///
/// Called once, and again only when it lasts or comes back: not once per connection.
pub fn upstream_tls_failed(identity: &str, reason: &str) {
    tracing::warn!(backend = identity, reason, "TLS with backend {identity} failed: {reason}");
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
        "target {target}: `upstream_tls.insecure` is true, so its backends are not verified: whoever can redirect \
         their traffic can read and change it"
    );
}

/// Logs that the sticky cookies of this target are made with a key of this process. Called once per start.
pub fn sticky_key_made(target: &str) {
    tracing::warn!(
        target,
        "target {target}: `sticky` has no `key`, so one was made: cookies last until the restart and mean nothing to \
         another node"
    );
}

/// Logs that so few backends of a target are left that those left out as outliers get requests again.
pub fn panic_began(target: &str, percent: u32) {
    tracing::warn!(
        target,
        percent,
        "target {target}: less than {percent}% of its backends are left, so outliers among them get requests again"
    );
}

/// Logs that enough backends are left again.
pub fn panic_ended(target: &str) {
    tracing::info!(
        target,
        "target {target}: enough of its backends are left, outliers among them are left out again"
    );
}

/// Logs that for the first time a backend of a target has as many requests as were found out to be good for it.
pub fn limit_met(target: &str, limit: u32) {
    tracing::info!(
        target,
        limit,
        "target {target}: a backend has as many requests as it may have ({limit}, adaptive); from now on some may wait"
    );
}

/// Logs how many requests and connections were refused for want of room or of a local resource, over all workers.
///
/// Called at most once in ten seconds. `by_cause`: how many for each, as in the access log.
pub fn refused(count: u64, span: Duration, by_cause: &str) {
    let (span_ms, span) = (millis(span), rough(span));
    tracing::warn!(count, span_ms, by_cause, "refused {count} in {span}: {by_cause}");
}

/// Logs that connections could not be accepted, over all listeners and workers. Called at most once in ten seconds.
pub fn accept_failed(count: u64, error: &io::Error) {
    tracing::warn!(count, %error, "accept failed, new connections wait: {error} ({count} since the last line)");
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
                "listening {address} (this machine only; \"*:{port}\" for every address), listener {listener}"
            );
        }
        None => tracing::info!(listener, %address, "listening {address}, listener {listener}"),
    }
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

/// Logs that the time of `shutdown_delay` is over.
pub fn delay_over() {
    tracing::info!("`shutdown_delay` is over: draining; a second signal cuts");
}

/// Logs that a second signal cuts what is left.
pub fn cutting(signal: &str) {
    tracing::warn!(signal, "{signal} again: cutting what is left");
}

/// Logs what a reload has changed, one text for each key that differs; all of them in JSON, some in the sentence.
pub fn reloaded(differing: &[String]) {
    const SHOWN: usize = 3;
    let count = differing.len();
    let shown = differing.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("; ");
    let all = differing.join("\n");
    match count {
        0 => tracing::info!(differing = count, "reloaded: nothing differs"),
        1..=SHOWN => tracing::info!(differing = count, keys = all, "reloaded: {shown}"),
        more => {
            tracing::info!(differing = count, keys = all, "reloaded: {shown}; and {} keys more", more - SHOWN)
        }
    }
}

/// Logs that the kernel can't say of all files of the config when they change, so that they are looked at every so often.
pub fn watch_falls_back(reason: &str, every: Duration) {
    let every = rough(every);
    tracing::warn!(reason, every, "the config's files are looked at every {every}: {reason}");
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

/// Logs the error that ends the process.
pub fn fatal(error: &str) {
    tracing::error!(error, "{error}");
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

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A span as people say it: two figures are enough.
fn rough(span: Duration) -> String {
    let tenths = (millis(span) + 50) / 100;
    let seconds = (millis(span) + 500) / 1000;
    match seconds {
        _ if span < Duration::from_secs(1) => format!("{}ms", millis(span)),
        _ if tenths < 100 && !tenths.is_multiple_of(10) => format!("{}.{}s", tenths / 10, tenths % 10),
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// As much of `text` as there is `room` for.
fn clipped(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests;
