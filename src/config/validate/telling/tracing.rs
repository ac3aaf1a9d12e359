//! `tracing`: what is sent along, and whom is spoken to.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use http::{HeaderName, HeaderValue, header};

use crate::config::effective::{EffectiveRows, number_of};
use crate::config::error::{Wrong, quoted};
use crate::config::files::whole;
use crate::config::model::{HttpUrl, TraceHeaders, TracingConfig};
use crate::config::origin::{Origin, Written};
use crate::config::raw::RawTracing;
use crate::config::report::Report;
use crate::config::validate::tls::authorities;

/// What is expected of `headers_file`.
const EXPECTED: &str = "a file with a line `Name: value` for each header that is sent along";
/// In MiB.
const FILE_MAX: u64 = 1;
/// What is said by whoever sends.
const OURS: &[&str] = &[
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "transfer-encoding",
    "connection",
    "user-agent",
    "expect",
];

/// Makes it; `None`: there are no traces.
pub(in crate::config::validate) fn accept(
    raw: Option<&Written<Option<RawTracing>>>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<TracingConfig> {
    let Some(Written { value: Some(raw), .. }) = raw else {
        let origin = raw.map_or(Origin::Default, |written| written.spot.origin.clone());
        rows.note("tracing", "off", origin);
        return None;
    };
    let Written { value: url, spot } = &raw.otlp;
    rows.note_hidden(
        "tracing.otlp".to_owned(),
        url.to_string(),
        spot.origin.clone(),
        number_of([url.identity().as_bytes()]),
    );
    let authorities = match &raw.ca_file {
        Some(file) if !url.is_tls => {
            let message = "`ca_file` has no effect, because `otlp` is no https";
            report.spot(&file.spot, message).note("write `https://`, or remove `ca_file`");
            None
        }
        Some(file) => authorities(file, "`ca_file`", report, rows, "tracing.ca_file".to_owned()),
        None => {
            rows.note("tracing.ca_file", "the system's", Origin::Default);
            None
        }
    };
    let headers = match &raw.headers_file {
        None => {
            rows.note("tracing.headers_file", "none", Origin::Default);
            TraceHeaders::default()
        }
        Some(file) => match headers_in(&file.value) {
            Ok((headers, content)) => {
                if url.user.is_some() && headers.iter().any(|(name, _)| *name == header::AUTHORIZATION) {
                    let message = "`headers_file` has `authorization`, and so has `otlp`, by its user";
                    report.spot(&file.spot, message).note("one of them lets evenkeel in: remove the other");
                }
                let path = "tracing.headers_file".to_owned();
                rows.note_file(path, &file.value, file.spot.origin.clone(), Some(content));
                headers
            }
            Err(wrong) => {
                report.wrong(&file.spot, "`headers_file`", wrong);
                TraceHeaders::default()
            }
        },
    };
    warn_of_the_way(raw, report);
    let default = TracingConfig::SAMPLE;
    let sample = rows.settle("tracing.sample", raw.sample.as_ref(), default, |sample| {
        sample.map_or("off".to_owned(), |share| share.to_string())
    });
    let name = TracingConfig::SERVICE_NAME.to_owned();
    let service_name =
        rows.settle("tracing.service_name", raw.service_name.as_ref(), name, |name| name.clone());
    let limit =
        rows.settle("tracing.limit", raw.limit.as_ref(), TracingConfig::LIMIT, |limit| format!("{limit}/s"));
    Some(TracingConfig { otlp: of_traces(url), authorities, headers, sample, service_name, limit })
}

/// Warns of a port where something else is spoken, and of secrets that anybody on the way can read.
fn warn_of_the_way(raw: &RawTracing, report: &mut Report) {
    let Written { value: url, spot } = &raw.otlp;
    if url.port == 4317 {
        let message = "`otlp` has the port 4317, where collectors usually speak gRPC; OTLP over HTTP is usually at 4318";
        report.warn(spot, message);
    }
    let is_here = url.host == "localhost" || url.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if !url.is_tls && !is_here && url.user.is_some() {
        report.warn(spot, "the password of `otlp` is sent in plain text, because it is no https");
    }
    if let (false, false, Some(file)) = (url.is_tls, is_here, &raw.headers_file) {
        let message = "what is in `headers_file` is sent in plain text, because `otlp` is no https";
        report.warn(&file.spot, message);
    }
}

/// A URL with the path of traces: of one that names a collector it is added.
fn of_traces(url: &HttpUrl) -> HttpUrl {
    let base = url.path.trim_end_matches('/');
    let path: Arc<str> = match base.ends_with(TracingConfig::PATH) || base.contains('?') {
        true => Arc::clone(&url.path),
        false => format!("{base}{}", TracingConfig::PATH).into(),
    };
    HttpUrl { path, ..url.clone() }
}

/// Reads header lines, and gives them with the number of the file's content. No value is repeated.
fn headers_in(file: &Path) -> Result<(TraceHeaders, u64), Wrong> {
    let text = whole::text(file, FILE_MAX, EXPECTED)?;
    let name_of_file = quoted(&file.display().to_string());
    let wrong = |line: usize, why: &str| {
        Wrong::new(format!("is {name_of_file}, whose line {} {why}", line + 1), EXPECTED)
    };
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| wrong(number, "has no `:`"))?;
        let name = HeaderName::try_from(name.trim())
            .map_err(|_| wrong(number, "does not begin with the name of a header"))?;
        if OURS.contains(&name.as_str()) {
            let why = format!("has `{name}`, which evenkeel itself says");
            return Err(wrong(number, &why));
        }
        let mut value = HeaderValue::try_from(value.trim())
            .map_err(|_| wrong(number, "has a value that can't be sent"))?;
        value.set_sensitive(true);
        lines.push((name, value));
    }
    Ok((TraceHeaders::new(lines), number_of([text.as_bytes()])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TraceHeaders, String> {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), text).expect("writable");
        headers_in(file.path()).map(|(headers, _)| headers).map_err(|wrong| wrong.message)
    }

    #[test]
    fn a_file_of_headers_has_a_line_for_each_and_shows_no_value() {
        let headers = read("# who we are\nAuthorization: Bearer s3cret\n\nX-Tenant:a:b \r\n").expect("right");
        let all: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(all, [("authorization", &b"Bearer s3cret"[..]), ("x-tenant", b"a:b")]);
        assert_eq!(format!("{headers:?}"), r#"["authorization", "x-tenant"]"#);
        for (text, why) in [
            ("A: b\nBearer s3cret", "line 2 has no `:`"),
            (": s3cret", "line 1 does not begin with the name of a header"),
            ("Content-Length: 3", "line 1 has `content-length`, which evenkeel itself says"),
            ("A: s3\u{7}cret", "line 1 has a value that can't be sent"),
        ] {
            let message = read(text).expect_err(text);
            assert!(message.ends_with(why) && !message.contains("cret"), "{message}");
        }
    }

    #[test]
    fn a_collector_is_asked_at_the_path_of_traces() {
        for (path, asked) in [
            ("/", "/v1/traces"),
            ("/otlp/", "/otlp/v1/traces"),
            ("/v1/traces", "/v1/traces"),
            ("/a?b=c", "/a?b=c"),
        ] {
            let url =
                HttpUrl { is_tls: false, host: "h".to_owned(), port: 4318, path: path.into(), user: None };
            assert_eq!(&*of_traces(&url).path, asked);
        }
    }
}
