//! The lines by which the two ends of a WebSocket know that they understood one another (RFC 6455 §4). HTTP/2 has none of them
//! (RFC 8441 §5), so whoever stands between the two makes them.

use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What is appended to a key (§1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The line of a key.
pub const KEY: &str = "sec-websocket-key";
/// The line that answers it.
pub const ACCEPT: &str = "sec-websocket-accept";

/// A key from these bits, which are chance.
#[must_use]
pub fn key(bits: [u64; 2]) -> String {
    STANDARD.encode([bits[0].to_be_bytes(), bits[1].to_be_bytes()].concat())
}

/// What a server answers to a key (§4.2.2).
#[must_use]
pub fn accept(key: &[u8]) -> String {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    context.update(key);
    context.update(GUID);
    STANDARD.encode(context.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_that_of_the_rfc() {
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(key([0, 0]), "AAAAAAAAAAAAAAAAAAAAAA==");
        assert_ne!(key([1, 0]), key([0, 1]));
    }
}
