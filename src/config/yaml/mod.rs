//! Text → tree of nodes with their places. The only folder that knows the YAML crate.
//!
//! The tree is built from the parser's events and not through serde, because serde stops at the first
//! duplicate key, forgets whether a value was quoted, and turns `host: no` into `false` without its text.
//! Everything that is wrong but does not stop the parser is reported and reading goes on. Called by `config`.

mod outline;
mod scalar;
mod syntax;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::rc::Rc;

use serde_yaml::granit_parser::{Event, Options, Parser, ScalarStyle, Span, Tag};

use super::edit::Fix;
use super::origin::Place;
use super::report::Report;
pub(super) use outline::{NodeForm, NodeMark, Quotes, YamlPiece, outline};
pub(super) use scalar::{FALSE_WORDS, Scalar, TRUE_WORDS, Typed, integer, plain, truth};

/// Deepest nesting; a config needs seven levels. Bounds every recursion over the tree, also through aliases.
const MAX_DEPTH: usize = 64;
/// Most nodes that aliases and merges may copy: stops files that grow when they are read.
const MAX_COPIED_NODES: usize = 1_000_000;
/// Most bytes of text that aliases and merges may copy.
const MAX_COPIED_BYTES: usize = 64 * 1024 * 1024;

/// One value with its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// Where it begins; a value that came through an alias stands where it was defined.
    pub(super) place: Place,
    /// Where the alias stands that brought it here, as it is or merged with others.
    pub(super) alias: Option<Place>,
    /// What it is.
    pub(super) value: Value,
}

impl Node {
    fn new(place: Place, value: Value) -> Node {
        Node { place, alias: None, value }
    }

    /// Where it was put: at its alias, or where it is written.
    pub(super) fn used_at(&self) -> Place {
        self.alias.unwrap_or(self.place)
    }
}

/// The three kinds of nodes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A single value.
    Scalar(Scalar),
    /// Values in order.
    List(Vec<Node>),
    /// Keys with values in order; no key twice.
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// As written, without quotes.
    pub(super) key: String,
    /// Where the key stands.
    pub(super) key_place: Place,
    /// Its value.
    pub(super) node: Node,
}

/// Reads the document in the file of this number. `None`: the syntax is broken and there is no tree; an empty text gives a null node.
pub(super) fn read(text: &str, file: u16, report: &mut Report) -> Option<Node> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.emit_unresolved_aliases = true;
    let mut builder = Builder {
        file,
        report,
        stack: Vec::new(),
        root: None,
        anchors: HashMap::new(),
        copied: Size::default(),
    };
    let mut documents = 0;
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = match next {
            Ok(pair) => pair,
            Err(error) => {
                let place = place_of(Span::empty(*error.marker()), file);
                let (place, wrong) = syntax::deeper(text, error.kind(), place)
                    .unwrap_or_else(|| (place, syntax::explain(error.kind())));
                let problem = builder.report.at(place, wrong.message);
                problem.expected = wrong.expected;
                problem.note = wrong.note;
                problem.is_syntax = true;
                return None;
            }
        };
        if let Event::DocumentStart(..) = event {
            documents += 1;
            if documents > 1 {
                builder
                    .report
                    .at(place_of(span, file), "a second document begins here")
                    .expected("one document in one file")
                    .hint("remove the line `---`, or make two files", Fix::Remove(place_of(span, file)));
                return builder.root;
            }
        }
        builder.take(event, span)?;
    }
    Some(builder.root.unwrap_or_else(|| Node::new(Place { file, ..Place::new(1, 1, 1) }, null())))
}

/// How much a subtree is.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

/// A node with a name that aliases may refer to; `None` while it is still being read.
type Anchor = Option<(Rc<Node>, Size)>;

/// A list or mapping that is not closed yet.
struct Open {
    place: Place,
    anchor: usize,
    /// `None` in a list.
    key: Option<Key>,
    items: Vec<Node>,
    entries: Vec<Entry>,
}

/// What a mapping waits for.
enum Key {
    Awaited,
    Read(String, Place),
    /// It was no scalar; its value is read and dropped.
    Unusable,
}

struct Builder<'r> {
    file: u16,
    report: &'r mut Report,
    stack: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, Anchor>,
    copied: Size,
}

impl Builder<'_> {
    /// Takes one event; `None` ends the reading because a limit was passed (and reported).
    fn take(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        let place = place_of(span, self.file);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = self.plainness(style == ScalarStyle::Plain, tag.as_deref(), place);
                let scalar = Scalar { text: text.into_owned(), plain, variable: None };
                self.put(Node::new(place, Value::Scalar(scalar)), anchor);
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "seq", place);
                self.open(place, anchor, None)?;
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "map", place);
                self.open(place, anchor, Some(Key::Awaited))?;
            }
            Event::SequenceEnd => {
                if let Some(open) = self.stack.pop() {
                    self.put(Node::new(open.place, Value::List(open.items)), open.anchor);
                }
            }
            Event::MappingEnd => {
                if let Some(open) = self.stack.pop() {
                    let entries = self.settle(open.entries)?;
                    self.put(Node::new(open.place, Value::Map(entries)), open.anchor);
                }
            }
            Event::Alias(id) => {
                let node = self.resolve(id, place)?;
                self.put(node, 0);
            }
            Event::UnresolvedAlias(name) => {
                let problem = self.report.at(place, format!("`*{name}` refers to nothing"));
                problem.expected(format!("an earlier value marked with `&{name}`"));
                if name.contains(':') || name.contains('.') {
                    let value = format!("\"*{name}\"");
                    problem.hint(
                        format!("if a plain value was meant, put it in quotes: {value}"),
                        Fix::Value(value),
                    );
                }
                let node = self.unusable(place);
                self.put(node, 0);
            }
            // Stream and document marks carry nothing; the crate's list is open (`non_exhaustive`).
            _ => {}
        }
        Some(())
    }

    fn open(&mut self, place: Place, anchor: usize, key: Option<Key>) -> Option<()> {
        if self.stack.len() >= MAX_DEPTH {
            self.report
                .at(place, format!("this is nested more than {MAX_DEPTH} levels deep"))
                .expected("the levels that the documentation shows; none goes deeper than seven");
            return None;
        }
        if anchor != 0 {
            self.anchors.insert(anchor, None);
        }
        self.stack.push(Open { place, anchor, key, items: Vec::new(), entries: Vec::new() });
        Some(())
    }

    /// Puts a finished node where it belongs.
    fn put(&mut self, node: Node, anchor: usize) {
        if anchor != 0 {
            let size = size_of(&node);
            self.anchors.insert(anchor, Some((Rc::new(node.clone()), size)));
        }
        let Some(open) = self.stack.last_mut() else {
            self.root = Some(node);
            return;
        };
        let Some(key) = &mut open.key else {
            open.items.push(node);
            return;
        };
        let Node { place, alias, value } = node;
        *key = match (std::mem::replace(key, Key::Awaited), value) {
            (Key::Awaited, Value::Scalar(Scalar { text, .. })) => Key::Read(text, place),
            (Key::Awaited, Value::List(_) | Value::Map(_)) => {
                self.report
                    .at(place, "a list or a mapping stands where a key should be")
                    .expected("a word before the `:`")
                    .note("a value that begins with `{` or `[` needs quotes");
                Key::Unusable
            }
            (Key::Read(key, key_place), value) => {
                open.entries.push(Entry { key, key_place, node: Node { place, alias, value } });
                Key::Awaited
            }
            (Key::Unusable, _) => Key::Awaited,
        };
    }

    /// Reports duplicate keys (the first one stays) and expands `<<`; a key written out wins over a merged one.
    fn settle(&mut self, entries: Vec<Entry>) -> Option<Vec<Entry>> {
        let mut lines: HashMap<String, u32> = HashMap::with_capacity(entries.len());
        let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
        let mut merged: Vec<Node> = Vec::new();
        for entry in entries {
            if entry.key == "<<" {
                merged.push(entry.node);
            } else if let Some(line) = lines.get(&entry.key) {
                let message = format!("the key `{}` is written twice", entry.key);
                let words = twice(&entry, *line);
                self.report.at(entry.key_place, message).hint(words, Fix::Remove(entry.key_place));
            } else {
                lines.insert(entry.key.clone(), entry.key_place.line);
                kept.push(entry);
            }
        }
        for node in merged {
            let sources = match node.value {
                Value::List(items) => items,
                Value::Map(_) | Value::Scalar(_) => vec![node],
            };
            for source in sources {
                let Value::Map(entries) = source.value else {
                    self.report
                        .at(source.place, "`<<` takes over the keys of a mapping, and this is none")
                        .expected("`<<: *name`, where `&name` marks a mapping above");
                    continue;
                };
                for mut entry in entries {
                    if !lines.contains_key(&entry.key) {
                        entry.node.alias = source.alias.or(entry.node.alias);
                        lines.insert(entry.key.clone(), entry.key_place.line);
                        kept.push(entry);
                    }
                }
            }
        }
        Some(kept)
    }

    /// A copy of what an alias refers to.
    fn resolve(&mut self, id: usize, place: Place) -> Option<Node> {
        let Some(Some((node, size))) = self.anchors.get(&id) else {
            self.report.at(place, "this refers to the value that it stands in");
            return Some(self.unusable(place));
        };
        self.copied.nodes += size.nodes;
        self.copied.bytes += size.bytes;
        if self.copied.nodes > MAX_COPIED_NODES || self.copied.bytes > MAX_COPIED_BYTES {
            self.report.at(place, "references in this file make it far too large");
            return None;
        }
        if self.stack.len() + size.depth > MAX_DEPTH {
            self.report.at(place, format!("this is nested more than {MAX_DEPTH} levels deep"));
            return None;
        }
        Some(Node { alias: Some(place), ..Node::clone(node) })
    }

    /// Something in the place of a value that can't be had; its fault has been reported.
    fn unusable(&mut self, place: Place) -> Node {
        self.report.silence(place);
        Node::new(place, Value::Scalar(Scalar { text: String::new(), plain: false, variable: None }))
    }

    /// Whether a scalar is read as a number or truth value where it looks like one.
    fn plainness(&mut self, plain: bool, tag: Option<&Tag>, place: Place) -> bool {
        match tag.map(|tag| tag.core_suffix()) {
            None => plain,
            Some(Some("str")) => false,
            Some(Some("int" | "float" | "bool" | "null")) => true,
            Some(_) => {
                self.refuse_tag(tag, place);
                plain
            }
        }
    }

    fn check_tag(&mut self, tag: Option<&Tag>, own: &str, place: Place) {
        if tag.is_some_and(|tag| tag.core_suffix() != Some(own)) {
            self.refuse_tag(tag, place);
        }
    }

    fn refuse_tag(&mut self, tag: Option<&Tag>, place: Place) {
        let name = tag.map(Tag::original).unwrap_or_default();
        self.report
            .at(place, format!("the YAML tag `{name}` has no meaning here"))
            .note("a value that begins with `!` needs quotes");
    }
}

/// Which of two entries with one key goes.
fn twice(entry: &Entry, first: u32) -> String {
    let is_line = matches!(entry.node.value, Value::Scalar(_));
    match (first == entry.key_place.line, is_line) {
        (true, _) => "remove this one, or the first if this value is the right one".to_owned(),
        (false, true) => format!("remove this line, or line {first} if this value is the right one"),
        (false, false) => format!("remove this one, or that on line {first} if this one is right"),
    }
}

/// The value of a key that nothing follows.
fn null() -> Value {
    Value::Scalar(Scalar { text: String::new(), plain: true, variable: None })
}

/// Recursion is bounded by [`MAX_DEPTH`].
fn size_of(node: &Node) -> Size {
    let mut size = Size { nodes: 1, bytes: 0, depth: 1 };
    let mut add = |child: &Node| {
        let inner = size_of(child);
        size.nodes += inner.nodes;
        size.bytes += inner.bytes;
        size.depth = size.depth.max(inner.depth + 1);
    };
    match &node.value {
        Value::Scalar(scalar) => size.bytes = scalar.text.len(),
        Value::List(items) => items.iter().for_each(&mut add),
        Value::Map(entries) => {
            entries.iter().for_each(|entry| add(&entry.node));
            size.bytes += entries.iter().map(|entry| entry.key.len()).sum::<usize>();
        }
    }
    size
}

/// The parser counts lines from 1 and columns from 0.
fn place_of(span: Span, file: u16) -> Place {
    let width = if span.start.line() == span.end.line() {
        span.end.col().saturating_sub(span.start.col())
    } else {
        1
    };
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let place = Place::new(small(span.start.line()), small(span.start.col() + 1), small(width.max(1)));
    Place { file, ..place }
}
