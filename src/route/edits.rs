//! Edits of header lines in one direction, made ready when a config is accepted.
//!
//! Edits stand in an order, and what comes of all of them together is always the same: lines of some names go, and then some lines
//! come. A line whose value would be none does not come; where it was to take the place of others, those go all the same, or a client
//! could choose by what it sends whether it is believed.

use crate::config::model::Text;
use crate::config::model::route::HeaderEdit;
use crate::message::{Fields, Head, HeaderField};

use super::facts::TextFacts;
use super::render::{header_value, is_field_value};

/// Fields that say where a message ends and what becomes of its connection, and Host, without which a request is none. No edit
/// touches them, whatever a config says.
const UNTOUCHED: Fields = Fields::HOP_BY_HOP.and(Fields::of(&[
    HeaderField::Host,
    HeaderField::ContentLength,
    HeaderField::TransferEncoding,
    HeaderField::Trailer,
    HeaderField::Expect,
]));

/// Fields that we write ourselves behind those of a client.
const OURS: Fields = Fields::ABOUT_CLIENT.and(Fields::of(&[HeaderField::Via, HeaderField::RetryAttempt]));

/// The edits of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineEdits {
    /// Whose lines go.
    gone: Vec<GoneName>,
    /// Lines that come.
    come: Vec<ComingLine>,
    /// All of those as they are written, and the empty line that ends a head, where nothing of a request is in them.
    constant: Option<Box<[u8]>>,
    /// A line may have to go that we have written ourselves.
    meets_ours: bool,
}

/// A name whose lines go, also where it is spelled with `_` for `-`: some backends make no difference, and a client must not be taken
/// for us there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GoneName {
    /// With `-`, in lower case.
    name: Box<[u8]>,
    /// Of the name.
    length: u32,
    /// What a line is indexed as that may have this name, however that is spelled; empty: it may be any.
    fields: Fields,
}

impl GoneName {
    fn of(name: &str) -> GoneName {
        let name: Box<[u8]> = name.bytes().map(folded).collect();
        // The names of fields that we know have no `_`, so another spelling of an unknown one is unknown as well.
        let fields = match HeaderField::classify(&name) {
            HeaderField::Other => Fields::of(&[HeaderField::Other, HeaderField::Ours]),
            _ => Fields::default(),
        };
        let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
        GoneName { name, length, fields }
    }

    /// Whether a head has a line of this name.
    fn is_in(&self, head: &Head) -> bool {
        if self.fields != Fields::default() && !head.fields().meets(self.fields) {
            return false;
        }
        head.has_name(self.length, |name| self.is(name))
    }

    fn is(&self, name: &[u8]) -> bool {
        self.name.len() == name.len()
            && name.iter().zip(&self.name).all(|(&byte, &wanted)| folded(byte) == wanted)
    }
}

const fn folded(byte: u8) -> u8 {
    if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() }
}

/// A line that comes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ComingLine {
    name: Box<str>,
    value: LineValue,
}

/// What stands in it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LineValue {
    /// The whole line with its end, as it is written, and what it counts as in an answer.
    Constant(Box<[u8]>, HeaderField),
    Text(Text),
}

/// What a field is, also where it is spelled with `_` for `-`.
fn meaning(name: &[u8]) -> HeaderField {
    match HeaderField::classify(name) {
        HeaderField::Other => HeaderField::classify_alias(name),
        known => known,
    }
}

impl LineEdits {
    /// These edits, one after the other.
    #[must_use]
    pub fn new(edits: &[HeaderEdit]) -> LineEdits {
        let mut these = LineEdits::default();
        for edit in edits {
            let name = edit.name();
            let field = meaning(name.as_bytes());
            if UNTOUCHED.contains(field) {
                continue;
            }
            if let HeaderEdit::Set(..) | HeaderEdit::Remove(_) = edit {
                these.come.retain(|other| !other.name.eq_ignore_ascii_case(name));
                these.meets_ours |= OURS.contains(field);
                let gone = GoneName::of(name);
                if !these.gone.contains(&gone) {
                    these.gone.push(gone);
                }
            }
            if let HeaderEdit::Set(_, text) | HeaderEdit::Add(_, text) = edit
                && let Some(value) = LineValue::of(name, text)
            {
                these.come.push(ComingLine { name: name.into(), value });
            }
        }
        let mut constant = Vec::new();
        let all = these.come.iter().all(|line| match &line.value {
            LineValue::Constant(whole, _) => {
                constant.extend_from_slice(whole);
                true
            }
            LineValue::Text(_) => false,
        });
        constant.extend_from_slice(b"\r\n");
        these.constant = all.then(|| constant.into());
        these
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.come.is_empty()
    }

    /// The lines that come, each with its end, and the empty line behind them, where they are the same for every request.
    #[must_use]
    pub fn constant(&self) -> Option<&[u8]> {
        self.constant.as_deref()
    }

    /// Appends the lines that come, each with its end, and the empty line behind them; tells how many do not come because their value would
    /// be none. One that is empty does not come either.
    pub fn write(&self, facts: &TextFacts<'_>, out: &mut Vec<u8>) -> usize {
        let (mut dropped, mut room) = (0, Vec::new());
        for ComingLine { name, value } in &self.come {
            match value {
                LineValue::Constant(whole, _) => out.extend_from_slice(whole),
                LineValue::Text(text) => {
                    dropped += usize::from(fill(text, facts, &mut room));
                    if !room.is_empty() {
                        for part in [name.as_bytes(), b": ", &room, b"\r\n"] {
                            out.extend_from_slice(part);
                        }
                    }
                }
            }
        }
        out.extend_from_slice(b"\r\n");
        dropped
    }

    /// Edits an answer's head, and tells how many lines did not come because their value would be none.
    pub fn apply(&self, answer: &mut Head, facts: &TextFacts<'_>) -> usize {
        self.take_away(answer);
        let (mut dropped, mut room) = (0, Vec::new());
        for ComingLine { name, value } in &self.come {
            match value {
                LineValue::Constant(whole, field) => answer.push_written(*field, whole, name.len()),
                LineValue::Text(text) => {
                    dropped += usize::from(fill(text, facts, &mut room));
                    if !room.is_empty() {
                        answer.push_ours(name.as_bytes(), &room);
                    }
                }
            }
        }
        dropped
    }

    /// The same where all lines that come are the same for every request; others do not come.
    pub fn apply_constant(&self, answer: &mut Head) {
        self.take_away(answer);
        for ComingLine { name, value } in &self.come {
            if let LineValue::Constant(whole, field) = value {
                answer.push_written(*field, whole, name.len());
            }
        }
    }

    fn take_away(&self, answer: &mut Head) {
        if self.gone.iter().any(|gone| gone.is_in(answer)) {
            answer.remove(|name| self.removes(name));
        }
    }

    /// Whether lines of this name go.
    #[must_use]
    pub fn removes(&self, name: &[u8]) -> bool {
        self.gone.iter().any(|gone| gone.is(name))
    }

    /// Whether a request that came with this head may have lines that go, once it is written.
    #[must_use]
    pub fn finds_lines(&self, head: &Head) -> bool {
        self.meets_ours || self.gone.iter().any(|gone| gone.is_in(head))
    }
}

/// Fills `room` with the value of a line; says whether it would be none, and then there is nothing in `room`.
fn fill(text: &Text, facts: &TextFacts<'_>, room: &mut Vec<u8>) -> bool {
    room.clear();
    header_value(text, facts, room).is_err()
}

impl LineValue {
    /// `None`: no request could make a value of it.
    fn of(name: &str, text: &Text) -> Option<LineValue> {
        let Some(constant) = text.constant() else { return Some(LineValue::Text(text.clone())) };
        let value = constant.as_bytes().trim_ascii();
        let is_one = is_field_value(value) && !value.is_empty();
        let line = || [name.as_bytes(), b": ", value, b"\r\n"].concat().into();
        is_one.then(|| LineValue::Constant(line(), Head::ours(name.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::text::TextPlace;
    use crate::route::facts::Groups;

    fn text(source: &str) -> Text {
        Text::parse(source, TextPlace::ANSWER).expect("a text")
    }

    fn set(name: &str, value: &str) -> HeaderEdit {
        HeaderEdit::Set(name.into(), text(value))
    }

    fn add(name: &str, value: &str) -> HeaderEdit {
        HeaderEdit::Add(name.into(), text(value))
    }

    fn remove(name: &str) -> HeaderEdit {
        HeaderEdit::Remove(name.into())
    }

    /// What becomes of an answer with these lines, where the request has a header `x-a` with this value; and how many were dropped.
    fn applied(edits: &[HeaderEdit], lines: &[(&str, &str)], value: &[u8]) -> (Vec<String>, usize) {
        let mut head = Head::request("GET", "/", "h");
        head.push(b"X-A", value);
        let mut answer = Head::answer(200);
        lines.iter().for_each(|(name, value)| answer.push(name.as_bytes(), value.as_bytes()));
        let facts = TextFacts {
            told: None,
            head: &head,
            groups: Groups::default(),
            client: None,
            scheme: "http",
            id: 1,
            target: "",
            backend: "",
            tls: "",
            subject: "",
            user: "",
        };
        let edits = LineEdits::new(edits);
        let mut written = Vec::new();
        let dropped = edits.write(&facts, &mut written);
        assert!(edits.constant().is_none_or(|constant| constant == written));
        let written = written.strip_suffix(b"\r\n").expect("the empty line behind them");
        let before = answer.lines().len();
        let left = answer.lines().iter().filter(|line| !edits.removes(answer.at(line.name()))).count();
        assert_eq!(edits.finds_lines(&answer), left < before || edits.meets_ours);
        assert_eq!(edits.apply(&mut answer, &facts), dropped);
        let lines = String::from_utf8_lossy(answer.at(answer.start_and_lines())).into_owned();
        assert!(lines.as_bytes().ends_with(written), "{lines}");
        let lines: Vec<_> = lines.split_terminator("\r\n").skip(1).map(str::to_owned).collect();
        let indexed = answer.lines().iter().map(|line| {
            let (name, value) = answer.pair(line);
            format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
        });
        assert!(indexed.eq(lines.iter().cloned()), "the index fits the lines");
        (lines, dropped)
    }

    #[test]
    fn edits_are_made_in_their_order_and_names_stand_as_they_are_written() {
        let lines = [("Server", "x"), ("X-B", "1"), ("Date", "then"), ("x-b", "2"), ("Other", "3")];
        for (edits, expected) in [
            (&[][..], &["Server: x", "X-B: 1", "Date: then", "x-b: 2", "Other: 3"][..]),
            (&[remove("X-b")], &["Server: x", "Date: then", "Other: 3"]),
            (&[set("x-B", "v")], &["Server: x", "Date: then", "Other: 3", "x-B: v"]),
            (&[remove("server"), remove("X-B"), add("X-B", " v ")], &["Date: then", "Other: 3", "X-B: v"]),
            (&[add("X-B", "v"), remove("X-B")], &["Server: x", "Date: then", "Other: 3"]),
            (
                &[add("N", "1"), set("n", "2"), add("N", "3")],
                &["Server: x", "X-B: 1", "Date: then", "x-b: 2", "Other: 3", "n: 2", "N: 3"],
            ),
            (&[remove("Server"), remove("Date"), remove("X-B"), remove("Other")], &[]),
            (&[set("Date", "now"), set("X-B", "")], &["Server: x", "Other: 3", "Date: now"]),
        ] {
            assert_eq!(applied(edits, &lines, b"").0, expected, "{edits:?}");
        }
    }

    #[test]
    fn a_value_that_is_none_drops_its_line_and_those_that_it_was_to_replace() {
        let edits = [set("X-B", "{header.x-a}"), add("X-C", "a{header.x-a}"), add("X-D", "{cookie.c}")];
        let lines = [("X-B", "theirs")];
        assert_eq!(applied(&edits, &lines, b"v"), (vec!["X-B: v".into(), "X-C: av".into()], 0));
        for value in [&b"a\r\nX: y"[..], b"\n", b"\0"] {
            assert_eq!(applied(&edits, &lines, value), (vec![], 2), "{value:?}");
        }
    }

    #[test]
    fn neither_framing_nor_the_connection_is_touched_however_it_is_spelled() {
        for name in [
            "Connection",
            "content-length",
            "Content_Length",
            "TRANSFER-ENCODING",
            "Transfer_Encoding",
            "Upgrade",
            "TE",
            "Trailer",
            "Keep_Alive",
            "Proxy-Connection",
            "Host",
            "Expect",
            "HTTP2-Settings",
            "http2_settings",
        ] {
            let edits = [set(name, "1"), add(name, "2"), remove(name)];
            assert!(LineEdits::new(&edits).is_empty(), "{name}");
        }
    }

    #[test]
    fn another_spelling_of_a_name_does_not_pass_for_it() {
        let lines = [("X_User", "admin"), ("x-user", "admin"), ("X-Users", "both")];
        assert_eq!(applied(&[set("X-User", "me")], &lines, b"").0, ["X-Users: both", "X-User: me"]);
    }
}
