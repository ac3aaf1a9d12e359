//! Names and tokens: single words that become part of logs, identities and headers.

use crate::config::error::{Wrong, quoted};

/// Longest name of a target, a backend or an upgrade protocol.
const NAME_MAX: usize = 128;

/// Names stand in logs, metrics and identities (`target/backend`).
pub(in crate::config) fn name(text: &str) -> Result<String, Wrong> {
    if text.is_empty() {
        return Err(Wrong::new("is empty", "a word"));
    }
    if text.chars().count() > NAME_MAX {
        return Err(Wrong::bare(format!("is longer than {NAME_MAX} characters")));
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '/') {
        return Err(Wrong::new(format!("is {}, which has a blank or a `/` in it", quoted(text)), "one word"));
    }
    Ok(text.to_owned())
}

/// A token (RFC 9110 §5.6.2).
pub(in crate::config::raw) fn is_token(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(fits)
}
