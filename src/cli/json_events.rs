//! Events as JSON: one object in a line, for whoever collects logs.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::events;

/// Writes `{"timestamp":"…","level":"…","message":"…","fields":{…}}`; the names are always there.
pub(super) struct JsonEvents;

impl<S, N> FormatEvent<S, N> for JsonEvents
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut parts = Parts::default();
        event.record(&mut parts);
        writer.write_str("{\"timestamp\":\"")?;
        SystemTime.format_time(&mut writer)?;
        let level = level_name(*event.metadata().level());
        let Parts { message, fields } = parts;
        writeln!(
            writer,
            "\",\"level\":\"{level}\",\"message\":{},\"fields\":{{{fields}}}}}",
            quoted(&message)
        )
    }
}

/// A level as `logging` spells it.
fn level_name(level: Level) -> &'static str {
    if level == Level::ERROR {
        "error"
    } else if level == Level::WARN {
        "warn"
    } else if level == Level::INFO {
        "info"
    } else if level == Level::DEBUG {
        "debug"
    } else {
        "trace"
    }
}

/// What an event says.
#[derive(Default)]
struct Parts {
    message: String,
    /// The members of an object, without its braces.
    fields: String,
}

impl Parts {
    /// Adds a field whose value is JSON already.
    fn add(&mut self, field: &Field, value: impl fmt::Display) {
        let comma = if self.fields.is_empty() { "" } else { "," };
        // Writing to a String can't fail.
        let _ = write!(self.fields, "{comma}{}:{value}", quoted(field.name()));
    }
}

impl Visit for Parts {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.add(field, quoted(&format!("{value:?}")));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let is_object = events::OBJECTS.contains(&field.name());
        let object = if is_object { serde_json::from_str::<serde_json::Value>(value).ok() } else { None };
        match object {
            Some(object) => self.add(field, escaped(object.to_string())),
            None => self.record_debug(field, &format_args!("{value}")),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no word for what is not finite.
        if value.is_finite() { self.add(field, value) } else { self.add(field, "null") }
    }
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    escaped(serde_json::Value::from(text).to_string())
}

/// What could steer a terminal is escaped, beyond what RFC 8259 §7 asks for.
fn escaped(json: String) -> String {
    if !json.contains(|sign: char| matches!(sign, '\u{7f}'..='\u{9f}')) {
        return json;
    }
    json.chars().fold(String::with_capacity(json.len()), |mut safe, sign| {
        match sign {
            '\u{7f}'..='\u{9f}' => {
                // Writing to a String can't fail.
                let _ = write!(safe, "\\u{:04x}", u32::from(sign));
            }
            plain => safe.push(plain),
        }
        safe
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines that are logged inside, parsed, without their times.
    fn told(log: impl FnOnce()) -> Vec<Value> {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::TRACE)
            .with_writer(move || writer.clone())
            .event_format(JsonEvents)
            .finish();
        tracing::subscriber::with_default(subscriber, log);
        let text = String::from_utf8(lines.0.lock().expect("no panic").clone()).expect("UTF-8");
        assert!(!text.contains(|sign: char| sign.is_control() && sign != '\n'), "{text:?}");
        let parse = |line: &str| {
            let mut value: Value = serde_json::from_str(line).expect("one object in a line");
            let object = value.as_object_mut().expect("an object");
            let time = object.remove("timestamp").expect("a time");
            let time = time.as_str().expect("a text");
            assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
            value
        };
        text.lines().map(parse).collect()
    }

    #[test]
    fn what_is_an_object_is_no_text() {
        let lines = told(|| {
            tracing::warn!(by_cause = r#"{"queue_full":2}"#, other = r#"{"a":1}"#, "refused");
            tracing::warn!(by_cause = "nothing");
        });
        assert_eq!(lines[0]["fields"], json!({"by_cause": {"queue_full": 2}, "other": "{\"a\":1}"}));
        assert_eq!(lines[1]["fields"], json!({"by_cause": "nothing"}));
    }

    #[test]
    fn an_event_is_one_object_with_its_fields_of_their_types() {
        let target = "web";
        let error = io::Error::other("no \"way\"\nout\u{1b}[2J\u{9b}");
        let lines = told(|| {
            tracing::info!(target, count = 3_u64, delta = -4, good = true, part = 0.5, "{} is up", "web/a");
            tracing::error!(%error, odd = f64::NAN, optional = ?Some(1));
            tracing::warn!("plain");
            tracing::debug!("d");
            tracing::trace!("t");
        });
        assert_eq!(
            lines,
            [
                json!({"level": "info", "message": "web/a is up", "fields":
                    {"target": "web", "count": 3, "delta": -4, "good": true, "part": 0.5}}),
                json!({"level": "error", "message": "", "fields":
                    {"error": "no \"way\"\nout\u{1b}[2J\u{9b}", "odd": null, "optional": "Some(1)"}}),
                json!({"level": "warn", "message": "plain", "fields": {}}),
                json!({"level": "debug", "message": "d", "fields": {}}),
                json!({"level": "trace", "message": "t", "fields": {}}),
            ]
        );
    }
}
