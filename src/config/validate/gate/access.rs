//! Access lists: files read, names followed.

use std::sync::Arc;

use ipnet::IpNet;

use super::named::NamedRules;
use super::network_file::{self, FileOfNetworks};
use crate::config::effective::EffectiveRows;
use crate::config::model::AccessList;
use crate::config::origin::{Field, Origin, Written};
use crate::config::raw::{ACCESS_LISTS, Raw, RawAccess, RawAccessList, RawNamed, RawTarget};
use crate::config::report::Report;

/// The lists at the top level.
pub(in crate::config::validate) type AccessLists<'r> = NamedRules<'r, Arc<AccessList>>;

const BLACKLISTED: &str = "blacklisted_ips";
/// The name of what is blocked while the process runs.
const BLOCKED: &str = "blocked";

/// Makes those at the top level.
pub(in crate::config::validate) fn lists<'r>(
    raw: &'r [RawNamed<RawAccessList>],
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> AccessLists<'r> {
    NamedRules::accept(ACCESS_LISTS, raw, |name, raw| {
        if name.value == BLOCKED {
            let message = "the name `blocked` is taken: it is what `evenkeel block` adds to";
            report
                .spot(&name.spot, message)
                .note("give this list another name; `blocked` is asked first everywhere");
            return None;
        }
        let list = list(Some(&name.value), raw, report)?;
        note(&format!("{}.{}", ACCESS_LISTS.key, name.value), raw, &list, rows);
        Some(Arc::new(list.list))
    })
}

/// GoLoadBalance's `blacklisted_ips`, for the listeners of targets.
pub(in crate::config::validate) fn blacklisted(
    raw: &Raw,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<Arc<AccessList>> {
    let Field::Given(written) = &raw.blacklisted else { return None };
    let shown: Vec<String> = written.value.iter().map(ToString::to_string).collect();
    rows.note(BLACKLISTED, format!("[{}]", shown.join(", ")), written.spot.origin.clone());
    let has_listener = |target: &RawTarget| !matches!(target.listener, Field::Absent) || !target.may_be_pool;
    if !raw.targets.iter().any(has_listener) {
        report
            .spot(&written.spot, "`blacklisted_ips` has no effect: no target has a `listener` of its own")
            .expected("`access: {deny: […], status: 401}` in `listeners.<name>`");
    }
    (!written.value.is_empty()).then(|| {
        Arc::new(AccessList {
            name: Some(BLACKLISTED.to_owned()),
            allow: Vec::new(),
            deny: written.value.clone(),
            is_closed: false,
            status: Some(401),
        })
    })
}

/// What `access` at `path` says; `None`: there is a fault, which has been reported.
pub(in crate::config::validate) fn accept(
    raw: &Field<Vec<RawAccess>>,
    path: &str,
    lists: &AccessLists<'_>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<Vec<Arc<AccessList>>> {
    let written = match raw {
        Field::Given(written) => written,
        Field::Absent => return Some(Vec::new()),
        Field::Faulty => return None,
    };
    let count = written.value.len();
    let mut accepted = Vec::with_capacity(count);
    for (index, one) in written.value.iter().enumerate() {
        let path = if count > 1 { format!("{path}[{index}]") } else { path.to_owned() };
        match one {
            RawAccess::Named(name) => {
                let Some(list) = lists.find(name, report) else { continue };
                rows.note(path, name.value.clone(), name.spot.origin.clone());
                accepted.push(Arc::clone(list));
            }
            RawAccess::Inline(raw) => {
                let Some(list) = list(None, raw, report) else { continue };
                note(&path, raw, &list, rows);
                accepted.push(Arc::new(list.list));
            }
        }
    }
    (accepted.len() == count).then_some(accepted)
}

/// A list, and what was in its files.
struct WithFiles {
    list: AccessList,
    allow: Option<FileOfNetworks>,
    deny: Option<FileOfNetworks>,
}

fn list(name: Option<&String>, raw: &RawAccessList, report: &mut Report) -> Option<WithFiles> {
    let mut file = |key: &str, file: &Option<Written<_>>| match file {
        Some(file) => network_file::read(key, file, report).map(Some),
        None => Some(None),
    };
    let (allow_file, deny_file) = (file("allow_file", &raw.allow_file), file("deny_file", &raw.deny_file));
    let (allow_file, deny_file) = (allow_file?, deny_file?);
    let both = |written: &Option<Written<Vec<IpNet>>>, file: &Option<FileOfNetworks>| -> Vec<IpNet> {
        let written = written.iter().flat_map(|written| &written.value);
        written.chain(file.iter().flat_map(|file| &file.networks)).copied().collect()
    };
    let list = AccessList {
        name: name.cloned(),
        allow: both(&raw.allow, &allow_file),
        deny: both(&raw.deny, &deny_file),
        is_closed: raw.allow.is_some() || raw.allow_file.is_some(),
        status: raw.status.as_ref().map_or(Some(AccessList::STATUS), |status| status.value),
    };
    if allow_file.as_ref().is_some_and(|file| file.networks.is_empty()) && list.allow.is_empty() {
        report.warn(&raw.spot, "`allow_file` has no network in it, so this list lets nobody in");
    }
    Some(WithFiles { list, allow: allow_file, deny: deny_file })
}

/// Notes what is in force of a list whose keys stand at `path`.
fn note(path: &str, raw: &RawAccessList, list: &WithFiles, rows: &mut EffectiveRows) {
    for (key, networks) in [("allow", &raw.allow), ("deny", &raw.deny)] {
        if let Some(written) = networks {
            let shown: Vec<String> = written.value.iter().map(ToString::to_string).collect();
            rows.note(
                format!("{path}.{key}"),
                format!("[{}]", shown.join(", ")),
                written.spot.origin.clone(),
            );
        }
    }
    let files = [("allow_file", &raw.allow_file, &list.allow), ("deny_file", &raw.deny_file, &list.deny)];
    for (key, written, file) in files {
        if let (Some(written), Some(file)) = (written, file) {
            let origin = written.spot.origin.clone();
            rows.note_file(format!("{path}.{key}"), &written.value, origin, Some(file.content));
        }
    }
    let origin = raw.status.as_ref().map_or(Origin::Default, |status| status.spot.origin.clone());
    let shown = list.list.status.map_or_else(|| "drop".to_owned(), |status| status.to_string());
    rows.note(format!("{path}.status"), shown, origin);
}
