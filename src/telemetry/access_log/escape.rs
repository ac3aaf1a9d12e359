//! Bytes from a client made harmless for a log line.
//!
//! A line must stay one line, a field one field, and a terminal must not be steered by what a stranger
//! sent. Values are cut at [`MAX_VALUE`] bytes, and those that are nearly all escapes after [`MOST_ESCAPES`] of them; they
//! end in `...` then. So nobody can bloat the log, or make its lines cost more than the requests.

use super::batch::{Left, LineSpace, put};
use super::digits::hex;
use crate::config::model::template::Slot;
use crate::message::steers;

/// Bytes of a value that are logged; longer ones are cut.
pub(super) const MAX_VALUE: usize = 4096;

/// Bytes of a value that are escaped; before the next one it is cut.
pub(super) const MOST_ESCAPES: usize = 128;

/// Writes `value` as text: printable ASCII as it is; every other byte, `"`, `\` and the byte at which `slot` ends
/// as `\xNN`. A blank stays where it ends nothing.
pub(super) fn write_free<'a>(room: LineSpace<'a>, value: &[u8], slot: Slot) -> Left<'a> {
    write_text(room, value, slot, slot.keeps_blanks())
}

/// The same for a value that is one word: a blank becomes `\x20` wherever it stands.
pub(super) fn write_word<'a>(room: LineSpace<'a>, value: &[u8], slot: Slot) -> Left<'a> {
    write_text(room, value, slot, false)
}

fn write_text<'a>(room: LineSpace<'a>, value: &[u8], slot: Slot, blanks: bool) -> Left<'a> {
    let set = Plain { first: if blanks { b' ' } else { b'!' }, until: slot.until.unwrap_or(b'"') };
    if value.len() <= MAX_VALUE && set.copy(value, room.get_mut(..value.len())?) {
        room.get_mut(value.len()..)
    } else {
        write_escaped(room, value, set)
    }
}

/// The same for a value that has to be cut or has something to escape.
#[cold]
fn write_escaped<'a>(mut room: LineSpace<'a>, value: &[u8], set: Plain) -> Left<'a> {
    let (mut rest, mut cut) = shorten(value);
    let mut escapes = MOST_ESCAPES;
    while !rest.is_empty() {
        // Runs of plain bytes are nearly everything, and one copy each.
        let run = rest.iter().position(|&byte| !set.has(byte)).unwrap_or(rest.len());
        room = put(room, &rest[..run])?;
        rest = &rest[run..];
        if let Some((&byte, after)) = rest.split_first() {
            if escapes == 0 {
                cut = true;
                break;
            }
            escapes -= 1;
            room = put(room, &[b'\\', b'x', hex(byte >> 4), hex(byte & 15)])?;
            rest = after;
        }
    }
    let dots: &[u8] = if set.has(b'.') { b"..." } else { br"\x2e\x2e\x2e" };
    if cut { put(room, dots) } else { Some(room) }
}

/// Writes `value` as a JSON string with its quotes (RFC 8259 §7); always valid UTF-8.
///
/// Valid UTF-8 stays as it is, except `"`, `\` and what would change how a line is shown ([`steers`]): those
/// become `\uNNNN`. Each invalid sequence
/// becomes one `\ufffd`.
pub(super) fn write_json<'a>(room: LineSpace<'a>, value: &[u8]) -> Left<'a> {
    write_json_rest(put(room, b"\"")?, value)
}

/// The same where the first quote stands already.
pub(super) fn write_json_rest<'a>(room: LineSpace<'a>, value: &[u8]) -> Left<'a> {
    let length = value.len();
    if length <= MAX_VALUE
        && let [inside @ .., close] = room.get_mut(..length + 1)?
        && JSON.copy(value, inside)
    {
        *close = b'"';
        return room.get_mut(length + 1..);
    }
    write_json_escaped(room, value)
}

/// The same for a value that has to be cut or has something to escape.
#[cold]
fn write_json_escaped<'a>(mut room: LineSpace<'a>, value: &[u8]) -> Left<'a> {
    let (value, cut) = shorten(value);
    if cut && JSON.copy(value, room.get_mut(..value.len())?) {
        return put(room.get_mut(value.len()..)?, b"...\"");
    }
    let mut escapes = MOST_ESCAPES;
    for chunk in value.utf8_chunks() {
        room = write_json_text(room, chunk.valid(), &mut escapes)?;
        if escapes == 0 {
            break;
        }
        if !chunk.invalid().is_empty() {
            escapes -= 1;
            if escapes == 0 {
                break;
            }
            room = put(room, b"\\ufffd")?;
        }
    }
    put(room, if cut || escapes == 0 { b"...\"" } else { b"\"" })
}

/// Writes text up to where the last of these escapes would be.
fn write_json_text<'a>(mut room: LineSpace<'a>, text: &str, escapes: &mut usize) -> Left<'a> {
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (place, character) in text.char_indices() {
        let plain = u8::try_from(character).map_or_else(
            // Latin-1 was decided in the other arm; this is U+0100 and above.
            |_| !steers(character),
            |latin| JSON.has(latin) || latin >= 0xa0 && !steers(character),
        );
        if plain {
            continue;
        }
        room = put(room, &bytes[copied..place])?;
        *escapes = escapes.saturating_sub(1);
        if *escapes == 0 {
            return Some(room);
        }
        copied = place + character.len_utf8();
        room = match character {
            '"' | '\\' => put(room, &[b'\\', bytes[place]])?,
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    let [high, low] = unit.to_be_bytes();
                    room = put(
                        room,
                        &[b'\\', b'u', hex(high >> 4), hex(high & 15), hex(low >> 4), hex(low & 15)],
                    )?;
                }
                room
            }
        };
    }
    put(room, &bytes[copied..])
}

/// Bytes that stay as they are: printable ASCII from `first` on but for `"`, `\` and `until`.
#[derive(Clone, Copy)]
struct Plain {
    /// A blank or what follows it.
    first: u8,
    until: u8,
}

/// Those of JSON.
const JSON: Plain = Plain { first: b' ', until: b'"' };

/// Eight bytes of 1.
const ONES: u64 = 0x0101_0101_0101_0101;

impl Plain {
    #[inline(always)]
    const fn has(self, byte: u8) -> bool {
        (byte >= self.first) & (byte <= b'~') & (byte != b'"') & (byte != b'\\') & (byte != self.until)
    }

    /// Copies `from` to `to`, which is as long, and tells whether all of it is plain; if not, what was copied means
    /// nothing. Pieces of one length overlap, so that hardly a byte is looked at alone.
    ///
    /// It ends at the first piece that is not plain. That also keeps the compiler from making a call of `memcpy` and a
    /// vectorised loop of this, which cost more than they save where values are as short as here.
    #[inline(always)]
    fn copy(self, from: &[u8], to: &mut [u8]) -> bool {
        if let (Some(last), Some(end)) = (from.last_chunk(), to.last_chunk_mut()) {
            *end = *last;
            for (from, to) in from.as_chunks().0.iter().zip(to.as_chunks_mut().0) {
                *to = *from;
                if !self.has_eight(u64::from_ne_bytes(*from)) {
                    return false;
                }
            }
            return self.has_eight(u64::from_ne_bytes(*last));
        }
        if let (Some(first), Some(last)) = (from.first_chunk(), from.last_chunk()) {
            to.first_chunk_mut().into_iter().for_each(|start| *start = *first);
            to.last_chunk_mut().into_iter().for_each(|end| *end = *last);
            let [first, last] = [first, last].map(|four| u64::from(u32::from_ne_bytes(*four)));
            return self.has_eight(first << 32 | last);
        }
        for (from, to) in from.iter().zip(to) {
            *to = *from;
            if !self.has(*from) {
                return false;
            }
        }
        true
    }

    /// Eight bytes in one number. In each step a byte that is not plain, and without such a one none, gets its highest
    /// bit: what a carry or a borrow does to the neighbour of one matters no more then.
    #[inline(always)]
    const fn has_eight(self, bytes: u64) -> bool {
        let delete = bytes.wrapping_add(ONES);
        // It makes a backslash a DEL.
        let backslash = (bytes ^ (ONES * (b'\\' ^ 0x7f) as u64)).wrapping_add(ONES);
        // It swaps blank and quote and leaves the control bytes among themselves: all but the blank are low then.
        let quote = (bytes ^ (ONES * (b'"' ^ b' ') as u64)).wrapping_sub(ONES * b'!' as u64);
        // What is not ASCII is never plain.
        let odd = bytes | delete | backslash | quote;
        if self.first == JSON.first && self.until == JSON.until {
            return odd & (ONES << 7) == 0;
        }
        let until = if self.until < 0x80 { self.until } else { b'"' };
        let low = bytes.wrapping_sub(ONES * self.first as u64);
        let end = (bytes ^ (ONES * until as u64)).wrapping_sub(ONES);
        (odd | low | end) & (ONES << 7) == 0
    }
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
    use crate::telemetry::access_log::batch::text_of;

    const OPEN: Slot = Slot { until: None, quoted: false };
    const QUOTED: Slot = Slot { until: Some(b'"'), quoted: true };

    fn quoted<'a>(room: LineSpace<'a>, value: &[u8]) -> Left<'a> {
        write_free(room, value, QUOTED)
    }

    fn word<'a>(room: LineSpace<'a>, value: &[u8]) -> Left<'a> {
        write_word(room, value, QUOTED)
    }

    fn on(write: impl for<'a> Fn(LineSpace<'a>, &[u8]) -> Left<'a>, value: &[u8]) -> String {
        text_of(|room| write(room, value))
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
        let at = |slot: Slot| text_of(|room| write_free(room, b"a b|c.", slot));
        assert_eq!(at(OPEN), r"a\x20b|c.");
        assert_eq!(at(Slot { until: Some(b'|'), quoted: false }), r"a\x20b\x7cc.");
        assert_eq!(at(Slot { until: Some(b'|'), quoted: true }), r"a b\x7cc.");
        assert_eq!(at(Slot { until: Some(b' '), quoted: true }), r"a\x20b|c.");
        let dots = Slot { until: Some(b'.'), quoted: true };
        let out = text_of(|room| write_word(room, &[b'.'; MAX_VALUE + 1], dots));
        assert!(!out.contains('.'), "not even by what tells that it was cut");
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
    }

    #[test]
    fn values_of_nearly_nothing_but_escapes_are_cut_early() {
        let bytes = [0x80; MOST_ESCAPES];
        assert_eq!(on(quoted, &bytes), r"\x80".repeat(MOST_ESCAPES));
        assert_eq!(on(quoted, &[0x80; MAX_VALUE + 9]), r"\x80".repeat(MOST_ESCAPES) + "...");
        let plain = "a".repeat(3000);
        assert_eq!(on(quoted, format!("{plain}\"{plain}").as_bytes()).len(), MAX_VALUE + 3 + 3);
        for (one, escaped) in
            [(&b"\xff"[..], r"\ufffd"), (b"\"", r#"\""#), ("\u{200e}".as_bytes(), r"\u200e")]
        {
            let most = MOST_ESCAPES - 1;
            assert_eq!(on(write_json, &one.repeat(most)), format!("\"{}\"", escaped.repeat(most)));
            assert_eq!(
                on(write_json, &one.repeat(MOST_ESCAPES + 1)),
                format!("\"{}...\"", escaped.repeat(most))
            );
        }
    }

    /// Every byte at every place of values that are looked at in every way.
    #[test]
    fn a_set_has_all_of_its_bytes_and_no_other() {
        for set in [JSON, Plain { first: b'!', until: b'|' }, Plain { first: b' ', until: 0xc3 }] {
            for length in [1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40] {
                for (byte, place) in (0..=255).flat_map(|byte| (0..length).map(move |place| (byte, place))) {
                    let (mut value, mut copied) = (vec![b'x'; length], vec![0; length]);
                    value[place] = byte;
                    let plain = set.copy(&value, &mut copied);
                    let expected =
                        (set.first..=b'~').contains(&byte) && !b"\"\\".contains(&byte) && byte != set.until;
                    assert_eq!(plain, expected, "{byte} at {place} of {length}");
                    assert!(!plain || copied == value, "{byte} at {place} of {length}");
                }
            }
            assert!(set.copy(b"", &mut []));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_stay_inside_their_field(
            value in prop::collection::vec(any::<u8>(), 0..5000), until: Option<u8>, inside: bool,
        ) {
            let slot = Slot { until, quoted: inside };
            let free = text_of(|room| write_free(room, &value, slot)).into_bytes();
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
            match back.strip_suffix("...") {
                Some(front) if back != expected => prop_assert!(
                    expected.starts_with(front) && (value.len() > MAX_VALUE || front.len() >= MOST_ESCAPES - 1)
                ),
                _ => prop_assert_eq!(back, expected),
            }
            prop_assert!(!json.contains(|c: char| c.is_control()));
        }
    }
}
