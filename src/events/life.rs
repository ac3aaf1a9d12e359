//! What is told of the process: what it may open, where it listens, how it ends.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::kind::EventKind;
use super::wording::{millis, name, rough, sentence};

/// Logs what the process may open. One with little is warned of: a crowd will be refused. `is_chosen`: the config says so.
pub fn descriptor_budget(descriptors: u64, max_connections: usize, workers: usize, is_chosen: bool) {
    const FEW: usize = 500;
    let why = if is_chosen { "`max_connections`" } else { "`ulimit -n`, `LimitNOFILE=`" };
    if max_connections < FEW {
        tracing::warn!(
            kind = EventKind::ConnectionBudget.name(),
            descriptors,
            max_connections,
            workers,
            "room for {max_connections} connections only ({why}): descriptors {descriptors}, workers {workers}"
        );
    } else {
        tracing::info!(
            kind = EventKind::ConnectionBudget.name(),
            descriptors,
            max_connections,
            workers,
            "room for {max_connections} connections: descriptors {descriptors}, workers {workers}"
        );
    }
}

/// Logs that more connections may come than there are descriptors for.
pub fn descriptors_short(affordable: usize) {
    tracing::warn!(
        kind = EventKind::DescriptorsShort.name(),
        affordable,
        "`max_connections` is more than the descriptors are enough for: {affordable}"
    );
}

/// Logs that the system shortens the queues of listening sockets.
pub fn backlog_capped(most: i32, wanted: i32) {
    tracing::warn!(
        kind = EventKind::BacklogCapped.name(),
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
                kind = EventKind::Listening.name(),
                listener,
                %address,
                this_machine_only,
                "listening {address} (this machine only; \"*:{port}\" for every address), listener {}",
                name(listener)
            );
        }
        None => {
            tracing::info!(kind = EventKind::Listening.name(), listener, %address, "listening {address}, listener {}", name(listener))
        }
    }
}

/// Logs that a signal was taken, and what it leads to.
pub fn draining(signal: &str, delay: Duration) {
    if delay.is_zero() {
        tracing::info!(kind = EventKind::Draining.name(), signal, "{signal}: draining; a second signal cuts");
    } else {
        let (delay_ms, delay) = (millis(delay), rough(delay));
        tracing::info!(
            kind = EventKind::Draining.name(),
            signal,
            delay_ms,
            "{signal}: serving on for {delay} (`shutdown_delay`); a second signal drains at once"
        );
    }
}

/// Logs that `binary` is to take the place of this process.
pub fn upgrade_begun(binary: &Path) {
    let binary = binary.display();
    tracing::info!(kind = EventKind::Upgrading.name(), %binary, "upgrading to {binary}");
}

/// Logs that there is no upgrade.
pub fn upgrade_failed(reason: &str) {
    let text = sentence("no upgrade, nothing has changed: ", &[], "", reason, "");
    tracing::error!(kind = EventKind::Upgrading.name(), reason, "{text}");
}

/// Logs that another process is in the place of this one.
pub fn upgraded(version: &str, process: u32) {
    tracing::info!(
        kind = EventKind::Upgraded.name(),
        version,
        process,
        "upgraded: process {process} (evenkeel {version}) serves; draining"
    );
}

/// Logs that this process is in the place of another one, of this version. `is_gone`: that one has ended already.
pub fn succeeded(version: &str, process: u32, generation: u32, is_gone: bool) {
    let ended = if is_gone { "has ended" } else { "drains" };
    tracing::info!(
        kind = EventKind::Upgraded.name(),
        version,
        process,
        generation,
        is_gone,
        "in the place of process {process} (evenkeel {version}), which {ended}: generation {generation}"
    );
}

/// Logs that a process of an earlier upgrade is told to cut what it has.
pub fn elder_cut(process: u32) {
    tracing::warn!(
        kind = EventKind::Cutting.name(),
        process,
        "too many processes drain: process {process} is to cut what it has"
    );
}

/// Logs that whoever supervises the process could not be told something.
pub fn supervisor_not_told(error: &io::Error) {
    tracing::warn!(kind = EventKind::SupervisorNotTold.name(), %error, "the supervisor (`NOTIFY_SOCKET`) can't be told: {error}");
}

/// Logs that a worker does nothing any more, so that the watchdog is not fed.
pub fn worker_stuck(worker: usize) {
    tracing::error!(
        kind = EventKind::WorkerStuck.name(),
        worker,
        "worker {worker} does nothing any more: the watchdog is not fed"
    );
}

/// Logs that a socket which the supervisor has bound is no listener's.
pub fn socket_unused(address: &dyn fmt::Display) {
    tracing::warn!(kind = EventKind::SocketUnused.name(), %address, "the supervisor has bound {address}, which no listener has: whoever connects there waits in vain");
}

/// Logs that this process is told to.
pub fn cut_for_upgrade() {
    tracing::warn!(kind = EventKind::Cutting.name(), "another upgrade wants room: cutting what is left");
}

/// Logs that the demo ends because nobody is there any more who could end it.
pub fn nobody_reads() {
    tracing::info!(kind = EventKind::Draining.name(), "standard output was closed: draining; a signal cuts");
}

/// Logs that the time of `shutdown_delay` is over.
pub fn delay_over() {
    tracing::info!(
        kind = EventKind::Draining.name(),
        "`shutdown_delay` is over: draining; a second signal cuts"
    );
}

/// Logs that a second signal cuts what is left.
pub fn cutting(signal: &str) {
    tracing::warn!(kind = EventKind::Cutting.name(), signal, "{signal} again: cutting what is left");
}

/// Logs the end of a process that cut nothing, or so many `connections`.
pub fn stopped(connections: u64) {
    if connections == 0 {
        tracing::info!(kind = EventKind::Stopped.name(), connections, "stopped; everything was finished");
    } else {
        tracing::warn!(
            kind = EventKind::Stopped.name(),
            connections,
            "stopped; connections were cut: {connections}"
        );
    }
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
    tracing::error!(
        kind = EventKind::Fatal.name(),
        place,
        listener,
        address,
        held_by,
        why,
        hint,
        error,
        "{said}"
    );
}

/// Logs a panic, with its place.
pub fn task_panicked(panic: &dyn fmt::Display) {
    tracing::error!(kind = EventKind::TaskPanicked.name(), %panic, "a task panicked: {panic}");
}

/// Logs that what lasts was begun again.
pub fn begun_again(what: &dyn fmt::Display) {
    tracing::error!(kind = EventKind::BegunAgain.name(), %what, "{what}: begun again after a panic");
}
