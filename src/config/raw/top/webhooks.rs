//! `webhooks` and `on_dead_server_webhook`: who is told of events by HTTP. Nothing that is said here has a path in it.

use std::path::PathBuf;

use crate::config::error::Wrong;
use crate::config::files::fence::PathUse;
use crate::config::model::{HttpUrl, WebhookEvent};
use crate::config::origin::{Field, Written};
use crate::config::raw::balance::hide;
use crate::config::raw::group::{items, list, there_already};
use crate::config::raw::reader::{Reader, choose, found};
use crate::config::raw::shape;
use crate::config::raw::vocabulary::http_url::{URL_FORM, http_url};
use crate::config::raw::vocabulary::spoken::MESSAGE_FORMATS;
use crate::config::yaml::{Entry, Node, Typed};

const EVENTS_FORM: &str = "an event such as `backend_down`, or a list of them";

/// A receiver as written.
#[derive(Debug)]
pub(in crate::config) struct RawWebhook {
    /// It stands under `on_dead_server_webhook`.
    pub(in crate::config) is_seed: bool,
    pub(in crate::config) url: Written<HttpUrl>,
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
    let url = http_url(entry, reader)?;
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
        Some(entry) => http_url(entry, reader),
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
    choose(text, WebhookEvent::ALL)
}

fn secret_file(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<PathBuf>> {
    const FORM: &str = "the path of a file that is a key of at least 16 bytes";
    let read = reader.word(entry, FORM, |text| {
        if text.is_empty() { Err(Wrong::new("is empty", FORM)) } else { Ok(text.to_owned()) }
    })?;
    Some(Written::new(reader.read_path(&read.value, PathUse::SigningKey, &read.spot), read.spot))
}
