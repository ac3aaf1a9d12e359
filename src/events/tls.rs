//! What is told of TLS: with clients, with backends, and of certificates.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use super::kind::EventKind;
use super::wording::{name, rough, sentence, shortened};

/// Logs that a certificate ends soon: it is still shown, and somebody should renew it.
///
/// `owner` is the listener or the target that shows it; it `ends` so many seconds after 1970; `warning` is 1 at a fifth of its life, 2 at a twentieth.
pub fn certificate_expires(owner: &str, file: &Path, days: i64, ends: i64, warning: u8) {
    let file = file.display().to_string();
    let middle = format!(" expires in {days} days: ");
    tracing::warn!(
        kind = EventKind::CertificateExpires.name(),
        owner,
        file,
        days,
        ends,
        warning,
        "{}",
        sentence("the certificate of ", &[owner], &middle, &file, "")
    );
}

/// Logs that an authority has issued a certificate that was ordered, and for how long.
pub fn certificate_issued(names: &str, file: &Path, left: Duration) {
    const DAY: u64 = 24 * 3_600;
    let days = left.as_secs() / DAY;
    let span = if days > 1 { format!("{days} days") } else { rough(left) };
    let end = format!(" was issued, for {span}");
    tracing::info!(
        kind = EventKind::CertificateIssued.name(),
        names,
        file = file.display().to_string(),
        days,
        "{}",
        sentence("the certificate for ", &[names], "", "", &end)
    );
}

/// Logs that another node has had a certificate issued, which is shown here too.
pub fn certificate_taken(names: &str, node: &str, file: &Path) {
    let end = format!(" was issued to the node {}", name(node));
    tracing::info!(
        kind = EventKind::CertificateIssued.name(),
        names,
        file = file.display().to_string(),
        node,
        "{}",
        sentence("the certificate for ", &[names], "", "", &end)
    );
}

/// Logs that nodes have not said in time that they answer an authority, which is told to look all the same.
pub fn proof_unseen(names: &str, nodes: &str) {
    tracing::warn!(
        kind = EventKind::ProofUnseen.name(),
        names,
        nodes,
        "{}",
        sentence("the proof for ", &[names], " may not be given by these nodes: ", nodes, "")
    );
}

/// Logs that it has not, why, and after what time it is asked again. `is_shown`: one that was issued before is shown meanwhile.
pub fn certificate_not_issued(names: &str, reason: &str, again: Duration, is_shown: bool) {
    let end = format!("; again in {}", rough(again));
    tracing::warn!(
        kind = EventKind::CertificateNotIssued.name(),
        names,
        reason,
        again_seconds = again.as_secs(),
        is_shown,
        "{}",
        sentence("no certificate for ", &[names], ": ", reason, &end)
    );
}

/// Logs that a certificate was never issued yet, so that clients see one which signs itself.
pub fn certificate_missing(names: &str) {
    tracing::warn!(
        kind = EventKind::CertificateMissing.name(),
        names,
        "{}",
        sentence("no certificate for ", &[names], " was issued yet", "", "; one is shown that signs itself")
    );
}

/// Logs that a certificate should have been renewed by now. `owner`: the listener that shows it.
pub fn renewal_overdue(owner: &str, file: &Path, days: i64, ends: i64) {
    let file = file.display().to_string();
    let end = format!(" is overdue for renewal, {days} days are left");
    tracing::warn!(
        kind = EventKind::RenewalOverdue.name(),
        owner,
        file,
        days,
        ends,
        "{}",
        sentence("the certificate of ", &[owner], ", ", &file, &end)
    );
}

/// Logs that certificates can't be ordered, since nothing can be kept. Called once.
pub fn orders_unkept(reason: &str) {
    tracing::error!(
        kind = EventKind::OrdersUnkept.name(),
        reason,
        "{}",
        sentence("certificates are not ordered: ", &[], "", reason, "")
    );
}

/// Logs that a list of revoked client certificates should have been renewed by its issuer. `owner`: the listener that asks it.
pub fn revocation_list_overdue(owner: &str, file: &Path, issuer: &str, is_kept: bool) {
    let file = file.display().to_string();
    let so = if is_kept { "it still holds" } else { "nobody of its issuer gets in" };
    let end = format!(" is overdue: {so}");
    tracing::warn!(
        kind = EventKind::RevocationListOverdue.name(),
        owner,
        file,
        issuer,
        is_kept,
        "{}",
        sentence("the revocation list of ", &[owner], ", ", &file, &end)
    );
}

/// Characters of the place of keys in a sentence: a scheme, a host and a port.
const PLACE: usize = 28;

/// Logs that keys of tokens were fetched for a rule of `auth`: for the first time, again after a failure, or others than before.
pub fn keys_fetched(rule: &str, from: &str, keys: usize) {
    let end = format!(": {keys} of use");
    tracing::info!(
        kind = EventKind::KeysFetched.name(),
        rule,
        from,
        keys,
        "{}",
        sentence("the keys of auth rule ", &[rule], " were fetched from ", from, &end)
    );
}

/// Logs that they can't be fetched, and why. `has_old`: those that were fetched before count on. Called again only for another reason.
pub fn keys_not_fetched(rule: &str, from: &str, reason: &str, has_old: bool) {
    tracing::warn!(
        kind = EventKind::KeysNotFetched.name(),
        rule,
        from,
        reason,
        "{}",
        not_fetched(rule, from, reason, has_old)
    );
}

fn not_fetched(rule: &str, from: &str, reason: &str, has_old: bool) -> String {
    let rest = if has_old { "; the old ones count" } else { "; nobody gets in" };
    let middle = format!(" from {}: ", shortened(from, PLACE));
    sentence("cannot fetch the keys of ", &[rule], &middle, reason, rest)
}

/// Logs that TLS with a backend failed, and why.
///
/// Called once, and again only when it lasts or comes back: not once per connection.
pub fn upstream_tls_failed(identity: &str, reason: &str) {
    tracing::warn!(
        kind = EventKind::UpstreamTlsFailed.name(),
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

/// Logs that whoever answers is taken for a backend of this target. Called once per accepted config.
pub fn upstream_unverified(target: &str) {
    tracing::warn!(
        kind = EventKind::UpstreamUnverified.name(),
        target,
        "target {}: `upstream_tls.insecure`: whoever redirects its traffic can read and change it",
        name(target)
    );
}

/// Logs that no TLS session can be made for a client: a bug, since the config was judged before.
pub fn no_tls_session(listener: &str, error: &dyn fmt::Display) {
    tracing::error!(kind = EventKind::NoTlsSession.name(), listener, %error, "listener {listener}: no TLS session can be made: {error}");
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

/// Logs, for whoever debugs, that a connection was closed on which a balancer is to tell whose it is.
pub fn proxy_header_refused(listener: &str, sender: Option<IpAddr>, cause: &str, why: &str) {
    let sender = sender.map_or_else(|| "a unix socket".to_owned(), |ip| ip.to_string());
    tracing::debug!(
        listener,
        sender,
        cause,
        why,
        "PROXY header of {sender} to listener {listener} was not taken: {cause}: {why}"
    );
}

/// Logs that one of the system's trusted certificates is not usable.
pub fn authority_unreadable(error: &dyn fmt::Display) {
    tracing::warn!(kind = EventKind::AuthorityUnreadable.name(), %error, "some of the trusted certificates can't be read: {error}");
}

/// Logs that the variables that name trusted certificates lead to none.
pub fn no_authorities(variables: &str) {
    tracing::warn!(
        kind = EventKind::NoAuthorities.name(),
        variables,
        "{variables} give no certificate: no backend can be verified"
    );
}

/// Logs that a list of our own is trusted where the system has none.
pub fn own_authorities() {
    tracing::warn!(
        kind = EventKind::OwnAuthorities.name(),
        "this system has no trusted certificates; Mozilla's list is used instead"
    );
}
