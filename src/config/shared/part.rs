//! What of a node's file is shared: its text without what each node has its own of.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::NODE_KEYS;
use crate::config::include::{self, Instead};
use crate::config::origin::{Place, SourceFile};
use crate::config::raw;
use crate::config::report::Report;
use crate::config::yaml::{self, Value};

/// What of a text is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPart {
    /// The text, with empty lines where a node's own keys stood, so that each line is where it was.
    pub text: Arc<str>,
    /// What in it is nobody's business.
    pub secrets: Vec<InlineSecret>,
}

/// A secret that stands in a text as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineSecret {
    /// In which line, counted from 1.
    pub line: u32,
    /// The key before it.
    pub key: String,
}

/// Why a text can't be shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uncut {
    /// It is no YAML, or no mapping.
    NoMapping,
    /// One of the node's own keys stands in a line with others.
    SameLine {
        /// The line, counted from 1.
        line: u32,
        /// The key.
        key: String,
    },
}

impl fmt::Display for Uncut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Uncut::NoMapping => f.write_str("it is no mapping of keys"),
            Uncut::SameLine { line, key } => write!(
                f,
                "line {line}: `{key}` is this node's own and shares a line with other keys; give it lines of its own"
            ),
        }
    }
}

/// What of `text`, the file `own`, is shared.
///
/// # Errors
/// It can't be taken apart.
pub fn shared_part(
    text: &str,
    own: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<SharedPart, Uncut> {
    let mut report = Report::new(vec![SourceFile::new(own, text)]);
    let root = yaml::read(text, 0, &mut report).ok_or(Uncut::NoMapping)?;
    let Value::Map(entries) = &root.value else { return Err(Uncut::NoMapping) };
    // Merged keys stand where they were defined.
    let mut starts: Vec<(Place, bool, &str)> = entries
        .iter()
        .map(|entry| (entry.key_place, NODE_KEYS.contains(&&*entry.key), entry.key.as_str()))
        .collect();
    starts.sort_by_key(|(place, ..)| (place.line, place.column));
    let mut lines: Vec<&str> = text.split('\n').collect();
    for (number, (place, is_own, key)) in starts.iter().enumerate() {
        if !is_own {
            continue;
        }
        let next = starts.get(number + 1).map(|(next, ..)| next.line);
        let shares = place.column > 1
            || next == Some(place.line)
            || number.checked_sub(1).is_some_and(|before| starts[before].0.line == place.line);
        if shares {
            return Err(Uncut::SameLine { line: place.line, key: (*key).to_owned() });
        }
        let end = next.map_or(lines.len(), |next| next as usize - 1);
        for line in &mut lines[place.line as usize - 1..end] {
            // The end of a document, and what is behind it, is none of the key's.
            if line.starts_with("...") || line.starts_with("---") {
                break;
            }
            *line = "";
        }
    }
    let text: Arc<str> = lines.join("\n").into();
    // What can't be read for itself may have secrets in it that nobody sees.
    let secrets = secrets(&text, own, env).ok_or(Uncut::NoMapping)?;
    Ok(SharedPart { text, secrets })
}

/// What stands in it that the walker takes for a secret, and is no reference such as `${NAME}`.
fn secrets(text: &Arc<str>, own: &Path, env: &dyn Fn(&str) -> Option<String>) -> Option<Vec<InlineSecret>> {
    let main = SourceFile { text: Arc::clone(text), ..SourceFile::new(own, "") };
    let mut report = Report::new(vec![main]);
    let gathered = include::gather(&mut report, 0, &Instead::new(), env)?;
    raw::walk(&gathered.roots, gathered.included, &mut raw::Reader::new(&mut report));
    let mut found: Vec<InlineSecret> = Vec::new();
    for place in report.secrets().iter().filter(|place| place.file == 0) {
        let line = text.split('\n').nth(place.line as usize - 1).unwrap_or_default();
        let (before, written): (String, String) = {
            let at = place.column as usize - 1;
            (line.chars().take(at).collect(), line.chars().skip(at).collect())
        };
        let written = written.trim_start_matches(['"', '\'']);
        let is_there = found.iter().any(|other| other.line == place.line);
        if !written.starts_with("${") && !is_there {
            let before = before.trim_end_matches([' ', ':', '-', '"', '\'']);
            let key = before.rsplit([' ', '{', ',', '[', '"', '\'']).next().unwrap_or_default();
            found.push(InlineSecret { line: place.line, key: key.to_owned() });
        }
    }
    Some(found)
}
