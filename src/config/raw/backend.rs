//! The written form of a target's backends, and of what stands for several.

mod source;

use std::sync::Arc;

use super::address::{self, Url};
use super::balance::{self, RawPortion};
use super::group::list;
use super::health::probe_path;
use super::reader::{Reader, choose, found, subject};
use super::shape;
use super::unfit::BACKEND_PORT;
use super::vocabulary::words::name;
use crate::config::edit::Fix;
use crate::config::error::{Wrong, one_of};
use crate::config::files::fence::PathUse;
use crate::config::model::discovery::{DnsKind, FoundBy};
use crate::config::model::{BackendAddress, BackendState, Protocol};
use crate::config::origin::{Field, Spot, Written};
use crate::config::yaml::{Entry, Node, Typed};
pub(in crate::config) use source::RawSource;
use source::SharedKeys;

/// One backend.
#[derive(Debug)]
pub(in crate::config) struct RawBackend {
    pub(in crate::config) name: Option<Written<String>>,
    pub(in crate::config) place: Written<RawPlace>,
    pub(in crate::config) health_path: Option<Written<String>>,
    pub(in crate::config) portion: RawPortion,
    pub(in crate::config) state: Option<Written<BackendState>>,
    /// How it was found; `None`: it is written.
    pub(in crate::config) found: Option<Arc<FoundBy>>,
    /// The number that it has in its list; `None`: it is known by its place among the backends.
    pub(in crate::config) number: Option<usize>,
}

impl RawBackend {
    /// A backend of which nothing is known but where it is.
    pub(in crate::config) fn at(place: Written<RawPlace>) -> Self {
        let portion = RawPortion::default();
        RawBackend { name: None, place, health_path: None, portion, state: None, found: None, number: None }
    }
}

/// A target's `backends`.
#[derive(Debug)]
pub(in crate::config) struct RawBackends {
    pub(in crate::config) written: Field<Vec<RawBackend>>,
    /// Names that stand for more.
    pub(in crate::config) sources: Vec<RawSource>,
    /// Files that some of them come from: which item names one, and as what.
    pub(in crate::config) files: Vec<(usize, Written<String>)>,
}

impl RawBackends {
    fn faulty() -> RawBackends {
        RawBackends { written: Field::Faulty, sources: Vec::new(), files: Vec::new() }
    }
}

/// What an item of `backends` is.
enum Item {
    One(RawBackend),
    Source(RawSource),
    /// What is in it stands behind it, as if it were written here.
    File(Written<String>),
}

/// Where a backend is, and what its URL said about the protocol.
#[derive(Clone, Debug)]
pub(in crate::config) struct RawPlace {
    pub(in crate::config) address: BackendAddress,
    /// `None` when it was written as `host` and `port`, or is a unix socket.
    pub(in crate::config) protocol: Option<Protocol>,
    /// Whether its URL asks for TLS; `None` as above.
    pub(in crate::config) tls: Option<bool>,
}

/// Walks a target's `backends`.
pub(super) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> RawBackends {
    const EXPECTED: &str = "a list, each item with `host` and `port` or with `url`";
    if let Typed::Map(keys @ [first, ..]) = entry.node.typed()
        && ["host", "port", "url", "dns", "srv", "file"].contains(&first.key.as_str())
    {
        let wrong = Wrong::new(found(&entry.node), EXPECTED);
        // A mapping without brackets stands where its first key does.
        let (at, key) = (entry.node.place, first.key_place);
        let hint = in_a_list(first, keys, (at.line, at.column) != (key.line, key.column));
        let spot = reader.spot(entry);
        reader.report.wrong(
            &spot,
            "`backends`",
            wrong.hint_by(hint, Fix::Dash(entry.key_place, entry.node.place)),
        );
        return RawBackends::faulty();
    }
    let Some(items) = list(entry, reader, EXPECTED) else { return RawBackends::faulty() };
    // What came from a file of its own stands behind what is written here, as far as numbers go.
    let is_own = |item: &Node| item.place.file == entry.node.place.file;
    let mut numbers = (0..).zip(items.iter().filter(|item| is_own(item)));
    let mut behind = items.iter().filter(|item| is_own(item)).count()..;
    let (mut written, mut sources, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for item in items {
        let number = if is_own(item) { numbers.next().map(|(number, _)| number) } else { behind.next() };
        let number = number.unwrap_or_default();
        match walk_item(item, number, is_own(item), reader) {
            Some(Item::One(backend)) => written.push(placed(backend, item, entry)),
            Some(Item::Source(source)) => sources.push(source),
            Some(Item::File(file)) => files.push((number, file)),
            None => {}
        }
    }
    // With a faulty backend left out, the others can still be compared; none at all is another matter.
    if written.is_empty() && sources.is_empty() && !items.is_empty() {
        return RawBackends { files, ..RawBackends::faulty() };
    }
    RawBackends { written: Field::Given(Written::new(written, reader.key_spot(entry))), sources, files }
}

/// A backend that came through an alias clashes with others where the alias stands, and not where it is written.
fn placed(mut backend: RawBackend, item: &Node, list: &Entry) -> RawBackend {
    if let Some(alias) = item.alias.or(list.node.alias) {
        backend.place.spot.place = Some(alias);
        if let Some(name) = &mut backend.name {
            name.spot.place = Some(alias);
        }
    }
    backend
}

/// How one backend becomes a list of them.
fn in_a_list(first: &Entry, keys: &[Entry], is_flow: bool) -> String {
    let entry = |entry: &Entry| Some(format!("{}: {}", entry.key, entry.node.text()?));
    match keys.iter().map(entry).collect::<Option<Vec<String>>>() {
        Some(keys) if is_flow => format!("put it in brackets: `[{{{}}}]`", keys.join(", ")),
        None if is_flow => "put it in brackets: `[{…}]`".to_owned(),
        _ if keys.len() > 1 => {
            let first = &first.key;
            format!("write `- ` in front of `{first}`, and indent the lines below it by 2 more spaces")
        }
        _ => format!("write `- ` in front of `{}`, also for a single backend", first.key),
    }
}

fn walk_item(item: &Node, number: usize, may_name_files: bool, reader: &mut Reader<'_>) -> Option<Item> {
    if let Typed::Text(text) = item.typed() {
        let spot = reader.spot_of(item);
        let wrong = Wrong::new(found(item), "a mapping with `host` and `port`, or with `url`");
        let url = if text.contains(':') && !text.contains("://") && !text.starts_with("unix:") {
            format!("{}://{text}", reader.usual_scheme())
        } else {
            text.to_owned()
        };
        reader.report.wrong(
            &spot,
            "a backend",
            wrong.hint(format!("write `url: {url}`"), format!("{{url: \"{url}\"}}")),
        );
        return None;
    }
    let section = reader.section("a backend", item, &shape::BACKEND)?;
    let name = section.find("name").and_then(|entry| reader.word(entry, "a word", name));
    let health_path = section
        .find("health_path")
        .and_then(|entry| reader.parsed(entry, "a path such as `/health`", probe_path));
    let portion = balance::portion(&section, reader);
    let state = section.find("state").and_then(|entry| state(entry, reader));
    let kinds = [DnsKind::Services, DnsKind::Addresses];
    if let Some((key, kind)) = kinds.iter().find_map(|kind| Some((section.find(kind.as_str())?, *kind))) {
        let port = section.find("port").and_then(|entry| port(entry, reader));
        let shared = SharedKeys { port, health_path, portion, state };
        let place = (number, reader.spot_of_use(item));
        return source::walk((key, kind), &section, shared, place, reader).map(Item::Source);
    }
    if let Some(file) = section.find("file") {
        return source::file(file, &section, may_name_files, reader).map(Item::File);
    }
    if let Some(family) = section.find("family") {
        let problem =
            reader.report.at(family.key_place, "`family` says which addresses of a `dns` or `srv` count");
        problem.hint("remove it", Fix::Remove(family.key_place));
        return None;
    }
    let (url, host, port) = (section.find("url"), section.find("host"), section.find("port"));
    let place = match (url, host, port) {
        (Some(url), None, None) => {
            let usual = reader.usual_scheme();
            let mut place = reader
                .parsed(url, "a URL such as `http://127.0.0.1:8001`", |text| backend_url(text, usual))?;
            if let BackendAddress::Unix(path) = &mut place.value.address {
                *path = reader.path(&path.to_string_lossy(), PathUse::BackendSocket, &place.spot);
            }
            place
        }
        (None, Some(host), Some(port)) => {
            let used = reader.spot_of_use(&host.node).place;
            let host = reader.word(host, "an IP address or a host name", address::host);
            let port = self::port(port, reader);
            let (host, port) = (host?, port?);
            let port_number = u16::try_from(port.value).ok()?;
            let address = BackendAddress::Host { host: host.value, port: port_number };
            Written::new(RawPlace { address, protocol: None, tls: None }, Spot { place: used, ..host.spot })
        }
        (Some(url), Some(other), _) | (Some(url), None, Some(other)) => {
            let message = format!("{} and {} in one backend", subject(&url.key), subject(&other.key));
            reader
                .report
                .at(url.key_place.max(other.key_place), message)
                .expected("either `url`, or `host` and `port`");
            return None;
        }
        (None, ..)
            if ["url", "host", "port", "dns", "srv", "file"].iter().any(|key| section.is_misspelt(key)) =>
        {
            return None;
        }
        (None, Some(only), None) | (None, None, Some(only)) => {
            let missing = if only.key == "host" { "port" } else { "host" };
            let message = format!("this backend has a `{}` and no `{missing}`", only.key);
            let both = only.node.text().and_then(|text| text.rsplit_once(':')).filter(|(host, port)| {
                missing == "port"
                    && address::host(host).is_ok()
                    && port.parse::<u16>().is_ok_and(|port| port > 0)
            });
            let problem = reader.report.at(only.key_place, message);
            problem.expected("`host` and `port`, or `url`");
            if let Some((host, port)) = both {
                let port = format!("port: {port}");
                let fix = Fix::Then(only.node.place, host.to_owned(), only.key_place, port.clone());
                problem.hint(format!("write `host: {host}` and `{port}`"), fix);
            }
            return None;
        }
        (None, None, None) => {
            reader
                .report
                .at(item.place, "this backend has no address")
                .expected("`host` and `port`, or `url`; or `dns`, `srv` or `file` for several");
            return None;
        }
    };
    let number = Some(number);
    Some(Item::One(RawBackend { name, place, health_path, portion, state, found: None, number }))
}

/// Walks `state`, and knows what HAProxy, nginx and others call it.
fn state(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<BackendState>> {
    let expected = one_of(BackendState::ALL.iter().map(|(name, _)| *name));
    reader.parsed(entry, &expected, |text| {
        choose(text, BackendState::ALL).map_err(|wrong| match text.to_lowercase().as_str() {
            "ready" | "enabled" | "active" => wrong.instead("up"),
            "draining" | "drained" => wrong.instead("drain"),
            "maint" | "maintenance" | "disabled" | "stopped" => wrong.instead("down"),
            "backup" => wrong.note("`backup: true` is a key of the backend"),
            _ => wrong,
        })
    })
}

/// A backend's port. Somebody who writes several wants several backends.
fn port(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<u32>> {
    let is_range = entry.node.text().is_some_and(|text| address::ports(text).is_some());
    if is_range || matches!(entry.node.typed(), Typed::List(_)) {
        let wrong = Wrong::new(found(&entry.node), "one port, from 1 to 65535");
        let spot = reader.spot(entry);
        reader.report.wrong(
            &spot,
            "`port`",
            wrong.note("each port is a backend of its own: one `- {host: …, port: …}` for each"),
        );
        return None;
    }
    reader.number(entry, 1..=65_535, BACKEND_PORT)
}

/// Reads a backend's URL; a unix path is left as written.
pub(in crate::config) fn backend_url(text: &str, usual: &str) -> Result<RawPlace, Wrong> {
    Ok(match address::url(text, usual)? {
        Url::Host(scheme, host, port) => RawPlace {
            address: BackendAddress::Host { host, port },
            protocol: Some(scheme.protocol),
            tls: Some(scheme.tls),
        },
        Url::Unix(path) => RawPlace { address: BackendAddress::Unix(path), protocol: None, tls: None },
    })
}
