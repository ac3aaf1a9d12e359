//! By what a receiver knows that a message is ours and new: HMAC-SHA256 over the time and the body.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};

use crate::config::model::WebhookSecret;

/// The header that has it.
pub(super) const SIGNATURE: &str = "evenkeel-signature";

/// `t=SECONDS,v1=HEX`: the time of the attempt in seconds since 1970, and the HMAC of `SECONDS.BODY`.
#[must_use]
pub(super) fn signature(secret: &WebhookSecret, seconds: u64, body: &[u8]) -> String {
    let key = Key::new(HMAC_SHA256, secret.bytes());
    let mut signed = format!("{seconds}.").into_bytes();
    signed.extend_from_slice(body);
    let tag = sign(&key, &signed);
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef` prints.
    #[test]
    fn a_signature_is_what_others_compute() {
        let secret = WebhookSecret::new(b"0123456789abcdef"[..].into());
        let expected = "t=1700000000,v1=9eb18f493f8ec135d9eb2dad817c369bb4e9cbfa818657897a7437c1cd8c3a23";
        assert_eq!(signature(&secret, 1_700_000_000, br#"{"a":1}"#), expected);
        assert_ne!(signature(&secret, 1_700_000_001, br#"{"a":1}"#)[13..], expected[13..]);
    }
}
