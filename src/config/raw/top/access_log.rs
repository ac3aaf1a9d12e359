//! `access_log`: where records go, in which form, and how many of them.

use crate::config::error::{Wrong, quoted};
use crate::config::files::fence::PathUse;
use crate::config::model::template::{DerivedField, FaultKind, LogField, TemplateFault};
use crate::config::model::{LogFormat, LogPath, Share, Template};
use crate::config::origin::Written;
use crate::config::raw::reader::{Reader, choose, is_off};
use crate::config::raw::shape;
use crate::config::raw::vocabulary::nearest::nearest;
use crate::config::units;
use crate::config::yaml::{Entry, Typed};

/// What `format` takes beside the named forms.
const TEMPLATE_FORM: &str = "`text`, `json`, `common`, `combined`, or a template with fields in braces such as \
                             `{client} {method} {path} {status}`";

/// What other proxies call our fields.
const FOREIGN: &[(&str, &str)] = &[
    ("remote_addr", "client_ip"),
    ("remote_port", "client_port"),
    ("time_local", "time_common"),
    ("time_iso8601", "time"),
    ("request_method", "method"),
    ("request_uri", "path"),
    ("uri", "path"),
    ("url", "path"),
    ("body_bytes_sent", "bytes_out"),
    ("bytes_sent", "bytes_out"),
    ("bytes", "bytes_out"),
    ("request_length", "bytes_in"),
    ("request_time", "duration_ms"),
    ("duration", "duration_ms"),
    ("upstream_addr", "backend"),
    ("upstream_connect_time", "connect_ms"),
    ("upstream_header_time", "first_byte_ms"),
    ("request_id", "id"),
    ("agent", "user_agent"),
];

/// `access_log` when it is not `off`.
#[derive(Debug)]
pub(in crate::config) struct RawAccessLog {
    pub(in crate::config) path: Written<LogPath>,
    pub(in crate::config) format: Option<Written<LogFormat>>,
    pub(in crate::config) sample: Option<Written<Share>>,
}

/// Reads the value of `access_log`; `None` inside: `off`.
pub(in crate::config::raw) fn walk(
    entry: &Entry,
    reader: &mut Reader<'_>,
) -> Option<Written<Option<RawAccessLog>>> {
    const EXPECTED: &str = "`off`, or a mapping with `path` and perhaps `format` and `sample`";
    let spot = reader.key_spot(entry);
    if is_off(&entry.node) {
        return Some(Written::new(None, reader.spot(entry)));
    }
    if let Typed::Text(text) = entry.node.typed() {
        let wrong = Wrong::new(format!("is the text {}", quoted(text)), EXPECTED);
        let spot = reader.spot(entry);
        reader.report.wrong(
            &spot,
            "`access_log`",
            wrong.hint(format!("write `{{path: {text}}}`"), format!("{{path: {text}}}")),
        );
        return None;
    }
    if !matches!(entry.node.typed(), Typed::Map(_)) {
        reader.refuse(entry, EXPECTED);
        return None;
    }
    let section = reader.section("`access_log`", &entry.node, &shape::ACCESS_LOG)?;
    let format = section.find("format").and_then(|entry| format(entry, reader));
    let sample = section
        .find("sample")
        .and_then(|entry| reader.parsed_with_numbers(entry, units::SHARE_FORM, units::share));
    let Some(path) = section.find("path") else {
        reader
            .report
            .spot(&spot, "`access_log` does not say where to write")
            .expected("`path: stdout` or `path: access.log`, or `access_log: off`");
        return None;
    };
    let parsed = reader.parsed(path, "`stdout` or a file", |text| {
        if text.is_empty() {
            return Err(Wrong::new("is empty", "`stdout` or a file"));
        }
        Ok(text.to_owned())
    })?;
    let value = match parsed.value.as_str() {
        "stdout" | "-" => LogPath::Stdout,
        file => LogPath::File(reader.path(file, PathUse::Log, &parsed.spot)),
    };
    let path = Written::new(value, parsed.spot);
    Some(Written::new(Some(RawAccessLog { path, format, sample }), spot))
}

/// The name of a form, or a template: a text with braces in it.
fn format(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<LogFormat>> {
    if matches!(entry.node.typed(), Typed::Map(_)) {
        let spot = reader.spot(entry);
        let wrong = Wrong::new("is a mapping (`key: value`)", TEMPLATE_FORM);
        reader.report.wrong(&spot, "`format`", wrong.note("a value that begins with `{` needs quotes"));
        return None;
    }
    let mut faults = Vec::new();
    let read = reader.parsed(entry, TEMPLATE_FORM, |text| {
        if !text.contains(['{', '}']) {
            let named = choose(text, LogFormat::NAMED);
            return named.map(Some).map_err(|wrong| {
                let wrong = Wrong { expected: Some(TEMPLATE_FORM.into()), ..wrong };
                match in_braces(text) {
                    Some(ours) => {
                        wrong.hint(format!("write `{ours}`: fields stand in braces"), format!("'{ours}'"))
                    }
                    None => wrong,
                }
            });
        }
        Ok(Template::parse(text).map(LogFormat::Template).map_err(|found| faults = found).ok())
    })?;
    for fault in &faults {
        refuse(fault, entry, reader);
    }
    Some(Written::new(read.value?, read.spot))
}

/// Reports a fault of a template, at its own place where that is known.
fn refuse(fault: &TemplateFault, entry: &Entry, reader: &mut Reader<'_>) {
    let spot = reader.spot_inside(&entry.node, fault.start, fault.width);
    let wrong = match &fault.kind {
        FaultKind::UnknownField(name) => unknown(name),
        FaultKind::BadHeader(name) if name.is_empty() => {
            Wrong::new("has a header without a name", "a name behind the point, such as `{header.origin}`")
        }
        FaultKind::BadHeader(name) => Wrong::new(
            format!("asks for the header {}, which no request can have", quoted(name)),
            "letters, digits and `-`",
        ),
        FaultKind::Unclosed => Wrong::bare("has a `{` that no `}` closes")
            .hint("write `{{` if the character itself is meant", "{{"),
        FaultKind::Unopened => Wrong::bare("has a `}` that no `{` opens")
            .hint("write `}}` if the character itself is meant", "}}"),
        FaultKind::Control => {
            Wrong::new("has a line break or another control character", "one line; a tab may be in it")
                .note("a text behind `>-` becomes one line")
        }
        FaultKind::NoField => Wrong::new("has no field, so that every line would be the same", TEMPLATE_FORM),
    };
    reader.report.wrong(&spot, "`format`", wrong);
}

/// A format with nginx's `$variables` in ours.
fn in_braces(text: &str) -> Option<String> {
    let mut parts = text.split('$');
    let mut ours = parts.next()?.to_owned();
    let mut any = false;
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let known = FOREIGN.iter().find(|(word, _)| *word == name).map(|(_, ours)| *ours);
        let header = name.strip_prefix("http_").map(|header| format!("header.{}", header.replace('_', "-")));
        let field = known.map(str::to_owned).or(header).unwrap_or_else(|| name.to_owned());
        ours += &format!("{{{field}}}{rest}");
        any = true;
    }
    (any && !ours.contains('\'') && Template::parse(&ours).is_ok()).then_some(ours)
}

fn unknown(name: &str) -> Wrong {
    let names = || {
        LogField::ALL
            .iter()
            .map(|field| field.name())
            .chain(DerivedField::ALL.iter().map(|field| field.name()))
    };
    let message = format!("has the field {}, which does not exist", quoted(name));
    let lower = name.to_lowercase().replace('-', "_");
    let foreign = FOREIGN.iter().find(|(word, _)| *word == lower).map(|(_, ours)| *ours);
    let header = ["header_", "header:", "http_", "req."].iter().find_map(|start| lower.strip_prefix(start));
    let wrong = Wrong::bare(message);
    match (foreign.or_else(|| nearest(&lower, names())), header) {
        (Some(ours), _) => wrong.hint(format!("did you mean `{{{ours}}}`?"), format!("{{{ours}}}")),
        (None, Some(header)) => {
            let meant = format!("{{header.{}}}", header.replace('_', "-"));
            wrong.hint(format!("did you mean `{meant}`?"), meant)
        }
        (None, None) => {
            let mut known: Vec<&str> = names().collect();
            known.push("header.<name>");
            Wrong { expected: Some(crate::config::error::one_of(known)), ..wrong }
        }
    }
}
