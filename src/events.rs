//! One log line per transition, never one per probe or per request.
//!
//! Each kind of event has one function and one wording, so that whoever greps for a line in an incident
//! finds every place that can write it. Callers are in `probe` today; webhooks will read the same values.

use std::fmt;
use std::path::Path;
use std::time::Duration;

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
    /// What the deciding input said.
    pub reason: &'a str,
    /// It gets no traffic any more: the line is a warning.
    pub lost: bool,
}

impl fmt::Display for BackendChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BackendChange { target, backend, from, to, reason, lost: _ } = self;
        write!(f, "backend {target}/{backend} is {to} (was {from}): {reason}")
    }
}

/// Logs a backend's transition: a warning when it was lost, information otherwise.
pub fn backend_changed(change: &BackendChange<'_>) {
    let BackendChange { target, backend, from, to, reason, lost } = change;
    if *lost {
        tracing::warn!(target, backend, from, to, reason, "{change}");
    } else {
        tracing::info!(target, backend, from, to, reason, "{change}");
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

/// Logs that a backend's circuit breaker opened: `failures` attempts failed one after the other.
pub fn breaker_opened(identity: &str, failures: u32, open: Duration) {
    let span = humantime::format_duration(open);
    tracing::warn!(
        backend = identity,
        failures,
        "backend {identity}: its breaker is open for {span}: {failures} attempts in a row failed"
    );
}

/// Logs that a backend's circuit breaker closed: its trial went well.
pub fn breaker_closed(identity: &str) {
    tracing::info!(backend = identity, "backend {identity}: its breaker is closed: its trial went well");
}

/// Logs that a backend is left out because it does worse than its siblings.
pub fn backend_ejected(identity: &str, reason: &str) {
    tracing::warn!(backend = identity, reason, "backend {identity} is left out: {reason}");
}

/// Logs that a backend that was left out for being slow gets requests again, so that `failing` can be left out instead.
pub fn backend_pardoned(identity: &str, failing: &str) {
    tracing::info!(
        backend = identity,
        failing,
        "backend {identity} is back: it is only slow, and {failing} fails; not both may be left out"
    );
}

/// Logs that a backend that was left out gets requests again: its trial went well.
pub fn backend_returned(identity: &str) {
    tracing::info!(backend = identity, "backend {identity} is back: its trial went well");
}

/// Logs that so few backends of a target are left that those left out as outliers get requests again.
pub fn panic_began(target: &str, percent: u32) {
    tracing::warn!(
        target,
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

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: BackendChange<'_> = BackendChange {
        target: "web",
        backend: "10.0.0.7:80",
        from: "up",
        to: "down",
        reason: "connection refused",
        lost: true,
    };

    #[test]
    fn a_line_names_the_backend_both_states_and_the_reason() {
        assert_eq!(LOST.to_string(), "backend web/10.0.0.7:80 is down (was up): connection refused");
    }

    #[test]
    #[allow(clippy::unwrap_used, reason = "a test")]
    fn losing_a_backend_is_a_warning_and_gaining_one_is_not() {
        use std::io::Write;
        use std::sync::{Arc, Mutex};

        #[derive(Clone, Default)]
        struct Lines(Arc<Mutex<Vec<u8>>>);
        impl Write for Lines {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.lock().unwrap().write(bytes)
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }

        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            backend_changed(&LOST);
            backend_changed(&BackendChange {
                from: "down",
                to: "up",
                reason: "2 good probes",
                lost: false,
                ..LOST
            });
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let [lost, gained]: [&str; 2] = text.lines().collect::<Vec<_>>().try_into().unwrap();
        assert!(lost.contains("WARN") && lost.contains("is down (was up): connection refused"), "{lost}");
        assert!(gained.contains("INFO") && gained.contains("is up (was down): 2 good probes"), "{gained}");
    }
}
