//! `access`: whose clients may have a route.

use ipnet::IpNet;

use super::matches::texts;
use crate::config::error::{Wrong, quoted};
use crate::config::model::route::InlineAccess;
use crate::config::origin::Written;
use crate::config::raw::address;
use crate::config::raw::reader::Reader;
use crate::config::raw::shape;
use crate::config::yaml::{Entry, Typed};

const STATUS_FORM: &str = "a status from 400 to 599, or `drop`";

/// Walks `access`.
pub(super) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<InlineAccess>> {
    let spot = reader.key_spot(entry);
    if matches!(entry.node.typed(), Typed::Text(_) | Typed::List(_)) {
        let wrong = Wrong::new(
            "names lists, which are not supported yet",
            "`{allow: […]}`, `{deny: […]}` or both, with addresses and networks",
        );
        reader.report.wrong(&spot, "`access`", wrong);
        return None;
    }
    let section = reader.section("`access`", &entry.node, &shape::ACCESS)?;
    let networks = |key: &'static str, reader: &mut Reader<'_>| -> Option<Vec<IpNet>> {
        texts(section.find(key), "an address or a network, or a list of them", reader, address::network)
    };
    let (allow, deny) = (networks("allow", reader), networks("deny", reader));
    let status = match section.find("status") {
        Some(entry) => reader.parsed_with_numbers(entry, STATUS_FORM, status)?.value,
        None => Some(403),
    };
    if section.is_misspelt("allow") || section.is_misspelt("deny") {
        return None;
    }
    let access = InlineAccess { allow: allow?, deny: deny?, status };
    if access.allow.is_empty() && access.deny.is_empty() {
        reader.report.warn(&spot, "`access` has neither `allow` nor `deny`: it lets everybody in");
    }
    Some(Written::new(access, spot))
}

/// What those get who are not let in.
fn status(text: &str) -> Result<Option<u16>, Wrong> {
    if text.eq_ignore_ascii_case("drop") {
        return Ok(None);
    }
    let status = text.parse().ok().filter(|status| (400..=599).contains(status));
    status.map(Some).ok_or_else(|| Wrong::new(format!("is {}", quoted(text)), STATUS_FORM))
}
