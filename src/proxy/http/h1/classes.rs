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

/// How many bytes of a host's name `bytes` begins with.
#[must_use]
pub fn host_name_length(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    // Four with one branch: every request has a Host.
    while let Some((four, behind)) = rest.split_first_chunk::<4>()
        && four.iter().fold(HOST, |common, &byte| common & CLASSES[usize::from(byte)]) != 0
    {
        rest = behind;
    }
    while let [byte, behind @ ..] = rest
        && is_host_name(*byte)
    {
        rest = behind;
    }
    bytes.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_ends_at_the_first_byte_that_is_none_wherever_it_stands() {
        for stop in (0..=u8::MAX).filter(|&byte| !is_host_name(byte)) {
            for length in 0..12 {
                for place in 0..=length {
                    let mut bytes = vec![b'a'; length];
                    bytes.splice(place..place, [stop]);
                    assert_eq!(host_name_length(&bytes), place);
                    assert_eq!(host_name_length(&bytes[..place]), place);
                }
            }
        }
    }
}
