//! `recorder`: what is kept of requests that are over.

use crate::config::error::{Wrong, quoted};
use crate::config::model::RecorderConfig;
use crate::config::origin::Written;
use crate::config::raw::bounds::RECORDER;
use crate::config::raw::group::{items, section_or_off, there_already};
use crate::config::raw::reader::{Reader, found, subject};
use crate::config::raw::shape;
use crate::config::raw::vocabulary::words::is_token;
use crate::config::yaml::{Entry, Node, Typed};

/// `recorder` when it is not `off`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawRecorder {
    pub(in crate::config) memory: Option<Written<u64>>,
    pub(in crate::config) show_headers: Option<Written<Vec<String>>>,
}

/// Walks `recorder`; `None` inside: `off`.
pub(in crate::config::raw) fn walk(
    entry: &Entry,
    reader: &mut Reader<'_>,
) -> Option<Written<Option<RawRecorder>>> {
    const EXPECTED: &str = "`off`, or a mapping such as `{memory: 4MiB}`";
    let written = section_or_off(entry, reader, &shape::RECORDER, EXPECTED, None)?;
    let Some(section) = written.value else { return Some(Written::new(None, written.spot)) };
    let memory = section.find("memory").and_then(|entry| reader.size(entry, RECORDER.0..=RECORDER.1, false));
    let show_headers = section.find("show_headers").and_then(|entry| headers(entry, reader));
    Some(Written::new(Some(RawRecorder { memory, show_headers }), written.spot))
}

/// Names of header lines; nothing at all is none.
fn headers(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<String>>> {
    const EXPECTED: &str = "names of headers such as `[User-Agent, Content-Type]`, or `[]`";
    let all: &[Node] = match entry.node.typed() {
        Typed::List(items) => items,
        _ => items(entry, reader, EXPECTED)?,
    };
    let mut names: Vec<String> = Vec::with_capacity(all.len());
    for item in all {
        let (spot, wrong) = match header(item, EXPECTED) {
            Ok(name) if names.iter().any(|known| known.eq_ignore_ascii_case(&name)) => {
                (reader.spot_of_use(item), there_already(item, &name))
            }
            Ok(_) if names.len() == RecorderConfig::MOST_HEADERS => {
                let most = RecorderConfig::MOST_HEADERS;
                (reader.spot_of(item), Wrong::bare(format!("is one more than {most}, the most")))
            }
            Ok(name) => {
                names.push(name);
                continue;
            }
            Err(wrong) => (reader.spot_of(item), wrong),
        };
        reader.report.wrong(&spot, &subject(&entry.key), wrong);
    }
    (names.len() == all.len()).then(|| Written::new(names, reader.key_spot(entry)))
}

fn header(item: &Node, expected: &str) -> Result<String, Wrong> {
    let text = match (item.typed(), item.text()) {
        (Typed::Text(_) | Typed::Integer(_) | Typed::Float(_), Some(text)) => text,
        _ => return Err(Wrong::new(found(item), expected)),
    };
    if text == "*" {
        let wrong = Wrong::new("is \"*\", and no header is meant by that".to_owned(), expected);
        return Err(wrong
            .note("each one is listed by its name, so that no secret is kept that nobody has thought of"));
    }
    if !is_token(text) {
        return Err(Wrong::new(format!("is {}, which is no name of a header", quoted(text)), expected));
    }
    if text.len() > RecorderConfig::LONGEST_HEADER {
        let message =
            format!("is a name of {} bytes, and {} are the most", text.len(), RecorderConfig::LONGEST_HEADER);
        return Err(Wrong::bare(message));
    }
    if RecorderConfig::HIDDEN.iter().any(|hidden| text.eq_ignore_ascii_case(hidden)) {
        let wrong = Wrong::bare(format!("is {}, which is never kept", quoted(text)));
        return Err(wrong.note("what is in it lets others in"));
    }
    Ok(text.to_owned())
}
