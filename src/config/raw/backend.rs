//! The written form of a target's backends.

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
use crate::config::model::{BackendAddress, BackendState, Protocol};
use crate::config::origin::{Field, Spot, Written};
use crate::config::yaml::{Entry, Node, Typed};

/// One backend.
#[derive(Debug)]
pub(in crate::config) struct RawBackend {
    pub(in crate::config) name: Option<Written<String>>,
    pub(in crate::config) place: Written<RawPlace>,
    pub(in crate::config) health_path: Option<Written<String>>,
    pub(in crate::config) portion: RawPortion,
    pub(in crate::config) state: Option<Written<BackendState>>,
}

impl RawBackend {
    /// A backend of which nothing is known but where it is.
    pub(in crate::config) fn at(place: Written<RawPlace>) -> Self {
        RawBackend { name: None, place, health_path: None, portion: RawPortion::default(), state: None }
    }
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
pub(super) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> Field<Vec<RawBackend>> {
    const EXPECTED: &str = "a list, each item with `host` and `port` or with `url`";
    if let Typed::Map(keys @ [first, ..]) = entry.node.typed()
        && ["host", "port", "url"].contains(&first.key.as_str())
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
        return Field::Faulty;
    }
    let Some(items) = list(entry, reader, EXPECTED) else { return Field::Faulty };
    let backends: Vec<RawBackend> =
        items.iter().filter_map(|item| Some(placed(backend(item, reader)?, item, entry))).collect();
    // With a faulty backend left out, the others can still be compared; none at all is another matter.
    if backends.is_empty() && !items.is_empty() {
        return Field::Faulty;
    }
    Field::Given(Written::new(backends, reader.key_spot(entry)))
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

fn backend(item: &Node, reader: &mut Reader<'_>) -> Option<RawBackend> {
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
        (None, ..) if ["url", "host", "port"].iter().any(|key| section.is_misspelt(key)) => return None,
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
                .expected("`host` and `port`, or `url`");
            return None;
        }
    };
    Some(RawBackend { name, place, health_path, portion, state })
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
