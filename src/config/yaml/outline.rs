//! How a text is written: every value with where it begins and ends, its style, and whether an anchor or a tag is on it.
//!
//! The tree that configs are read from has forgotten that. Who writes into a text needs it. Called by `config::save`.

use serde_yaml::granit_parser::{Event, Marker, Options, Parser, ScalarStyle, Span, StructureStyle};

/// A point in a text, between two characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::config) struct NodeMark {
    /// Counted from 0.
    pub(in crate::config) line: usize,
    /// Characters before it on its line.
    pub(in crate::config) column: usize,
}

/// One value, or one key.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::config) struct YamlPiece {
    /// Where it begins: a list at its first dash or bracket, a mapping at its first key or brace.
    pub(in crate::config) start: NodeMark,
    /// Where it ends: behind the last character that is a part of it.
    pub(in crate::config) end: NodeMark,
    /// An anchor or a tag is on it.
    pub(in crate::config) is_marked: bool,
    /// What it is.
    pub(in crate::config) form: NodeForm,
}

/// How a piece is written.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::config) enum NodeForm {
    /// A single value: its text after escapes.
    Scalar(String, Quotes),
    /// Values in order.
    List { is_flow: bool, items: Vec<YamlPiece> },
    /// Keys with values in order.
    Map { is_flow: bool, entries: Vec<(YamlPiece, YamlPiece)> },
    /// A name in the place of a value.
    Alias,
}

/// What is around a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Quotes {
    /// Nothing.
    None,
    /// `'`
    Single,
    /// `"`
    Double,
    /// It is a block of lines of its own.
    Block,
}

impl YamlPiece {
    /// Its text if it is a single value.
    pub(in crate::config) fn text(&self) -> Option<&str> {
        match &self.form {
            NodeForm::Scalar(text, _) => Some(text),
            NodeForm::List { .. } | NodeForm::Map { .. } | NodeForm::Alias => None,
        }
    }

    /// Whether it is a list or mapping in brackets.
    pub(in crate::config) fn is_flow(&self) -> bool {
        matches!(self.form, NodeForm::List { is_flow: true, .. } | NodeForm::Map { is_flow: true, .. })
    }

    /// The entry of a key that is written out.
    pub(in crate::config) fn entry(&self, key: &str) -> Option<&(YamlPiece, YamlPiece)> {
        let NodeForm::Map { entries, .. } = &self.form else { return None };
        entries.iter().find(|(name, _)| name.text() == Some(key))
    }

    /// Whether `is` holds for this piece or any inside of it.
    pub(in crate::config) fn any(&self, is: &dyn Fn(&YamlPiece) -> bool) -> bool {
        is(self)
            || match &self.form {
                NodeForm::Scalar(..) | NodeForm::Alias => false,
                NodeForm::List { items, .. } => items.iter().any(|item| item.any(is)),
                NodeForm::Map { entries, .. } => {
                    entries.iter().any(|(key, value)| key.any(is) || value.any(is))
                }
            }
    }
}

/// A list or mapping that is not closed yet: keys and values of a mapping one after the other.
struct Open {
    start: NodeMark,
    end: NodeMark,
    is_marked: bool,
    is_flow: bool,
    is_map: bool,
    pieces: Vec<YamlPiece>,
}

impl Open {
    fn closed(self, closing: NodeMark) -> YamlPiece {
        let Open { start, end, is_marked, is_flow, is_map, pieces } = self;
        let end = if is_flow { closing } else { end };
        let form = if is_map {
            let mut entries = Vec::with_capacity(pieces.len() / 2);
            let mut pieces = pieces.into_iter();
            while let (Some(key), Some(value)) = (pieces.next(), pieces.next()) {
                entries.push((key, value));
            }
            NodeForm::Map { is_flow, entries }
        } else {
            NodeForm::List { is_flow, items: pieces }
        };
        YamlPiece { start, end, is_marked, form }
    }
}

/// Outlines the first document of a text that configs are read from. `None`: it is no YAML.
pub(in crate::config) fn outline(text: &str) -> Option<YamlPiece> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.emit_unresolved_aliases = true;
    let mut stack: Vec<Open> = Vec::new();
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.ok()?;
        let Span { start, end, .. } = span;
        let (start, end) = (mark(start), mark(end));
        let mut open = |is_flow: bool, is_map: bool, is_marked: bool| {
            stack.push(Open { start, end: start, is_marked, is_flow, is_map, pieces: Vec::new() });
        };
        let piece = match event {
            Event::SequenceStart(style, anchor, tag) => {
                open(style == StructureStyle::Flow, false, anchor != 0 || tag.is_some());
                continue;
            }
            Event::MappingStart(style, anchor, tag) => {
                open(style == StructureStyle::Flow, true, anchor != 0 || tag.is_some());
                continue;
            }
            Event::Scalar(text, style, anchor, tag) => {
                let quotes = match style {
                    ScalarStyle::Plain => Quotes::None,
                    ScalarStyle::SingleQuoted => Quotes::Single,
                    ScalarStyle::DoubleQuoted => Quotes::Double,
                    _ => Quotes::Block,
                };
                let form = NodeForm::Scalar(text.into_owned(), quotes);
                YamlPiece { start, end, is_marked: anchor != 0 || tag.is_some(), form }
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                YamlPiece { start, end, is_marked: false, form: NodeForm::Alias }
            }
            Event::SequenceEnd | Event::MappingEnd => stack.pop()?.closed(end),
            _ => continue,
        };
        let Some(around) = stack.last_mut() else { return Some(piece) };
        around.end = around.end.max(piece.end);
        around.pieces.push(piece);
    }
    None
}

/// The parser counts lines from 1 and columns from 0.
fn mark(marker: Marker) -> NodeMark {
    NodeMark { line: marker.line().saturating_sub(1), column: marker.col() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize, column: usize) -> NodeMark {
        NodeMark { line, column }
    }

    #[test]
    fn every_value_has_its_style_and_its_ends() {
        let text =
            "a:\n  - x: 1 # c\n    y: 'é'\n\n  # d\n  - {b: 2,\n     c: [3, \"4\"]}\n  - *z\ng: &k 1\n";
        let root = outline(text).expect("it is YAML");
        let (_, list) = root.entry("a").expect("there");
        let NodeForm::List { is_flow: false, items } = &list.form else { panic!("{list:?}") };
        assert_eq!((list.start, list.end), (at(1, 2), at(7, 6)));
        assert_eq!((items[0].start, items[0].end), (at(1, 4), at(2, 10)));
        assert_eq!(items[0].entry("y").expect("there").1.form, NodeForm::Scalar("é".into(), Quotes::Single));
        assert_eq!((items[1].start, items[1].end), (at(5, 4), at(6, 17)));
        assert!(matches!(items[1].form, NodeForm::Map { is_flow: true, .. }));
        assert_eq!(items[2].form, NodeForm::Alias);
        let (key, value) = root.entry("g").expect("there");
        assert_eq!((key.is_marked, value.is_marked, value.text()), (false, true, Some("1")));
        assert!(root.any(&|piece| piece.form == NodeForm::Alias) && !items[0].any(&|piece| piece.is_marked));
        assert_eq!((outline("a: ["), outline("")), (None, None));
    }

    #[test]
    fn a_mark_of_the_byte_order_is_no_column() {
        let root = outline("\u{feff}a:\r\n  - b: 2\r\n").expect("it is YAML");
        let (_, list) = root.entry("a").expect("there");
        assert_eq!((list.start, list.end), (at(1, 2), at(1, 8)));
    }
}
