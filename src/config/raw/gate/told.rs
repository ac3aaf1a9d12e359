//! Names of header lines by which backends are told who a client is.

use crate::config::error::{Wrong, quoted};
use crate::config::raw::vocabulary::words::is_token;

/// Names that requests have for other reasons.
const TAKEN: &[&str] = &[
    "host",
    "user-agent",
    "referer",
    "connection",
    "keep-alive",
    "authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "date",
    "via",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-client-cert",
    "x-real-ip",
    "x-request-id",
    "x-evenkeel-mirror",
    "client-cert",
    "client-cert-chain",
    "retry-attempt",
    "cookie",
    "set-cookie",
    "origin",
    "range",
];
/// How others of them begin.
const TAKEN_STARTS: &[&str] = &["content-", "accept", "if-", "proxy-", "http2-", "www-"];

/// The name of a line that no client sends: one that means something else already is none.
pub(in crate::config::raw) fn told(text: &str) -> Result<String, Wrong> {
    const EXPECTED: &str = "a header that only tells who a client is, such as `X-User`";
    if !is_token(text) {
        return Err(Wrong::new(format!("is {}, which is no name of a header", quoted(text)), EXPECTED));
    }
    let lower = text.to_ascii_lowercase().replace('_', "-");
    if TAKEN.contains(&&*lower) || TAKEN_STARTS.iter().any(|start| lower.starts_with(start)) {
        let message = format!("is {}, which requests have for other reasons", quoted(text));
        return Err(Wrong::new(message, EXPECTED)
            .note("lines of these names are taken away from what clients send, on every route"));
    }
    Ok(text.to_owned())
}
