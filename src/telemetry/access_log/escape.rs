//! Bytes from a client made harmless for a log line.
//!
//! A line must stay one line, a field one field, and a terminal must not be steered by what a stranger
//! sent. Values are cut at [`MAX_VALUE`] bytes and then end in `...`, so nobody can bloat the log.

use super::digits::HEX;
use crate::config::model::template::Slot;

/// Bytes of a value that are logged; longer ones are cut.
pub(super) const MAX_VALUE: usize = 4096;

/// Appends `value` to a line of text: printable ASCII as it is; every other byte, `"`, `\` and the byte at which
/// `slot` ends as `\xNN`. A blank stays where it ends nothing.
pub(super) fn write_free(out: &mut Vec<u8>, value: &[u8], slot: Slot) {
    write_text(out, value, slot, slot.keeps_blanks());
}

/// The same for a value that is one word: a blank becomes `\x20` wherever it stands.
pub(super) fn write_word(out: &mut Vec<u8>, value: &[u8], slot: Slot) {
    write_text(out, value, slot, false);
}

fn write_text(out: &mut Vec<u8>, value: &[u8], slot: Slot, blanks: bool) {
    let first = if blanks { b' ' } else { b'!' };
    let plain = |byte: u8| {
        (first..=b'~').contains(&byte) && byte != b'"' && byte != b'\\' && Some(byte) != slot.until
    };
    let (mut rest, cut) = shorten(value);
    while !rest.is_empty() {
        // Runs of plain bytes are nearly everything, and one copy each.
        let run = rest.iter().position(|&byte| !plain(byte)).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..run]);
        rest = &rest[run..];
        if let Some((&byte, after)) = rest.split_first() {
            out.extend_from_slice(&[b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            rest = after;
        }
    }
    if cut {
        out.extend_from_slice(if slot.until == Some(b'.') { br"\x2e\x2e\x2e" } else { b"..." });
    }
}

/// Appends `value` as a JSON string with its quotes (RFC 8259 §7); always valid UTF-8.
///
/// Valid UTF-8 stays as it is, except `"`, `\`, control characters (C0, DEL, C1) and the separators and
/// direction marks that would change how a line is shown: those become `\uNNNN`. Each invalid sequence
/// becomes one `\ufffd`.
pub(super) fn write_json(out: &mut Vec<u8>, value: &[u8]) {
    let (value, cut) = shorten(value);
    out.push(b'"');
    if value.iter().all(|&byte| is_plain_json(byte)) {
        out.extend_from_slice(value);
    } else {
        for chunk in value.utf8_chunks() {
            write_json_text(out, chunk.valid());
            if !chunk.invalid().is_empty() {
                out.extend_from_slice(b"\\ufffd");
            }
        }
    }
    out.extend_from_slice(if cut { b"...\"" } else { b"\"" });
}

fn write_json_text(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (place, character) in text.char_indices() {
        let plain = u8::try_from(character).map_or_else(
            // Latin-1 was decided in the other arm; this is U+0100 and above.
            |_| !matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'),
            |latin| is_plain_json(latin) || latin >= 0xa0,
        );
        if plain {
            continue;
        }
        out.extend_from_slice(&bytes[copied..place]);
        copied = place + character.len_utf8();
        match character {
            '"' | '\\' => out.extend_from_slice(&[b'\\', bytes[place]]),
            other => {
                out.extend_from_slice(b"\\u");
                // Everything that is escaped here lies below U+10000: four digits are enough.
                let code = u32::from(other);
                for shift in [12, 8, 4, 0] {
                    out.push(HEX[(code >> shift & 15) as usize]);
                }
            }
        }
    }
    out.extend_from_slice(&bytes[copied..]);
}

fn is_plain_json(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

/// The part of `value` that is logged, and whether that is less than all. A UTF-8 character is not torn.
fn shorten(value: &[u8]) -> (&[u8], bool) {
    if value.len() <= MAX_VALUE {
        return (value, false);
    }
    let whole = (MAX_VALUE - 3..=MAX_VALUE).rev().find(|&end| value[end] & 0xc0 != 0x80);
    (&value[..whole.unwrap_or(MAX_VALUE)], true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OPEN: Slot = Slot { until: None, quoted: false };
    const QUOTED: Slot = Slot { until: Some(b'"'), quoted: true };

    fn quoted(out: &mut Vec<u8>, value: &[u8]) {
        write_free(out, value, QUOTED);
    }

    fn word(out: &mut Vec<u8>, value: &[u8]) {
        write_word(out, value, QUOTED);
    }

    fn on(write: impl Fn(&mut Vec<u8>, &[u8]), value: &[u8]) -> String {
        let mut out = Vec::new();
        write(&mut out, value);
        String::from_utf8(out).expect("always UTF-8")
    }

    #[test]
    fn text_escapes_all_but_printable_ascii() {
        assert_eq!(
            on(quoted, b"a b\"c\\d\r\n\x1b[2J\x7f\xff\xc3\xa9"),
            r"a b\x22c\x5cd\x0d\x0a\x1b[2J\x7f\xff\xc3\xa9"
        );
        assert_eq!(on(word, b"a b"), r"a\x20b");
        assert_eq!(on(word, b""), "");
    }

    #[test]
    fn what_ends_a_value_is_never_in_it() {
        let at = |slot: Slot| {
            let mut out = Vec::new();
            write_free(&mut out, b"a b|c.", slot);
            String::from_utf8(out).expect("ASCII")
        };
        assert_eq!(at(OPEN), r"a\x20b|c.");
        assert_eq!(at(Slot { until: Some(b'|'), quoted: false }), r"a\x20b\x7cc.");
        assert_eq!(at(Slot { until: Some(b'|'), quoted: true }), r"a b\x7cc.");
        assert_eq!(at(Slot { until: Some(b' '), quoted: true }), r"a\x20b|c.");
        let mut out = Vec::new();
        write_word(&mut out, &[b'.'; MAX_VALUE + 1], Slot { until: Some(b'.'), quoted: true });
        assert!(!out.contains(&b'.'), "not even by what tells that it was cut");
    }

    #[test]
    fn json_keeps_valid_text_and_replaces_the_rest() {
        assert_eq!(on(write_json, "/é€😀".as_bytes()), "\"/é€😀\"");
        assert_eq!(on(write_json, b"\"\\\n\x00\x7f"), r#""\"\\\u000a\u0000\u007f""#);
        assert_eq!(
            on(write_json, "\u{85}\u{a0}\u{2028}\u{202e}".as_bytes()),
            "\"\\u0085\u{a0}\\u2028\\u202e\""
        );
        assert_eq!(on(write_json, b"a\xff\xfeb\xe2\x82"), r#""a\ufffd\ufffdb\ufffd""#);
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let long = vec![b'a'; MAX_VALUE + 1];
        assert_eq!(on(word, &long), format!("{}...", "a".repeat(MAX_VALUE)));
        assert_eq!(on(word, &long[1..]), "a".repeat(MAX_VALUE));
        let accents = "é".repeat(MAX_VALUE);
        let torn = format!("x{accents}");
        assert_eq!(on(write_json, torn.as_bytes()), format!("\"x{}...\"", "é".repeat(MAX_VALUE / 2 - 1)));
        assert_eq!(on(quoted, &vec![0x80; MAX_VALUE + 9]).len(), 4 * MAX_VALUE + 3);
    }

    proptest! {
        #[test]
        fn any_bytes_stay_inside_their_field(
            value in prop::collection::vec(any::<u8>(), 0..5000), until: Option<u8>, inside: bool,
        ) {
            let slot = Slot { until, quoted: inside };
            let mut free = Vec::new();
            write_free(&mut free, &value, slot);
            prop_assert!(free.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'"'));
            prop_assert!(slot.keeps_blanks() || !free.contains(&b' '));
            // A backslash, `x` and hex digits are the one escape that a value can't do without.
            let ends = until.filter(|byte| !byte.is_ascii_hexdigit() && !b"\\x".contains(byte));
            prop_assert!(ends.is_none_or(|byte| !free.contains(&byte)));
            let word = on(word, &value);
            prop_assert!(word.bytes().all(|byte| matches!(byte, b'!'..=b'~') && byte != b'"'));
            let quoted = on(quoted, &value);
            prop_assert!(quoted.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"'));
            let json = on(write_json, &value);
            let back: String = serde_json::from_str(&json).expect("valid JSON");
            let expected = String::from_utf8_lossy(&value);
            if value.len() <= MAX_VALUE {
                prop_assert_eq!(back, expected);
            } else {
                prop_assert!(back.ends_with("..."));
            }
            prop_assert!(!json.contains(|c: char| c.is_control()));
        }
    }
}
