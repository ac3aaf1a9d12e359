//! What is told of names whose addresses are backends.

use std::path::Path;

use super::kind::EventKind;
use super::wording::{listed, name, sentence};
use crate::config::model::discovery::DnsQuestion;

/// Logs which backends have come and gone because of what DNS says, one text for each.
pub fn backends_found(differing: &[String]) {
    let (count, all) = (differing.len(), differing.join("\n"));
    tracing::info!(
        kind = EventKind::BackendsFound.name(),
        differing = count,
        keys = all,
        "DNS: {}",
        listed(differing)
    );
}

/// Logs that there is no good answer about a name, of which `addresses` are known that stay. Called once for each reason in a row.
pub fn name_not_found(question: &DnsQuestion, reason: &str, addresses: usize) {
    let end = match addresses {
        0 => ", it has no backends yet".to_owned(),
        1 => ", its last address stays".to_owned(),
        many => format!(", its last {many} addresses stay"),
    };
    tracing::warn!(
        kind = EventKind::NameNotFound.name(),
        name = &*question.name,
        reason,
        addresses,
        "{}",
        sentence("DNS gives no address of ", &[&question.name], ": ", reason, &end)
    );
}

/// Logs that there is a good answer again.
pub fn name_found_again(question: &DnsQuestion, addresses: usize) {
    let shown = name(&question.name);
    tracing::info!(
        kind = EventKind::NameFound.name(),
        name = &*question.name,
        addresses,
        "DNS answers again about {shown}: {addresses} addresses are known"
    );
}

/// Logs that a name has more addresses than it may, of which `beyond` are left out. Called once until there is room for all.
pub fn name_has_too_many(question: &DnsQuestion, beyond: usize, most: usize) {
    let shown = name(&question.name);
    tracing::warn!(
        kind = EventKind::NameTooLong.name(),
        name = &*question.name,
        beyond,
        most,
        "{shown} has {beyond} addresses more than `resolver.addresses` ({most}): they are no backends"
    );
}

/// Logs that the system names others who are to be asked.
pub fn resolvers_changed(file: &Path) {
    let file = file.display().to_string();
    let shown = name(&file);
    tracing::info!(
        kind = EventKind::ResolversChanged.name(),
        file,
        "{shown} has changed: all names are asked for again"
    );
}

/// Logs that the backends which DNS names can't be put into force now. They are tried again.
pub fn found_refused(reason: &str) {
    tracing::error!(
        kind = EventKind::FoundRefused.name(),
        reason,
        "{}",
        sentence("what DNS says can't be put into force: ", &[], "", reason, "")
    );
}

/// Logs that an address of a name is no backend.
pub fn address_left_out(target: &str, backend: &str, reason: &str) {
    tracing::warn!(
        kind = EventKind::AddressLeftOut.name(),
        target,
        backend,
        reason,
        "{}",
        sentence("", &[target, backend], " is no backend: ", reason, "")
    );
}
