//! `webhooks` and `on_dead_server_webhook`: who is told of events by HTTP. Nothing that is said here has a path in it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::error::{Wrong, one_of, quoted};
use crate::config::files::fence::PathUse;
use crate::config::model::{WebhookEvent, WebhookUrl};
use crate::config::origin::{Field, Written};
use crate::config::raw::address;
use crate::config::raw::balance::hide;
use crate::config::raw::group::{items, list, there_already};
use crate::config::raw::reader::{Reader, choose, found, subject};
use crate::config::raw::shape;
use crate::config::raw::vocabulary::later;
use crate::config::raw::vocabulary::spoken::MESSAGE_FORMATS;
use crate::config::yaml::{Entry, Node, Typed};

const URL_FORM: &str = "`https://host/path` or `http://host:port/path`";
const EVENTS_FORM: &str = "an event such as `backend_down`, or a list of them";

/// A receiver as written.
#[derive(Debug)]
pub(in crate::config) struct RawWebhook {
    /// It stands under `on_dead_server_webhook`.
    pub(in crate::config) is_seed: bool,
    pub(in crate::config) url: Written<WebhookUrl>,
    pub(in crate::config) events: Option<Written<Vec<WebhookEvent>>>,
    pub(in crate::config) secret_file: Field<PathBuf>,
    pub(in crate::config) format: Option<Written<()>>,
}

/// Walks the `webhooks` of one file.
pub(in crate::config::raw) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> Vec<RawWebhook> {
    let expected = "a list, each item with `url` and perhaps `events` and `secret_file`";
    if let Typed::Text(_) = entry.node.typed() {
        // It may be a URL, which is not to be repeated.
        reader.report.hide(entry.node.place);
        let wrong = Wrong::new("is a single value", expected);
        reader.report.wrong(&reader.spot(entry), "`webhooks`", wrong);
        return Vec::new();
    }
    let items = list(entry, reader, expected).unwrap_or_default();
    items.iter().filter_map(|item| webhook(item, reader)).collect()
}

/// Walks `on_dead_server_webhook`.
pub(in crate::config::raw) fn walk_seed(entry: &Entry, reader: &mut Reader<'_>) -> Option<RawWebhook> {
    let url = url_of(entry, reader)?;
    Some(RawWebhook { is_seed: true, url, events: None, secret_file: Field::Absent, format: None })
}

fn webhook(item: &Node, reader: &mut Reader<'_>) -> Option<RawWebhook> {
    if let Typed::Text(_) = item.typed() {
        // A bare URL: it is not to be repeated.
        reader.report.hide(item.place);
        let wrong = Wrong::new("is a single value", "`{url: https://host/path}`");
        reader.report.wrong(&reader.spot_of(item), "an entry of `webhooks`", wrong);
        return None;
    }
    if let Typed::Map(entries) = item.typed() {
        // Whatever else stands here may be a secret under another name.
        let is_open = |entry: &&Entry| matches!(&*entry.key, "events" | "format" | "secret_file");
        entries.iter().filter(|entry| !is_open(entry)).for_each(|entry| hide(&entry.node, reader));
    }
    let section = reader.section("an entry of `webhooks`", item, &shape::WEBHOOK)?;
    let url = match section.find("url") {
        Some(entry) => url_of(entry, reader),
        None if section.is_misspelt("url") => None,
        None => {
            let wrong = Wrong::new("has no `url`", URL_FORM);
            reader.report.wrong(&reader.spot_of(item), "this webhook", wrong);
            None
        }
    };
    let events = section.find("events").and_then(|entry| events(entry, reader));
    let secret_file = match section.find("secret_file") {
        Some(entry) => Field::read(secret_file(entry, reader)),
        None if section.is_misspelt("secret_file") => Field::Faulty,
        None => Field::Absent,
    };
    let format = section.find("format").and_then(|entry| reader.choice(entry, MESSAGE_FORMATS));
    Some(RawWebhook { is_seed: false, url: url?, events, secret_file, format })
}

fn events(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<WebhookEvent>>> {
    const ITEM: &str = "an entry of `events`";
    let mut events = Vec::new();
    for item in items(entry, reader, EVENTS_FORM)? {
        let spot = reader.spot_of(item);
        let read = match (item.typed(), item.text()) {
            (Typed::Text(_), Some(text)) => event(text).map(|event| (event, text)),
            _ => Err(Wrong::new(found(item), EVENTS_FORM)),
        };
        match read {
            Ok((event, text)) if events.contains(&event) => {
                reader.report.wrong(&spot, ITEM, there_already(item, text));
            }
            Ok((event, _)) => events.push(event),
            Err(wrong) => reader.report.wrong(&spot, ITEM, wrong),
        }
    }
    events.sort_unstable();
    Some(Written::new(events, reader.spot(entry)))
}

fn event(text: &str) -> Result<WebhookEvent, Wrong> {
    if let Some(instead) = later::event(&text.to_lowercase()) {
        let expected = one_of(WebhookEvent::ALL.iter().map(|(name, _)| *name));
        let wrong =
            Wrong::new(format!("is {}, which is not supported yet: {instead}", quoted(text)), expected);
        return Err(wrong.note("remove it"));
    }
    choose(text, WebhookEvent::ALL)
}

fn secret_file(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<PathBuf>> {
    const FORM: &str = "the path of a file that is a key of at least 16 bytes";
    let read = reader.word(entry, FORM, |text| {
        if text.is_empty() { Err(Wrong::new("is empty", FORM)) } else { Ok(text.to_owned()) }
    })?;
    Some(Written::new(reader.read_path(&read.value, PathUse::SigningKey, &read.spot), read.spot))
}

/// Reads a URL by itself, so that no general word about a value repeats it.
fn url_of(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<WebhookUrl>> {
    reader.report.hide(entry.node.place);
    let spot = reader.spot(entry);
    let read = match (entry.node.typed(), entry.node.text()) {
        (Typed::Text(_), Some(text)) => url(text),
        (Typed::Null, _) => Err(Wrong::new("has no value", URL_FORM)),
        _ => Err(Wrong::new("is no URL", URL_FORM)),
    };
    match read {
        Ok(url) => Some(Written::new(url, spot)),
        Err(wrong) => {
            reader.report.wrong(&spot, &subject(&entry.key), wrong);
            None
        }
    }
}

/// Reads a receiver's URL.
fn url(text: &str) -> Result<WebhookUrl, Wrong> {
    let wrong = |why: &str| Wrong::new(why, URL_FORM);
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(wrong("has no scheme").note("it begins with `https://` or `http://`"));
    };
    let is_tls = match scheme.to_ascii_lowercase().as_str() {
        "https" => true,
        "http" => false,
        _ => return Err(wrong("has a scheme other than `https` and `http`")),
    };
    if rest.contains('#') {
        return Err(
            wrong("has a `#`, and what follows one is not sent").note("`%23` is the character itself")
        );
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (user, authority) = match authority.rsplit_once('@') {
        Some((user, authority)) => (Some(Arc::from(decoded(user))), authority),
        None => (None, authority),
    };
    let (written_host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let port = match port {
        Some(port) => {
            address::port(port).ok_or_else(|| wrong("has a port that is no number from 1 to 65535"))?
        }
        None if is_tls => 443,
        None => 80,
    };
    if written_host.contains(':') && !written_host.starts_with('[') {
        let wrong = wrong("has an IPv6 address without brackets");
        return Err(wrong.note("it is written `https://[address]/path`"));
    }
    let host = address::host(written_host)
        .map_err(|_| wrong("has a host that is neither an IP address nor a host name"))?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    if path.parse::<http::uri::PathAndQuery>().is_err() {
        return Err(
            wrong("has a path that can't be sent").note("each such character is written `%` and two digits")
        );
    }
    Ok(WebhookUrl { is_tls, host, port, path: path.into(), user })
}

/// With `%40` and the like as the bytes that they stand for.
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[test]
    fn urls_of_receivers() {
        let read = |text: &str| {
            let WebhookUrl { is_tls, host, port, path, user } = url(text).unwrap();
            (is_tls, host, port, path.to_string(), user.map(|user| String::from_utf8(user.to_vec()).unwrap()))
        };
        let table = [
            ("https://a", (true, "a".to_owned(), 443, "/".to_owned(), None)),
            ("HTTP://a:81/b/c?d=e", (false, "a".to_owned(), 81, "/b/c?d=e".to_owned(), None)),
            ("https://[::1]?d", (true, "::1".to_owned(), 443, "/?d".to_owned(), None)),
            (
                "http://me:p%40ss@a/b",
                (false, "a".to_owned(), 80, "/b".to_owned(), Some("me:p@ss".to_owned())),
            ),
        ];
        for (text, value) in table {
            assert_eq!(read(text), value, "{text}");
        }
    }

    #[test]
    fn no_word_about_a_url_repeats_it() {
        for text in [
            "hush",
            "a/hush",
            "ftp://a/hush",
            "https://a/hush#hush",
            "https:///hush",
            "https://hush:hu@a:b/hush",
            "https://a:0/hush",
            "https://::1/hush",
            "https://a_hush!/hush",
            "https://a/hush hush",
            "https://a/hush\u{e4}\n",
            "https://a/$hush \u{1}",
        ] {
            let wrong = url(text).unwrap_err();
            assert!(!format!("{wrong:?}").contains("hu"), "{text}: {wrong:?}");
        }
    }
}
