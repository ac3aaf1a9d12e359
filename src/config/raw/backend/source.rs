//! The written form of an item of `backends` that stands for more than one: a name that DNS is asked for.

use std::sync::Arc;

use crate::config::error::{Wrong, quoted};
use crate::config::model::BackendState;
use crate::config::model::discovery::{AddressFamily, DnsKind, DnsQuestion};
use crate::config::origin::{Spot, Written};
use crate::config::raw::address::host;
use crate::config::raw::balance::RawPortion;
use crate::config::raw::reader::{Reader, Section, subject};
use crate::config::yaml::Entry;

/// A name whose addresses are backends.
#[derive(Debug)]
pub(in crate::config) struct RawSource {
    pub(in crate::config) asks: Written<DnsQuestion>,
    /// `None`: the records say it.
    pub(in crate::config) port: Option<Written<u32>>,
    pub(in crate::config) health_path: Option<Written<String>>,
    pub(in crate::config) portion: RawPortion,
    pub(in crate::config) state: Option<Written<BackendState>>,
    /// The how manieth item of its list it is, from 0.
    pub(in crate::config) number: usize,
    /// Where the item stands.
    pub(in crate::config) spot: Spot,
}

/// What its keys say that backends have too.
pub(super) struct SharedKeys {
    pub(super) port: Option<Written<u32>>,
    pub(super) health_path: Option<Written<String>>,
    pub(super) portion: RawPortion,
    pub(super) state: Option<Written<BackendState>>,
}

/// Walks an item with one of these keys.
pub(super) fn walk(
    (key, kind): (&Entry, DnsKind),
    section: &Section<'_>,
    shared: SharedKeys,
    (number, spot): (usize, Spot),
    reader: &mut Reader<'_>,
) -> Option<RawSource> {
    let family = section.find("family").map(|entry| reader.choice(entry, AddressFamily::ALL));
    let is_fine = refuse_strangers(key, section, reader);
    let asked = match kind {
        DnsKind::Addresses => reader.word(key, "a name such as `app.internal`", name),
        DnsKind::Services => reader.word(key, SERVICE_FORM, service),
    };
    let has_port = match (kind, section.find("port")) {
        (DnsKind::Addresses, None) if !section.is_misspelt("port") => {
            let problem = reader.report.at(key.key_place, "this backend has a `dns` and no `port`");
            problem.expected("`port` beside it: addresses have none; those of services come with `srv`");
            false
        }
        _ => true,
    };
    let family = match family {
        Some(read) => read?.value,
        None => AddressFamily::Any,
    };
    let asked = asked.filter(|_| is_fine && has_port)?;
    let asks = DnsQuestion { name: Arc::from(asked.value.as_str()), kind, family };
    let SharedKeys { port, health_path, portion, state } = shared;
    if kind == DnsKind::Addresses && port.is_none() {
        return None;
    }
    Some(RawSource { asks: Written::new(asks, asked.spot), port, health_path, portion, state, number, spot })
}

/// Reports what does not go together with `key`.
fn refuse_strangers(key: &Entry, section: &Section<'_>, reader: &mut Reader<'_>) -> bool {
    let is_service = key.key == "srv";
    let strangers: &[(&'static str, &str)] = &[
        (
            "host",
            "a name whose addresses are one backend stands under `host`, one whose addresses are many under `dns`",
        ),
        ("url", "keep one of them"),
        ("name", "each address is a backend with a name of its own: `name/address:port`"),
        ("dns", "keep one of them: `srv` for services, `dns` for addresses"),
        ("file", "keep one of them: an item of `backends` has one source"),
    ];
    let of_service: &[(&'static str, &str)] =
        &[("port", "SRV records say which port"), ("weight", "SRV records say how much each backend gets")];
    let others = strangers.iter().chain(of_service.iter().filter(|_| is_service));
    let mut is_fine = true;
    for (other, why) in others {
        let Some(entry) = section.find(other).filter(|entry| entry.key != key.key) else { continue };
        let message = format!("{} and {} in one backend", subject(&key.key), subject(&entry.key));
        reader.report.at(entry.key_place.max(key.key_place), message).note(*why);
        is_fine = false;
    }
    is_fine
}

const NAME_FORM: &str = "a name such as `app.internal`";
const SERVICE_FORM: &str = "the name of a service such as `_http._tcp.app.internal`";

/// A name that has addresses.
fn name(text: &str) -> Result<String, Wrong> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if bare.parse::<std::net::IpAddr>().is_ok() {
        let wrong = Wrong::new(format!("is {}, which is an address and no name", quoted(text)), NAME_FORM);
        return Err(wrong.note("one address is one backend: it stands under `host`"));
    }
    host(text).map_err(|wrong| {
        let Wrong { hint, note, fix, .. } = wrong;
        let about =
            Wrong::new(format!("is {}, which is no name that DNS could know", quoted(text)), NAME_FORM);
        Wrong { hint, note, fix, ..about }
    })
}

/// The name of a service (RFC 2782).
fn service(text: &str) -> Result<String, Wrong> {
    let wrong = |why: &str| Wrong::new(format!("is {}, {why}", quoted(text)), SERVICE_FORM);
    if name(text).is_err() {
        return Err(wrong("which is no name that DNS could know"));
    }
    match text.split('.').take_while(|label| label.starts_with('_')).count() {
        2.. if text.trim_end_matches('.').split('.').all(|label| label.starts_with('_')) => {
            Err(wrong("which has no domain behind the service and the protocol"))
        }
        2.. => Ok(text.to_owned()),
        _ => Err(wrong("which does not begin with a service and a protocol")
            .note("names that have addresses and no services stand under `dns`, with a `port`")),
    }
}

/// Walks `file`, whose content stands behind this item already.
pub(super) fn file(
    entry: &Entry,
    section: &Section<'_>,
    may_name_files: bool,
    reader: &mut Reader<'_>,
) -> Option<Written<String>> {
    let other = section.entries().iter().find(|other| other.key != entry.key);
    if let Some(other) = other {
        let message = format!("{} beside {}", subject(&other.key), subject(&entry.key));
        reader
            .report
            .at(other.key_place, message)
            .note("what holds for a backend stands beside it, in that file");
    }
    if !may_name_files {
        let message = "a file of backends names another one";
        reader.report.at(entry.key_place, message).note("name both where the first one is named");
    }
    let file = reader.word(entry, FILE_FORM, |text| match text {
        "" => Err(Wrong::new("is ``, which is no file", FILE_FORM)),
        text => Ok(text.to_owned()),
    })?;
    (other.is_none() && may_name_files).then_some(file)
}

const FILE_FORM: &str = "a file with a list of backends, such as `backends.yaml`";
