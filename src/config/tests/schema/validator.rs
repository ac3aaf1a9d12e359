//! A JSON Schema validator for what our schema is made of. It refuses any other keyword, so that nothing in the
//! schema goes unchecked.

use std::cell::RefCell;
use std::collections::HashMap;

use regex_automata::meta::Regex;
use serde_json::Value;

/// Where `value` breaks `schema`, each place as a path such as `targets.web.listener`; empty when it is valid.
pub(super) fn faults(schema: &Value, value: &Value) -> Vec<String> {
    faults_at("", schema, value)
}

fn faults_at(path: &str, schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for (keyword, wanted) in schema.as_object().unwrap() {
        let sound = match keyword.as_str() {
            "$schema" | "title" | "description" | "default" => true,
            "type" => match wanted {
                Value::Array(types) => types.iter().any(|wanted| has_type(value, wanted)),
                one => has_type(value, one),
            },
            "enum" => wanted.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
            "pattern" => value.as_str().is_none_or(|text| matches(wanted, text)),
            "required" => value.as_object().is_none_or(|object| {
                wanted.as_array().unwrap().iter().all(|key| object.contains_key(key.as_str().unwrap()))
            }),
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= wanted.as_u64().unwrap()),
            "minProperties" => {
                value.as_object().is_none_or(|object| object.len() as u64 >= wanted.as_u64().unwrap())
            }
            "propertyNames" => value.as_object().is_none_or(|object| {
                object.keys().all(|key| faults_at(key, wanted, &key.as_str().into()).is_empty())
            }),
            "not" => !faults_at(path, wanted, value).is_empty(),
            "oneOf" => fitting(wanted, value).count() == 1,
            "anyOf" => {
                // Faults inside the alternative of the right type say more than that none fits.
                if fitting(wanted, value).count() == 0 {
                    let inner: Vec<Vec<String>> =
                        wanted.as_array().unwrap().iter().map(|one| faults_at(path, one, value)).collect();
                    let deeper = inner.into_iter().find(|faults| faults.iter().all(|fault| fault != path));
                    faults.extend(deeper.unwrap_or_else(|| vec![path.to_owned()]));
                }
                true
            }
            "patternProperties" => {
                for (pattern, inner) in wanted.as_object().unwrap() {
                    for (key, value) in value.as_object().into_iter().flatten() {
                        if matches(&pattern.as_str().into(), key) {
                            faults.extend(faults_at(&below(path, key), inner, value));
                        }
                    }
                }
                true
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    faults.extend(faults_at(&format!("{path}[{index}]"), wanted, item));
                }
                true
            }
            "properties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    if let Some(schema) = wanted.get(key) {
                        faults.extend(faults_at(&below(path, key), schema, value));
                    }
                }
                true
            }
            "additionalProperties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    let patterns = schema["patternProperties"].as_object().into_iter().flatten();
                    let is_known = schema["properties"].get(key).is_some()
                        || patterns.into_iter().any(|(pattern, _)| matches(&pattern.as_str().into(), key));
                    match wanted {
                        _ if is_known => {}
                        Value::Bool(false) => faults.push(below(path, key)),
                        other => faults.extend(faults_at(&below(path, key), other, value)),
                    }
                }
                true
            }
            other => panic!("this validator does not know `{other}`"),
        };
        if !sound {
            faults.push(path.to_owned());
        }
    }
    // A value may break several keywords at once; one fault in one place is enough.
    faults.sort();
    faults.dedup();
    faults
}

/// The schemas of a list that `value` keeps to.
fn fitting<'s>(schemas: &'s Value, value: &'s Value) -> impl Iterator<Item = &'s Value> {
    schemas.as_array().unwrap().iter().filter(|schema| faults_at("", schema, value).is_empty())
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn has_type(value: &Value, wanted: &Value) -> bool {
    match wanted.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("`{other}` is no type"),
    }
}

/// Whether a pattern is found anywhere in `text`, which is what JSON Schema means by it.
pub(super) fn matches(pattern: &Value, text: &str) -> bool {
    thread_local! {
        // Making one takes far longer than asking it.
        static MADE: RefCell<HashMap<String, Regex>> = RefCell::default();
    }
    let pattern = pattern.as_str().unwrap();
    MADE.with_borrow_mut(|made| {
        let regex = made.entry(pattern.to_owned()).or_insert_with(|| Regex::new(pattern).unwrap());
        regex.is_match(text)
    })
}
