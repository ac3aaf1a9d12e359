//! What a byte may be a part of.

/// Bytes of a token (RFC 9110 §5.6.2).
const TOKEN: u8 = 1;
/// Bytes of a host's name that stand for themselves (RFC 3986 §3.2.2).
const HOST: u8 = 2;

/// What each byte may be a part of.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        if (byte as u8).is_ascii_alphanumeric() {
            classes[byte] = TOKEN | HOST;
        }
        byte += 1;
    }
    let marks = [(b"!#$%&'*+-.^_`|~".as_slice(), TOKEN), (b"-._~!$&'()*+,;=".as_slice(), HOST)];
    let mut kind = 0;
    while kind < marks.len() {
        let mut at = 0;
        while at < marks[kind].0.len() {
            classes[marks[kind].0[at] as usize] |= marks[kind].1;
            at += 1;
        }
        kind += 1;
    }
    classes
};

/// RFC 9110 §5.6.2.
#[must_use]
pub fn is_token(byte: u8) -> bool {
    CLASSES[usize::from(byte)] & TOKEN != 0
}

/// Control bytes that no value may hold; a tab is none.
#[must_use]
pub fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

/// RFC 3986 §3.2.2, but for escapes.
#[must_use]
pub fn is_host_name(byte: u8) -> bool {
    CLASSES[usize::from(byte)] & HOST != 0
}
