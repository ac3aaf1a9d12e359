//! Events as JSON: one object in a line, for whoever collects logs.

use std::fmt::{self, Write as _};

use serde::Serialize;
use tracing::Subscriber;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::events::{EventFacts, EventKind, Saying, level_of};
use crate::message::steers;

/// Writes `{"timestamp":"…","level":"…","kind":"…","message":"…","fields":{…}}`; all names but `kind` are always there.
pub(super) struct JsonEvents;

/// One line.
#[derive(Serialize)]
struct JsonLine<'a> {
    timestamp: &'a str,
    level: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    message: &'a str,
    fields: &'a EventFacts,
}

impl<S, N> FormatEvent<S, N> for JsonEvents
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        told: &tracing::Event<'_>,
    ) -> fmt::Result {
        let mut timestamp = String::new();
        SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
        let Saying { text, kind, facts } = Saying::of(told);
        let line = JsonLine {
            timestamp: &timestamp,
            level: level_of(told).name(),
            kind: kind.map(EventKind::name),
            message: &text,
            fields: &facts,
        };
        let line = serde_json::to_string(&line).map_err(|_| fmt::Error)?;
        writeln!(writer, "{}", escaped(line))
    }
}

/// What could steer a terminal is escaped, beyond what RFC 8259 §7 asks for.
pub(super) fn escaped(json: String) -> String {
    // Those below are between values, where JSON has them.
    let is_harmful = |sign: char| steers(sign) && sign >= ' ';
    if !json.contains(is_harmful) {
        return json;
    }
    json.chars().fold(String::with_capacity(json.len()), |mut safe, sign| {
        if is_harmful(sign) {
            for unit in sign.encode_utf16(&mut [0; 2]) {
                // Writing to a String can't fail.
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(sign);
        }
        safe
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tracing::Level;

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
            tracing::error!(kind = EventKind::Fatal.name(), place = "a:1", "no");
        });
        assert_eq!(lines[0]["fields"], json!({"by_cause": {"queue_full": 2}, "other": "{\"a\":1}"}));
        assert_eq!(lines[1]["fields"], json!({"by_cause": "nothing"}));
        let fatal = json!({"level": "error", "kind": "fatal", "message": "no", "fields": {"place": "a:1"}});
        assert_eq!(lines[2], fatal);
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
