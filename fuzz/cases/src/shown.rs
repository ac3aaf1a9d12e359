//! Heads and bytes in a form that can be compared and read.

use evenkeel::message::Head;

use crate::strict::Field;

/// The lines of a head as fields.
pub(crate) fn fields(head: &Head) -> Vec<Field> {
    let pairs = head.lines().iter().map(|line| head.pair(line));
    pairs.map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

/// Bytes for the eye.
pub(crate) fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
