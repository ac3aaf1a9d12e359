//! The JSON Schema of a config file, for editors: made of the tables that the walker refuses unknown keys by.
//!
//! An editor sees a file before its variables are filled in, and perhaps with another idea of what `off` is. So
//! every single value may also be a text with `${…}` in it, and what evenkeel reads as `off` or as a truth value
//! may be a word or a truth value. A file that loads is never refused; what a schema can't say (an end
//! before a beginning, a port taken twice) is left to `evenkeel check`.

use serde_json::{Map, Value, json};

use super::raw::{Key, Kind, NAME, SHAPES, Shape, TOKEN};
use super::units::{any_case, show_duration, show_size, size_pattern, time_pattern};
use super::yaml::{FALSE_WORDS, TRUE_WORDS};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// A number as times and sizes have it.
const NUMBER: &str = r"[0-9]+(?:\.[0-9]+)?";

/// The JSON Schema (draft 2020-12) of a config file, or of one that it includes.
///
/// Files with YAML's anchors and merge keys are meant as they are after these were followed.
#[must_use]
pub fn schema() -> Value {
    let top = SHAPES.first().expect("the first shape is the file itself");
    let mut schema = group(top);
    // Which of the two there is may be said in another file, and that is not both.
    schema["not"] = json!({ "required": ["targets", "servers"] });
    // There for anchors, and ignored otherwise.
    schema["patternProperties"] = json!({ "^x-": {} });
    schema["$schema"] = DIALECT.into();
    schema["title"] = "evenkeel configuration".into();
    schema["description"] = concat!("A config file of evenkeel ", env!("CARGO_PKG_VERSION"), ".").into();
    schema
}

/// The schema of a mapping with the keys of `shape`.
fn group(shape: &Shape) -> Value {
    let properties: Map<String, Value> =
        shape.keys().iter().map(|key| (key.name.to_owned(), described(key))).collect();
    let mut schema = json!({ "additionalProperties": false, "properties": properties });
    // All lines below a key may be comments; then nothing is there, which is as good as an empty mapping.
    schema["type"] = if shape.needs().is_empty() { json!(["object", "null"]) } else { json!("object") };
    match shape.needs() {
        [] => {}
        [all] => schema["required"] = json!(all),
        sets => schema["oneOf"] = sets.iter().map(|set| json!({ "required": set })).collect(),
    }
    schema
}

/// The schema of one key.
fn described(key: &Key) -> Value {
    let mut schema = values(&key.kind);
    schema["description"] = match form(&key.kind) {
        Some(form) => format!("{} {form}", key.text).into(),
        None => key.text.into(),
    };
    if let Some(default) = key.default {
        schema["default"] = written(&key.kind, default);
    }
    schema
}

/// The schema of what `kind` takes: an object always.
fn values(kind: &Kind) -> Value {
    match *kind {
        Kind::Switch => {
            json!({ "type": ["boolean", "string"], "pattern": whole(&words(&[TRUE_WORDS, FALSE_WORDS])) })
        }
        Kind::Whole(least, most) => {
            json!({ "type": ["integer", "string"], "minimum": least, "maximum": most, "pattern": VARIABLE })
        }
        Kind::WholeOr(least, most, text) => {
            json!({ "type": ["integer", "string"], "minimum": least, "maximum": most, "pattern": whole(text) })
        }
        Kind::Time(..) => json!({ "type": "string", "pattern": whole(&time_pattern(NUMBER)) }),
        Kind::Seconds(least, most) => json!({
            "type": ["number", "string"],
            "minimum": least.as_secs_f64(),
            "maximum": most.as_secs_f64(),
            "pattern": whole(&format!("{NUMBER}|{}", time_pattern(NUMBER))),
        }),
        Kind::TimeOrZero(_) => json!({ "anyOf": [
            { "type": "string", "pattern": whole(&format!("0|{}", time_pattern(NUMBER))) },
            { "enum": [0] },
        ] }),
        Kind::PercentOrWhole(least, most) => json!({
            "type": ["integer", "string"],
            "minimum": least,
            "maximum": most,
            "pattern": whole("[0-9]+%?"),
        }),
        Kind::Percent(..) => json!({ "type": "string", "pattern": whole("[0-9]+%") }),
        Kind::Size(least, most) => json!({
            "type": ["number", "string"],
            "minimum": least,
            "maximum": most,
            "pattern": whole(&size_pattern(NUMBER)),
        }),
        Kind::Choice(names) => choice(&names()),
        Kind::ChoiceAs(names, aliases) => {
            let aliases: Vec<String> = aliases().into_iter().map(any_case).collect();
            json!({ "anyOf": [choice(&names()), { "type": "string", "pattern": whole(&aliases.join("|")) }] })
        }
        Kind::ChoiceOrGroup(names, shape) => json!({ "anyOf": [choice(&names()), group(shape)] }),
        Kind::ChoiceOr(names, text) => {
            json!({ "anyOf": [choice(&names()), { "type": "string", "pattern": whole(text) }] })
        }
        Kind::ChoiceOrWhole(names, least, most, text) => {
            json!({ "anyOf": [choice(&names()), values(&Kind::WholeOr(least, most, text))] })
        }
        Kind::Numeral(names, text) => {
            let numbers: Vec<Value> = names().into_iter().map(number).collect();
            json!({ "anyOf": [{ "enum": numbers }, { "type": "string", "pattern": whole(text) }] })
        }
        Kind::Text(text) => json!({ "type": "string", "pattern": whole(text) }),
        Kind::Word(text) => json!({ "type": ["string", "number"], "pattern": whole(text) }),
        Kind::OrOff(inner) => {
            let words = json!({ "type": "string", "pattern": whole(&words(&[FALSE_WORDS])) });
            json!({ "anyOf": [{ "enum": ["off", false] }, words, values(inner)] })
        }
        Kind::SwitchOrChoice(names) => json!({ "anyOf": [choice(&names()), values(&Kind::Switch)] }),
        Kind::SwitchOrText(form) => json!({ "anyOf": [values(&Kind::Switch), values(&Kind::Text(form))] }),
        Kind::SwitchOr(shape) => {
            json!({ "anyOf": [{ "enum": ["on", "off"] }, values(&Kind::Switch), group(shape)] })
        }
        Kind::List(item) => json!({ "type": ["array", "null"], "items": values(item) }),
        Kind::Items(item) => some(item),
        Kind::OneOrItems(item) => json!({ "anyOf": [values(item), some(item)] }),
        Kind::OneOrList(item) => {
            json!({ "anyOf": [values(item), { "type": "array", "items": values(item) }] })
        }
        Kind::Conditions => {
            let value = json!({ "type": ["string", "number", "boolean"] });
            let test = json!({
                "type": "object",
                "propertyNames": { "enum": ["present", "regex"] },
                "minProperties": 1,
            });
            let list = json!({ "type": "array", "items": value, "minItems": 1 });
            let any = json!({ "anyOf": [value, list, test] });
            json!({ "type": "object", "additionalProperties": any, "minProperties": 1 })
        }
        Kind::Values => {
            let value = json!({ "type": ["string", "number", "boolean"] });
            let list = json!({ "type": "array", "items": value, "minItems": 1 });
            json!({ "type": "object", "additionalProperties": { "anyOf": [value, list] } })
        }
        Kind::Headers => json!({
            "type": "object",
            "additionalProperties": values(&Kind::Word(TOKEN)),
            "minProperties": 1,
        }),
        Kind::Lines(has_lists) => {
            let value = json!({ "type": ["string", "number", "boolean"] });
            let list = json!({ "type": "array", "items": value, "minItems": 1 });
            let line = if has_lists { json!({ "anyOf": [value, list] }) } else { value };
            let names = json!({ "pattern": format!("^(?:{TOKEN})$") });
            json!({ "type": "object", "additionalProperties": line, "propertyNames": names, "minProperties": 1 })
        }
        Kind::Weights(least, most) => json!({
            "type": "object",
            "additionalProperties": values(&Kind::Whole(least, most)),
            "propertyNames": { "pattern": format!("^(?:{NAME})$") },
            "minProperties": 1,
        }),
        Kind::Rules(shape) => one_or_several(&values(&Kind::Word(NAME)), &group(shape)),
        Kind::ChoicesOrGroups(names, shape) => one_or_several(&choice(&names()), &group(shape)),
        Kind::ChoicesOrGroup(names, shape) => json!({ "anyOf": several(&choice(&names()), &group(shape)) }),
        Kind::SwitchOrChoicesOrGroup(names, shape) => {
            let switch = [json!({ "enum": ["on", "off"] }), values(&Kind::Switch)];
            let all = [&switch[..], &several(&choice(&names()), &group(shape))].concat();
            json!({ "anyOf": all })
        }
        Kind::Group(shape) => group(shape),
        Kind::Named(shape) => json!({
            "type": "object",
            "additionalProperties": group(shape),
            "propertyNames": { "pattern": format!("^(?:{NAME})$") },
            "minProperties": 1,
        }),
    }
}

/// A list with at least one item.
fn some(item: &Kind) -> Value {
    json!({ "type": "array", "items": values(item), "minItems": 1 })
}

/// Names in their usual spelling, so that editors propose them, and in any other.
fn choice(names: &[&str]) -> Value {
    let any: Vec<String> = names.iter().map(|name| any_case(name)).collect();
    json!({ "type": "string", "anyOf": [{ "enum": names }, { "pattern": whole(&any.join("|")) }] })
}

/// What a text looks like that evenkeel has yet to fill in.
const VARIABLE: &str = r"\$\{";

/// The expression for texts that are `inner` as a whole, or have a variable in them.
fn whole(inner: &str) -> String {
    format!("^(?:{inner})$|{VARIABLE}")
}

fn words(lists: &[&[&str]]) -> String {
    lists.concat().join("|")
}

/// What a text has to look like, where type, names and bounds in the schema don't say it to a reader.
fn form(kind: &Kind) -> Option<String> {
    let range = |least, most| format!("{} to {}", show_duration(least), show_duration(most));
    match *kind {
        Kind::Time(least, most) => {
            Some(format!("A time such as `250ms`, `2s` or `1m` ({}).", range(least, most)))
        }
        Kind::Seconds(least, most) => {
            Some(format!("A number of seconds, or a time such as `250ms` ({}).", range(least, most)))
        }
        Kind::Size(least, most) => {
            Some(format!("A size such as `64KiB` or `10MiB` ({} to {}).", show_size(least), show_size(most)))
        }
        Kind::OrOff(inner) => Some(match form(inner) {
            Some(form) => format!("`off`, or {}{}", form[..1].to_lowercase(), &form[1..]),
            None => return None,
        }),
        Kind::Whole(least, most) => Some(format!("A whole number ({least} to {most}).")),
        Kind::TimeOrZero(most) => {
            Some(format!("A time such as `250ms` or `1s` (0 to {}).", show_duration(most)))
        }
        Kind::Percent(least, most) | Kind::PercentOrWhole(least, most) => {
            Some(format!("A percentage ({least}% to {most}%)."))
        }
        _ => None,
    }
}

/// A number when `text` is one.
fn number(text: &str) -> Value {
    text.parse().map_or_else(|_| text.into(), |number: f64| number.into())
}

/// A name or a mapping, or a list of those.
fn one_or_several(name: &Value, group: &Value) -> Value {
    let list = json!({ "type": "array", "items": { "anyOf": [name, group] }, "minItems": 1 });
    json!({ "anyOf": [name, group, list] })
}

/// A name, a list of those, or a mapping.
fn several(name: &Value, group: &Value) -> [Value; 3] {
    let list = json!({ "type": "array", "items": name, "minItems": 1 });
    [name.clone(), list, group.clone()]
}

/// A default as it is in JSON: numbers, truth values and lists are no texts there.
fn written(kind: &Kind, text: &str) -> Value {
    let list = || text.strip_prefix('[')?.strip_suffix(']');
    let items = |item: &Kind| {
        let all = list()?.split(',').map(str::trim).filter(|item| !item.is_empty());
        Some(all.map(|text| written(item, text)).collect())
    };
    match *kind {
        Kind::Switch => text.parse().map_or_else(|_| text.into(), Value::Bool),
        Kind::Whole(..) | Kind::WholeOr(..) | Kind::ChoiceOrWhole(..) => {
            text.parse().map_or_else(|_| text.into(), |number: u32| number.into())
        }
        Kind::Numeral(..) => number(text),
        Kind::List(item) | Kind::Items(item) | Kind::OneOrItems(item) | Kind::OneOrList(item) => {
            items(item).unwrap_or_else(|| text.into())
        }
        Kind::ChoicesOrGroup(names, _) => items(&Kind::Choice(names)).unwrap_or_else(|| text.into()),
        Kind::ChoicesOrGroups(..) => list().map_or_else(|| text.into(), |name| json!([name])),
        Kind::OrOff(inner) if text != "off" => written(inner, text),
        _ => text.into(),
    }
}
