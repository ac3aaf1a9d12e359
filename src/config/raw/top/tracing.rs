//! `tracing`: where traces of requests are sent, and of which.

use std::path::PathBuf;

use crate::config::error::{Wrong, quoted};
use crate::config::files::fence::PathUse;
use crate::config::model::{HttpUrl, Share};
use crate::config::origin::Written;
use crate::config::raw::bounds::RATE_MAX;
use crate::config::raw::group::section_or_off;
use crate::config::raw::reader::{Reader, is_off};
use crate::config::raw::shape;
use crate::config::raw::vocabulary::http_url::http_url;
use crate::config::units;
use crate::config::yaml::Entry;

const OTLP_FORM: &str = "`otlp: \"http://127.0.0.1:4318\"`, where traces are taken by OTLP over HTTP";
const HEADERS_FORM: &str = "a file of header lines such as `Authorization: Bearer …`";
const CA_FORM: &str = "a PEM file of those who may issue the certificate of `otlp`";
const NAME_FORM: &str = "a name of 1 to 255 characters";

/// `tracing` when it is not `off`.
#[derive(Debug)]
pub(in crate::config) struct RawTracing {
    pub(in crate::config) otlp: Written<HttpUrl>,
    pub(in crate::config) ca_file: Option<Written<PathBuf>>,
    pub(in crate::config) headers_file: Option<Written<PathBuf>>,
    /// `None` inside: `off`.
    pub(in crate::config) sample: Option<Written<Option<Share>>>,
    pub(in crate::config) service_name: Option<Written<String>>,
    pub(in crate::config) limit: Option<Written<u32>>,
}

/// Walks `tracing`; `None` inside: `off`.
pub(in crate::config::raw) fn walk(
    entry: &Entry,
    reader: &mut Reader<'_>,
) -> Option<Written<Option<RawTracing>>> {
    const EXPECTED: &str = "`off`, or a mapping such as `{otlp: \"http://127.0.0.1:4318\", sample: 1%}`";
    let written = section_or_off(entry, reader, &shape::TRACING, EXPECTED, None)?;
    let Some(section) = written.value else { return Some(Written::new(None, written.spot)) };
    let otlp = section.find("otlp");
    if otlp.is_none() && !section.is_misspelt("otlp") {
        let message = "`tracing` does not say where traces are sent";
        reader.report.spot(&reader.key_spot(entry), message).expected(OTLP_FORM);
    }
    let otlp = otlp.and_then(|entry| http_url(entry, reader));
    let file = |entry: Option<&Entry>, using: PathUse, form: &'static str, reader: &mut Reader<'_>| {
        let read = reader.word(entry?, form, |text| some(text, form))?;
        Some(Written::new(reader.read_path(&read.value, using, &read.spot), read.spot))
    };
    let ca_file = file(section.find("ca_file"), PathUse::Certificates, CA_FORM, reader);
    let headers_file = file(section.find("headers_file"), PathUse::SentHeaders, HEADERS_FORM, reader);
    let sample = section.find("sample").and_then(|entry| sample(entry, reader));
    let service_name = section.find("service_name").and_then(|entry| {
        reader.word(entry, NAME_FORM, |text| match text.chars().count() {
            1..=255 if !text.chars().any(char::is_control) => Ok(text.to_owned()),
            _ => Err(Wrong::new(format!("is {}", quoted(text)), NAME_FORM)),
        })
    });
    let limit = section.find("limit").and_then(|entry| limit(entry, reader));
    let raw = RawTracing { otlp: otlp?, ca_file, headers_file, sample, service_name, limit };
    Some(Written::new(Some(raw), written.spot))
}

fn some(text: &str, form: &str) -> Result<String, Wrong> {
    if text.is_empty() { Err(Wrong::new("is empty", form)) } else { Ok(text.to_owned()) }
}

fn sample(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Option<Share>>> {
    let percent = entry.node.text().and_then(|text| text.strip_suffix('%'));
    let is_none = percent.is_some_and(|number| number.trim().parse() == Ok(0.0));
    if is_off(&entry.node) || is_none {
        return Some(Written::new(None, reader.spot(entry)));
    }
    let share = reader.parsed_with_numbers(entry, units::SHARE_FORM, units::share)?;
    Some(Written::new(Some(share.value), share.spot))
}

/// How many in a second.
fn limit(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<u32>> {
    const FORM: &str = "a number per second such as `200/s` (1/s to 1000000/s)";
    if !entry.node.text().is_some_and(|text| text.contains('/')) {
        return reader.number(entry, 1..=RATE_MAX, FORM);
    }
    reader.parsed(entry, FORM, |text| {
        let count = text.trim().strip_suffix("/s").unwrap_or_default().trim();
        let wrong = || Wrong::new(format!("is {}", quoted(text)), FORM);
        count.parse().ok().filter(|count| (1..=RATE_MAX).contains(count)).ok_or_else(wrong)
    })
}
