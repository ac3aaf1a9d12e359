//! `admin`: how the process is asked and told things while it serves.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::config::error::{Wrong, quoted};
use crate::config::files::fence::PathUse;
use crate::config::model::AdminSocket;
use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::address::{self, RawListener};
use crate::config::raw::group::items;
use crate::config::raw::reader::{Reader, found, is_off};
use crate::config::raw::shape;
use crate::config::raw::tls::{self, RawTls};
use crate::config::yaml::{Entry, Typed};

const SOCKET_FORM: &str = "`off`, or the path of a socket such as `/run/evenkeel/admin.sock`";
const LISTENER_FORM: &str = "`off`, a port such as `9900`, or an address with port such as `127.0.0.1:9900`";
const HOST_FORM: &str = "a host name such as `lb.internal`";
const ITEM: &str = "an entry of `hosts`";

/// As written, but for the socket.
#[derive(Debug, Default)]
pub(in crate::config) struct RawAdmin {
    pub(in crate::config) listener: Field<Option<RawListener>>,
    pub(in crate::config) token_file: Field<PathBuf>,
    pub(in crate::config) hosts: Option<Written<Vec<String>>>,
    pub(in crate::config) configure_over_tcp: Option<Written<bool>>,
    pub(in crate::config) tls: Field<RawTls>,
    /// The first key that has no effect without a listener.
    pub(in crate::config) idle: Option<(&'static str, Spot)>,
}

/// Walks `admin`: the socket, and the rest.
pub(in crate::config::raw) fn walk(
    entry: Option<&Entry>,
    reader: &mut Reader<'_>,
) -> (Option<Written<AdminSocket>>, RawAdmin) {
    let Some(entry) = entry else { return Default::default() };
    let Some(section) = reader.section("`admin`", &entry.node, &shape::ADMIN) else {
        return Default::default();
    };
    let listener = match section.find("listener") {
        Some(entry) if is_off(&entry.node) => Field::Given(Written::new(None, reader.spot(entry))),
        Some(entry) => {
            let read = reader.parsed_with_numbers(entry, LISTENER_FORM, |text| {
                over_tcp(text, LISTENER_FORM, "`admin.socket` is the unix socket")
            });
            Field::read(read.map(|read| Written::new(Some(read.value), read.spot)))
        }
        None if section.is_misspelt("listener") => Field::Faulty,
        None => Field::Absent,
    };
    let token_file = match section.find("token_file") {
        Some(entry) => Field::read(token_file(entry, reader)),
        None if section.is_misspelt("token_file") => Field::Faulty,
        None => Field::Absent,
    };
    let tls = match section.find("tls") {
        Some(entry) => Field::read(tls::walk_one(entry, &shape::ADMIN_TLS, reader)),
        None if section.is_misspelt("tls") => Field::Faulty,
        None => Field::Absent,
    };
    let idle = ["token_file", "hosts", "configure_over_tcp", "tls"]
        .into_iter()
        .find_map(|key| section.find(key).map(|entry| (key, reader.key_spot(entry))));
    let raw = RawAdmin {
        listener,
        token_file,
        hosts: section.find("hosts").and_then(|entry| hosts(entry, reader)),
        configure_over_tcp: section.find("configure_over_tcp").and_then(|entry| reader.switch(entry)),
        tls,
        idle,
    };
    (section.find("socket").and_then(|entry| socket(entry, reader)), raw)
}

fn socket(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<AdminSocket>> {
    if is_off(&entry.node) {
        return Some(Written::new(AdminSocket::Off, reader.spot(entry)));
    }
    let read = reader.word(entry, SOCKET_FORM, |text| {
        let path = text.strip_prefix("unix:").unwrap_or(text);
        if path.is_empty() { Err(Wrong::new("is empty", SOCKET_FORM)) } else { Ok(path.to_owned()) }
    })?;
    let path = reader.path(&read.value, PathUse::AdminSocket, &read.spot);
    let length = path.as_os_str().as_bytes().len();
    if length > AdminSocket::PATH_MAX {
        let most = AdminSocket::PATH_MAX;
        let wrong = Wrong::new(
            format!("is a path of {length} bytes, which is too long for a socket"),
            format!("at most {most} bytes"),
        );
        reader.report.wrong(
            &read.spot,
            "`socket`",
            wrong.note("relative paths count from the folder of the config"),
        );
        return None;
    }
    Some(Written::new(AdminSocket::At(path), read.spot))
}

/// An address of `form`; about unix sockets there is only a `note`.
pub(super) fn over_tcp(text: &str, form: &'static str, note: &'static str) -> Result<RawListener, Wrong> {
    match address::listener(text)? {
        RawListener::Unix(_) => {
            Err(Wrong::new(format!("is {}, a unix socket", quoted(text)), form).note(note))
        }
        listener @ (RawListener::Port(_) | RawListener::At(..)) => Ok(listener),
    }
}

fn token_file(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<PathBuf>> {
    const FORM: &str = "the path of a file with tokens";
    let read = reader.word(entry, FORM, |text| {
        if text.is_empty() { Err(Wrong::new("is empty", FORM)) } else { Ok(text.to_owned()) }
    })?;
    Some(Written::new(reader.read_path(&read.value, PathUse::Tokens, &read.spot), read.spot))
}

fn hosts(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<String>>> {
    let mut hosts = Vec::new();
    for item in items(entry, reader, HOST_FORM)? {
        let spot = reader.spot_of(item);
        let text = match (item.typed(), item.text()) {
            (Typed::Text(_), Some(text)) => text,
            _ => {
                reader.report.wrong(&spot, ITEM, Wrong::new(found(item), HOST_FORM));
                continue;
            }
        };
        match host(text) {
            Ok(host) => hosts.push(host),
            Err(wrong) => reader.report.wrong(&spot, ITEM, wrong),
        }
    }
    Some(Written::new(hosts, reader.spot(entry)))
}

/// A name as it stands in a Host header, without a port.
fn host(text: &str) -> Result<String, Wrong> {
    let wrong = |why: &str| Wrong::new(format!("is {}, {why}", quoted(text)), HOST_FORM);
    let plain = text.trim_end_matches('.').to_ascii_lowercase();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if plain.is_empty() || plain.len() > 253 || plain.split('.').any(str::is_empty) {
        return Err(wrong("which is no name"));
    }
    if let Some((name, port)) = text.rsplit_once(':')
        && !port.is_empty()
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && host(name).is_ok()
    {
        return Err(wrong("a name with a port, which does not matter here").instead(name));
    }
    if plain.contains('*') {
        return Err(wrong("and no pattern is taken here").note("each name is written out"));
    }
    if !plain.chars().all(is_name) {
        return Err(wrong("which is no name"));
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_alone() {
        assert_eq!(host("LB.internal.").expect("a name"), "lb.internal");
        for wrong in ["", ".", "a..b", "a/b", "*.a", "a:80", "[::1]", "a b", &"a".repeat(254)] {
            assert!(host(wrong).is_err(), "{wrong}");
        }
        assert_eq!(host("a:80").expect_err("a port").hint.as_deref(), Some("write `a`"));
    }
}
