//! Odd inputs and what becomes of them: a guard against surprises from a young YAML crate.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use super::*;
use crate::config::report::Report;

/// A tree in one line: `{key: value}`, `[item]`, texts in quotes, everything else bare.
fn show(node: &Node) -> String {
    match node.typed() {
        Typed::Null => "null".into(),
        Typed::Bool(value) => value.to_string(),
        Typed::Integer(value) => value.to_string(),
        Typed::Float(value) => format!("{value:?}"),
        Typed::Text(text) => format!("{text:?}"),
        Typed::List(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", ")),
        Typed::Map(entries) => {
            let entries: Vec<_> =
                entries.iter().map(|entry| format!("{}: {}", entry.key, show(&entry.node))).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// The tree, and the messages.
fn outcome(text: &str) -> (Option<String>, Vec<String>) {
    let mut report = Report::about("t", text);
    let tree = read(text, 0, &mut report).map(|node| show(&node));
    let messages = if report.is_empty() {
        Vec::new()
    } else {
        report.finish().list().iter().map(|problem| problem.message.clone()).collect()
    };
    (tree, messages)
}

#[test]
fn odd_inputs_that_load() {
    let table = [
        ("", "null"),
        ("# only a comment\n", "null"),
        ("---\n", "null"),
        ("---\n...\n", "null"),
        ("%YAML 1.2\n---\na: 1\n", "{a: 1}"),
        ("\u{feff}a: 1\n", "{a: 1}"),
        ("a: 1\r\nb: 2\r\n", "{a: 1, b: 2}"),
        ("a: 1", "{a: 1}"),
        ("just text", "\"just text\""),
        ("a:", "{a: null}"),
        ("a: ~", "{a: null}"),
        ("a: null", "{a: null}"),
        ("a: off\nb: no\nc: False\nd: OFF", "{a: false, b: false, c: false, d: false}"),
        ("a: on\nb: yes\nc: True", "{a: true, b: true, c: true}"),
        ("a: 'off'\nb: \"no\"", "{a: \"off\", b: \"no\"}"),
        ("a: y\nb: n\nc: oFF", "{a: \"y\", b: \"n\", c: \"oFF\"}"),
        ("no: 1\n8080: 2\n~: 3", "{no: 1, 8080: 2, ~: 3}"),
        ("a: 0x1F\nb: 0o17\nc: 010\nd: -5\ne: +5", "{a: 31, b: 15, c: 10, d: -5, e: 5}"),
        ("a: 1.5\nb: 1e3\nc: .5\nd: 99999999999999999999", "{a: 1.5, b: 1000.0, c: 0.5, d: 1e20}"),
        (
            "a: 1_000\nb: 1:30\nc: .inf\nd: inf\ne: NaN\nf: 0x\ng: 1.2.3",
            "{a: \"1_000\", b: \"1:30\", c: \".inf\", d: \"inf\", e: \"NaN\", f: \"0x\", g: \"1.2.3\"}",
        ),
        (
            "a: 2s\nb: 127.0.0.1:8080\nc: ::1\nd: 1.1",
            "{a: \"2s\", b: \"127.0.0.1:8080\", c: \"::1\", d: 1.1}",
        ),
        ("a: :8080", "{a: \":8080\"}"),
        ("a: http://b:1/ # c", "{a: \"http://b:1/\"}"),
        ("a: b#c", "{a: \"b#c\"}"),
        ("a: ${X}\nb: [\"${X}\"]", "{a: \"${X}\", b: [\"${X}\"]}"),
        ("a: \"x\\ty\\u00e4\"\nb: 'it''s'", "{a: \"x\\tyä\", b: \"it's\"}"),
        ("a: |\n  b\n  c\n", "{a: \"b\\nc\\n\"}"),
        ("a: >-\n  b\n  c\n", "{a: \"b c\"}"),
        ("a: b\n  c", "{a: \"b c\"}"),
        ("a: [1, 2,]\nb: {c: 1, d: }", "{a: [1, 2], b: {c: 1, d: null}}"),
        ("a:\n- 1\n- 2\nb:\n  - 3", "{a: [1, 2], b: [3]}"),
        ("? a\n: 1\n? b", "{a: 1, b: null}"),
        ("a: &x 1\nb: *x", "{a: 1, b: 1}"),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3, e: 4}", "{a: {b: 1, c: 2}, d: {c: 3, e: 4, b: 1}}"),
        (
            "a: &x {b: 1}\nc: &y {b: 2, d: 3}\ne: {<<: [*x, *y]}",
            "{a: {b: 1}, c: {b: 2, d: 3}, e: {b: 1, d: 3}}",
        ),
        ("a: &x 1\nb: &x 2\nc: *x", "{a: 1, b: 2, c: 2}"),
        ("a: !!str 5\nb: !!int 5", "{a: \"5\", b: 5}"),
        ("a: 1]", "{a: \"1]\"}"),
        ("{\"a\": [true, null, \"x\"]}", "{a: [true, null, \"x\"]}"),
        ("ключ: значение", "{ключ: \"значение\"}"),
    ];
    for (text, tree) in table {
        assert_eq!(outcome(text), (Some(tree.to_owned()), Vec::new()), "{text:?}");
    }
}

#[test]
fn odd_inputs_that_are_reported_and_still_give_a_tree() {
    let table = [
        ("a: 1\na: 2\na: 3", "{a: 1}", vec!["the key `a` is written twice", "the key `a` is written twice"]),
        (
            "a: {b: 1, b: 2}\nc: {d: 1, d: 2}",
            "{a: {b: 1}, c: {d: 1}}",
            vec!["the key `b` is written twice", "the key `d` is written twice"],
        ),
        ("a: 1\n'a': 2", "{a: 1}", vec!["the key `a` is written twice"]),
        ("a: *x", "{a: \"\"}", vec!["`*x` refers to nothing"]),
        ("a: *:80", "{a: \"\"}", vec!["`*:80` refers to nothing"]),
        ("a: &x [*x]", "{a: [\"\"]}", vec!["this refers to the value that it stands in"]),
        ("a: 1\n<<: 5", "{a: 1}", vec!["`<<` takes over the keys of a mapping, and this is none"]),
        ("[a, b]: 1\nc: 2", "{c: 2}", vec!["a list or a mapping stands where a key should be"]),
        ("{{a: 1}: 2}", "{}", vec!["a list or a mapping stands where a key should be"]),
        ("a: !secret 5", "{a: 5}", vec!["the YAML tag `!secret` has no meaning here"]),
        ("a: !!binary aGk=", "{a: \"aGk=\"}", vec!["the YAML tag `!!binary` has no meaning here"]),
        ("a: !!map [1]", "{a: [1]}", vec!["the YAML tag `!!map` has no meaning here"]),
        ("a: 1\n---\nb: 2", "{a: 1}", vec!["a second document begins here"]),
    ];
    for (text, tree, messages) in table {
        let messages = messages.into_iter().map(str::to_owned).collect();
        assert_eq!(outcome(text), (Some(tree.to_owned()), messages), "{text:?}");
    }
}

#[test]
fn broken_syntax_gives_one_readable_message() {
    let table = [
        ("a:\n\tb: 1", "a tab stands where YAML allows only spaces"),
        ("a: b: c", "a `:` is not allowed here"),
        ("a: 'b", "a quote that opens above is not closed"),
        ("a: \"b\nc: d", "a quote that opens above is not closed"),
        ("a: [1, 2", "the `[` that opens here is never closed"),
        ("a: {b: 1", "the `{` that opens here is never closed"),
        ("a: [1]]", "\u{0}"),
        ("a: [1}", "`[` is closed by `}`"),
        ("a: @b", "a value cannot begin with `@`"),
        ("a: `b`", "a value cannot begin with ``"),
        ("a: %b", "a value cannot begin with `%`"),
        ("a: 1\n b: 2", "\u{0}"),
        ("a:\n  b: 1\n c: 2", "this line does not fit the lines around it"),
        ("a: * b", "`*` and `&` have a meaning of their own at the beginning of a value"),
        ("a: \"b\" c", "something follows the closing quote"),
        ("a: \"\\q\"", "a backslash in double quotes begins an escape, and this one does not exist"),
        ("a: 1\nb\nc: 2", "\u{0}"),
        ("a: {b: ${C}}", "\u{0}"),
    ];
    for (text, message) in table {
        let (tree, messages) = outcome(text);
        assert_eq!((tree, messages.len()), (None, 1), "{text:?}");
        // A zero stands for any message: the crate may find the fault here or there.
        if message != "\u{0}" {
            assert!(messages[0].starts_with(message.trim_end_matches('`')), "{text:?}: {messages:?}");
        }
    }
}

#[test]
fn places_are_those_of_keys_and_values() {
    let text = "a: 1\nbäb:\n  - host: x # y\n    port: \"80\"\n  - [1,\n     22]\n";
    let mut report = Report::about("t", "");
    let root = read(text, 0, &mut report).unwrap();
    let place = |line, column, width| Place::new(line, column, width);
    let Value::Map(entries) = &root.value else { panic!("{root:?}") };
    assert_eq!((entries[0].key_place, entries[0].node.place), (place(1, 1, 1), place(1, 4, 1)));
    assert_eq!(entries[1].key_place, place(2, 1, 3));
    let Value::List(items) = &entries[1].node.value else { panic!("{root:?}") };
    let Value::Map(backend) = &items[0].value else { panic!("{root:?}") };
    assert_eq!((items[0].place.line, items[0].place.column), (3, 5));
    assert_eq!((backend[1].key_place, backend[1].node.place), (place(4, 5, 4), place(4, 11, 4)));
    let Value::List(numbers) = &items[1].value else { panic!("{root:?}") };
    assert_eq!(numbers[1].place, place(6, 6, 2));
}

#[test]
fn files_that_grow_or_dig_are_stopped() {
    use std::fmt::Write as _;
    // Each line holds the one above ten times: ten to the ninth values.
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let inner = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(laughs, "a{level}: &a{level} [{inner}]").unwrap();
    }
    let (tree, messages) = outcome(&laughs);
    assert!(tree.is_none() && messages == ["references in this file make it far too large"], "{messages:?}");

    // Each line is one level deeper than the one above.
    let mut chain = String::from("a0: &a0 [x]\n");
    for level in 1..200 {
        writeln!(chain, "a{level}: &a{level} [*a{}]", level - 1).unwrap();
    }
    assert_eq!(outcome(&chain).1, ["this is nested more than 64 levels deep"]);
    assert_eq!(outcome(&"[".repeat(100_000)).1, ["this is nested too deeply"]);
    let long = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), vec!["*a"; 100].join(", "));
    assert_eq!(outcome(&long).1, ["references in this file make it far too large"]);
}
