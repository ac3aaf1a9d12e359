//! What literals are worth (RFC 9113 §8.2.1): what goes on as HTTP/1.1 must be as strict as what came as HTTP/1.1.

use super::super::super::h1::{parse, scan};
use super::line::{LineKind, Pseudo};
use super::statics;

/// What a name stands for, and its first index in the static table; 0: it has none.
pub(super) fn name(name: &[u8]) -> (LineKind, u8) {
    let known = statics::find(name);
    if let Some(line) = statics::get(usize::from(known)) {
        // Found in any case; capitals are no letters of a name here.
        return if line.name() == name { (line.kind, known) } else { (LineKind::Malformed, 0) };
    }
    (unknown(name), 0)
}

/// The same of a name that is not in the static table.
fn unknown(name: &[u8]) -> LineKind {
    if name == b":protocol" {
        return LineKind::Pseudo(Pseudo::Protocol);
    }
    let (behind, plain) = scan::token(name);
    if name.is_empty() || !behind.is_empty() || name.iter().any(u8::is_ascii_uppercase) {
        return LineKind::Malformed;
    }
    parse::classify(name, plain).map_or(LineKind::Malformed, LineKind::Field)
}

/// Whether this may be the value of a line: without control bytes, and without blanks around it.
pub(super) fn is_value(value: &[u8]) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    scan::value(value).is_empty() && !is_blank(value.first()) && !is_blank(value.last())
}
