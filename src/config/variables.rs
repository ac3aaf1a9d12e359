//! `${NAME}` and `${NAME:-default}` inside scalars.
//!
//! It happens on the tree, after parsing, so a value from the environment can never add a key or an item.
//! `$${` stands for a literal `${`; a `$` before anything else is itself. Keys are left alone.

use super::error::quoted;
use super::hidden;
use super::report::Report;
use super::yaml::{Node, Value};

/// The environment, handed in so that tests have their own.
pub(super) type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// Fills in every variable of a whole file. What can't be filled in is reported and left as it is.
///
/// Below a key of the top level for which `is_apart` nothing is: what stands there counts where an alias brings it, and there it
/// is filled in.
pub(super) fn substitute(
    root: &mut Node,
    is_apart: fn(&str) -> bool,
    environment: Environment<'_>,
    report: &mut Report,
) {
    match &mut root.value {
        Value::Map(entries) => {
            for entry in entries.iter_mut().filter(|entry| !is_apart(&entry.key)) {
                fill(&mut entry.node, hidden::may_be_secret(&entry.key), environment, report);
            }
        }
        Value::Scalar(_) | Value::List(_) => fill(root, false, environment, report),
    }
}

/// The same below a key whose value `is_secret`, or is none.
fn fill(node: &mut Node, is_secret: bool, environment: Environment<'_>, report: &mut Report) {
    match &mut node.value {
        Value::Scalar(scalar) => {
            if !scalar.text.contains("${") {
                return;
            }
            let shown = if is_secret { |_: &str| "this value".to_owned() } else { quoted };
            let expanded = if report.is_guarded() {
                literal(&scalar.text, shown)
            } else {
                expand(&scalar.text, environment, shown)
            };
            match expanded {
                Ok((text, variable)) => {
                    scalar.text = text;
                    scalar.variable = variable;
                }
                Err(fault) => {
                    let problem = report.at(node.place, fault.message);
                    problem.note(fault.note);
                    report.silence(node.place);
                }
            }
        }
        Value::List(items) => {
            items.iter_mut().for_each(|item| fill(item, is_secret, environment, report));
        }
        Value::Map(entries) => {
            for entry in entries {
                fill(&mut entry.node, hidden::may_be_secret(&entry.key), environment, report);
            }
        }
    }
}

/// Why a text can't be expanded.
#[derive(Debug, PartialEq)]
struct Fault {
    message: String,
    note: String,
}

/// The same of a text that came from afar, which has nothing to do with the environment of this process.
fn literal(text: &str, shown: fn(&str) -> String) -> Result<(String, Option<String>), Fault> {
    match expand(text, &|_| Some(String::new()), shown)? {
        (text, None) => Ok((text, None)),
        (_, Some(_)) => Err(Fault {
            message: "variables such as `${NAME}` are not filled in where a config comes from afar"
                .to_owned(),
            note: "write the value itself, or `$${` if the two characters are meant".to_owned(),
        }),
    }
}

/// The text with its variables filled in and the name of the first one. A fault quotes it as `shown` says.
fn expand(
    text: &str,
    environment: Environment<'_>,
    shown: fn(&str) -> String,
) -> Result<(String, Option<String>), Fault> {
    let mut result = String::with_capacity(text.len());
    let mut first = None;
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        if let Some(literal) = before.strip_suffix('$') {
            result.push_str(literal);
            result.push_str("${");
            rest = after;
            continue;
        }
        result.push_str(before);
        let Some(end) = after.find('}') else {
            return Err(Fault {
                message: "`${` has no closing `}`".to_owned(),
                note: "write `$${` if the two characters themselves are meant".into(),
            });
        };
        let inside = &after[..end];
        let (name, default) =
            inside.split_once(":-").map_or((inside, None), |(name, default)| (name, Some(default)));
        if !is_name(name) || default.is_some_and(|default| default.contains("${")) {
            return Err(Fault {
                message: format!("{} is not a variable", shown(&format!("${{{inside}}}"))),
                note: "write `${NAME}` or `${NAME:-default}`; a name has letters, digits and `_`, a default has no `${`".into(),
            });
        }
        let value = environment(name);
        let value = match default {
            // As in a shell, `:-` also replaces an empty value.
            Some(default) => value.filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned()),
            None => value.ok_or_else(|| Fault {
                message: format!("the environment variable `{name}` is not set"),
                note: format!("set it, or give a default: `${{{name}:-default}}`"),
            })?,
        };
        result.push_str(&value);
        first.get_or_insert_with(|| name.to_owned());
        rest = &after[end + 1..];
    }
    result.push_str(rest);
    Ok((result, first))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "PORT" => Some("8080".into()),
            "EMPTY" => Some(String::new()),
            "EVIL" => Some("1\nadmin: true".into()),
            "LOOP" => Some("${LOOP}".into()),
            _ => None,
        }
    }

    #[test]
    fn the_forms_that_work() {
        let table = [
            ("${PORT}", "8080"),
            ("a${PORT}b${PORT}c", "a8080b8080c"),
            ("${NONE:-9}", "9"),
            ("${NONE:-}", ""),
            ("${EMPTY:-9}", "9"),
            ("${EMPTY}", ""),
            ("${PORT:-9}", "8080"),
            ("$${PORT}", "${PORT}"),
            ("$$${PORT}", "$${PORT}"),
            ("$PORT $ 5$", "$PORT $ 5$"),
            ("${LOOP}", "${LOOP}"),
            ("${NONE:-a:-b}", "a:-b"),
        ];
        for (text, result) in table {
            assert_eq!(expand(text, &env, quoted).unwrap().0, result, "{text}");
        }
        assert_eq!(expand("${NONE:-x}${PORT}", &env, quoted).unwrap().1.unwrap(), "NONE");
        assert_eq!(expand("$${PORT}", &env, quoted).unwrap().1, None);
    }

    #[test]
    fn the_forms_that_do_not() {
        for text in ["${NONE}", "${", "${PORT", "${}", "${1A}", "${A B}", "${A:-${PORT}}", "${A-b}"] {
            assert!(expand(text, &env, quoted).is_err(), "{text}");
        }
    }

    #[test]
    fn an_unknown_variable_below_a_key_that_nobody_reads_is_no_problem_until_an_alias_brings_it() {
        let text = "x-a: {b: &b \"${NONE}\", c: &c \"${PORT}\"}\nd: *c\n";
        let filled = |text: &str| {
            let mut report = Report::about("t", "");
            let mut node = super::super::yaml::read(text, 0, &mut report).unwrap();
            substitute(&mut node, |key| key.starts_with("x-"), &env, &mut report);
            let Value::Map(entries) = node.value else { panic!("{text}") };
            let values = entries.iter().filter_map(|entry| entry.node.text().map(str::to_owned));
            (report.is_empty(), values.collect::<Vec<_>>())
        };
        assert_eq!(filled(text), (true, vec!["8080".to_owned()]));
        assert!(!filled(&format!("{text}e: *b\n")).0, "now it is used");
    }

    #[test]
    fn a_value_adds_no_structure() {
        let mut report = Report::about("t", "");
        let mut node = super::super::yaml::read("workers: ${EVIL}\nname: x\n", 0, &mut report).unwrap();
        substitute(&mut node, |_| false, &env, &mut report);
        assert!(report.is_empty());
        let Value::Map(entries) = &node.value else { panic!("{node:?}") };
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].node.text(), Some("1\nadmin: true"));
    }
}
