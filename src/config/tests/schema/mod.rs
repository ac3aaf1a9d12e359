//! The JSON Schema says what the walker does: every key, every range, every name; and it refuses no file that loads.

mod ends;
mod patterns;
mod setting;
mod validator;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::access;
use super::certificates::Certs;
use super::every_key::rows;
use super::*;
use crate::config::raw::{Key, SHAPES};
use crate::config::yaml::{self, Node, Typed};
use ends::ends;
use setting::{pointer_to, web_with};
use validator::faults;

/// How an editor may understand a file.
#[derive(Clone, Copy, Debug)]
enum Reading {
    /// As evenkeel does, after the environment: `off` is `false`.
    Ours,
    /// As YAML 1.2 does, before it: `off` and `${NAME}` are texts.
    Plain,
}

/// A config text as JSON.
fn read(text: &str, reading: Reading) -> Value {
    let mut report = Report::about("t.yaml", text);
    let mut root = yaml::read(text, 0, &mut report).unwrap();
    if let Reading::Ours = reading {
        variables::substitute(&mut root, |_| false, &env, &mut report);
    }
    value(&root, reading)
}

fn value(node: &Node, reading: Reading) -> Value {
    // What came from the environment takes the type that its key wants.
    let from_variable = node.variable().and_then(|_| node.text()?.parse::<u64>().ok());
    if let Some(number) = from_variable {
        return number.into();
    }
    match (node.typed(), reading) {
        (Typed::Null, _) => Value::Null,
        (Typed::Bool(_), Reading::Plain) if !matches!(node.text(), Some("true" | "false")) => {
            node.text().into()
        }
        (Typed::Bool(truth), _) => truth.into(),
        (Typed::Integer(number), _) => number.into(),
        (Typed::Float(number), _) => number.into(),
        (Typed::Text(text), _) => text.into(),
        (Typed::List(items), _) => items.iter().map(|item| value(item, reading)).collect(),
        (Typed::Map(entries), _) => {
            Value::Object(entries.iter().map(|e| (e.key.clone(), value(&e.node, reading))).collect())
        }
    }
}

/// The texts of a folder of fixtures with their names.
fn fixtures(folder: &str) -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| (path.display().to_string(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    texts.sort();
    assert!(!texts.is_empty(), "no fixtures in {folder}");
    texts
}

#[test]
fn the_schema_has_every_key_and_no_other() {
    fn collect(schema: &Value, path: &str, found: &mut Vec<String>) {
        for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
            let here = format!("{path}{key}");
            assert!(inner["description"].as_str().is_some_and(|text| text.contains(' ')), "{here}");
            collect(inner, &format!("{here}."), found);
            collect(&inner["additionalProperties"], &format!("{here}.<name>."), found);
            collect(&inner["items"], &format!("{here}[]."), found);
            let choices = inner["anyOf"].as_array().map(Vec::as_slice).unwrap_or_default();
            // One, or a list of them, is the same.
            let list = choices.iter().find(|choice| choice["items"].get("properties").is_some());
            match list {
                Some(list) => collect(&list["items"], &format!("{here}[]."), found),
                None => choices.iter().for_each(|choice| collect(choice, &format!("{here}."), found)),
            }
            found.push(here);
        }
    }
    let mut found = Vec::new();
    collect(&schema(), "", &mut found);
    let mut known = keys();
    assert!(known.len() > 40, "only {} keys", known.len());
    known.sort();
    found.sort();
    assert_eq!(found, known);
}

#[test]
fn every_mapping_of_the_schema_is_closed() {
    fn look(schema: &Value, seen: &mut usize) {
        if schema.get("properties").is_some() {
            assert_eq!(schema["additionalProperties"], json!(false), "{schema}");
            *seen += 1;
        }
        let inner = match schema {
            Value::Object(object) => object.values().collect(),
            Value::Array(items) => items.iter().collect(),
            _ => Vec::new(),
        };
        inner.into_iter().for_each(|schema| look(schema, seen));
    }
    let mut seen = 0;
    look(&schema(), &mut seen);
    // One route, or a list of them, with all the groups of each.
    let of_routes = |shape: &raw::Shape| shape.path().starts_with("listeners.<name>.routes[].");
    // One rule, or a list of them.
    let is_rule =
        |shape: &raw::Shape| [".access.", "<name>.by."].iter().any(|end| shape.path().ends_with(end));
    let times = |shape| (1 + usize::from(of_routes(shape))) * (1 + usize::from(is_rule(shape)));
    assert_eq!(seen, SHAPES.iter().map(times).sum::<usize>());
}

#[test]
fn files_that_load_are_valid() {
    let schema = schema();
    let mut texts = fixtures("fixtures/config/valid");
    texts.extend(fixtures("fixtures/gruglb"));
    let example = "example-config.yaml";
    texts.push((example.into(), std::fs::read_to_string(example).unwrap()));
    texts.extend(rows().into_iter().map(|(key, text, _)| (key.to_owned(), text)));
    for (name, text) in texts {
        for reading in [Reading::Ours, Reading::Plain] {
            assert_eq!(faults(&schema, &read(&text, reading)), [""; 0], "{name}, {reading:?}");
        }
    }
}

#[test]
fn wrong_types_and_unknown_keys_are_refused_where_they_stand() {
    let table: [(&str, &[&str]); 4] = [
        (
            "wrong_types",
            &[
                "access_log",
                "address",
                "graceful_shutdown",
                "logging",
                "max_connections",
                "targets.api",
                "targets.mail.backends[0]",
                "targets.mail.backends[1].host",
                "targets.mail.backends[1].port",
                "targets.mail.backends[2].host",
                "targets.mail.backends[2].port",
                "targets.web.backends",
                "targets.web.health_check",
                "targets.web.limits.body",
                "targets.web.limits.headers",
                "targets.web.listener",
                "targets.web.protocol",
                "targets.web.timeouts",
                "targets.web.upgrade",
                "trusted_proxies",
                "workers",
            ],
        ),
        (
            "unknown_keys",
            &[
                "targets.api.backends[0]",
                "targets.api.backends[0].address",
                "targets.api.backends[0].prot",
                "targets.web",
                "targets.web.interval",
                "targets.web.listen",
                "targets.web.protocl",
                "targets.web.servers",
                "upstreams",
            ],
        ),
        (
            "units",
            &[
                "shutdown_timeout",
                "targets.web.health_check.interval",
                "targets.web.health_check.timeout",
                "targets.web.limits.body",
                "targets.web.limits.body_rate",
                "targets.web.limits.head_size",
                "targets.web.timeouts.connect",
                "targets.web.timeouts.first_byte",
                "targets.web.timeouts.head",
            ],
        ),
        ("servers_and_targets", &["", "servers[1]"]),
    ];
    for (name, wanted) in table {
        let text = std::fs::read_to_string(format!("fixtures/config/invalid/{name}.yaml")).unwrap();
        assert_eq!(faults(&schema(), &read(&text, Reading::Ours)), wanted, "{name}");
    }
}

/// Every key with its path.
fn all() -> impl Iterator<Item = (String, &'static Key)> {
    SHAPES
        .iter()
        .flat_map(|shape| shape.keys().iter().map(|key| (format!("{}{}", shape.path(), key.name), key)))
}

/// Whether this JSON, which is YAML too, loads.
/// Whether it loads. What could be meant instead takes longer to find out than that, and is not asked here.
fn loads(value: &Value) -> bool {
    let source = SourceFile::new(Path::new("./t.yaml"), &value.to_string());
    load_once(source, &Instead::new(), (Files::default(), None), &Flags::default(), &env).is_ok()
}

#[test]
fn ranges_and_names_of_the_schema_are_those_of_the_walker() {
    let schema = schema();
    let (mut right_seen, mut wrong_seen) = (0, 0);
    for (path, key) in all() {
        let (right, wrong) = ends(&key.kind);
        for value in right {
            let config = web_with(&path, value);
            assert_eq!(faults(&schema, &config), [""; 0], "{config}");
            if let Err(problems) = load_with(&config.to_string(), &Flags::default()) {
                panic!("the table of keys takes what the walker refuses: {problems}");
            }
            right_seen += 1;
        }
        for value in wrong {
            // A schema can't bound a text that stands for a time or a size; the walker does.
            let unseen =
                matches!(&value, Value::String(text) if text.starts_with(|c: char| c.is_ascii_digit()));
            let config = web_with(&path, value);
            assert!(!loads(&config), "the walker takes what the table of keys does not: {config}");
            assert!(unseen || !faults(&schema, &config).is_empty(), "the schema takes {config}");
            wrong_seen += 1;
        }
    }
    assert!(right_seen > 80 && wrong_seen > 150, "only {right_seen} and {wrong_seen} values were tried");
}

#[test]
fn what_loads_is_never_refused() {
    let schema = schema();
    let texts = [
        "",
        " ",
        "off",
        "on",
        "No",
        "0",
        "1",
        "/",
        "/a?b",
        "/ä",
        "a",
        "a b",
        "a/b",
        "[::1]:80",
        "*",
        "*:80",
        "10.0.0.1",
        "10.0.0.0/8",
        "fd00::/8",
        "127.0.0.1:80",
        "http://a",
        "HTTP://a:1/",
        "http://[::1]:1",
        "tcp://a:1",
        "unix:/tmp",
        "200",
        "200-399",
        " 200 - 399 ",
        "stdout",
        "-",
        "x.log",
        "${PORT}",
        "${WORD}",
        "${SWITCH}",
        "a${WORD}",
        "${UNSET:-/x}",
        "$${",
        "ä",
    ];
    let words =
        "datadog udp://a:1 tcp HTTP 8080 5s 1m30s 1.5h websocket tls/1.3 x_forwarded round_robin json trace 0.5 250MS 64kib 1.5KB 1e3 a.b. ::1 [::1]"
            .split(' ');
    let mut values: Vec<Value> = texts.into_iter().chain(words).map(Value::from).collect();
    values.extend(values.clone().into_iter().map(|value| json!([value])));
    values.extend([0, 1, 80, 200, 65_535, 65_536, 86_400].into_iter().map(Value::from));
    values.extend([json!(null), json!(true), json!(false), json!(-1), json!(0.5), json!(7.25)]);
    values.extend([json!([]), json!({}), json!([{}]), json!([1, "2s"]), json!({ "a": 1 })]);
    values.extend([json!({ "header": "X-A" }), json!({ "cookie": "a", "query": "b" })]);
    let files = ["both.pem", "ca.pem", "tokens", "otlp.headers"].map(|name| Certs::shared().path(name));
    values.extend(access::values());
    values.extend(auth::values());
    values.extend(cache::values());
    values.extend(cluster::values());
    values.extend(["pairs", "crl.pem", "a.ocsp"].map(|name| Value::from(Certs::shared().path(name))));
    values.push(json!([Certs::shared().path("crl.der")]));
    values.extend(http2::values());
    values.extend(offers::values());
    values.extend(ordered::values());
    values.extend(proxy_protocol::values());
    values.extend(found::values());
    values.extend([json!([{ "url": "http://a", "events": "reload" }]), json!("reload")]);
    values.extend([json!({ "cert_file": files[0] }), json!([{ "cert_file": files[0] }])]);
    values.extend(files.map(Value::from));
    let request = "GET http://a/";
    values.extend([json!([{ "request": request, "expect": { "status": 404 } }]), json!(request)]);
    values.extend([
        json!([{ "target": "web" }]),
        json!({ "target": "web" }),
        json!({ "subject": "a" }),
        json!("1/s"),
    ]);
    let of_routes = [
        json!({ "web": 1 }),
        json!({ "targets": { "web": 1 } }),
        json!({ "to": "/" }),
        json!({ "to": "udp://a:1" }),
        json!(308),
    ];
    values.extend(of_routes);
    values.extend([json!({ "set": { "X-A": "b" } }), json!({ "strip_prefix": "/a" })]);
    values.extend(["keep", "refuse", "web", "shadow"].map(Value::from));
    values.extend(["connect", "Reset", "502-504", "p95", "20"].map(Value::from));
    values.extend([503, 599, 9_000].map(Value::from));
    values.extend(
        ["required", "1.3", "TLSv1.2", "5%", "125%", "{status}", "LeastConn", "query", "drain", "soft"]
            .map(Value::from),
    );
    let mut loaded = BTreeSet::new();
    for (path, _) in all() {
        for value in &values {
            let config = web_with(&path, value.clone());
            if loads(&config) {
                assert_eq!(faults(&schema, &config), [""; 0], "{config}");
                loaded.insert(path.clone());
            }
        }
    }
    let never: Vec<String> = keys().into_iter().filter(|key| !loaded.contains(key)).collect();
    // Any limit, listener, target and backend needs more than these values have, and `send` needs `receive`.
    let expected = [
        "rate_limits",
        "listeners",
        "targets",
        "targets.<name>.backends",
        "targets.<name>.health_check.send",
    ];
    assert_eq!(never, expected, "no value was right for these");
}

#[test]
fn defaults_of_the_schema_are_what_holds_without_a_key() {
    let mut seen = 0;
    for (path, key) in all().filter(|(_, key)| key.default.is_some()) {
        let written = schema_of(&path)["default"].clone();
        let with = web_with(&path, written);
        let mut without = with.clone();
        let pointer = pointer_to(&path);
        let (parent, _) = pointer.rsplit_once('/').unwrap();
        without.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key.name);
        let mut written = config(&with.to_string());
        // The one default that means something else when it is written: then it holds also for a backend that is alone.
        for breaker in written.targets.iter_mut().filter_map(|target| target.resilience.breaker.as_mut()) {
            assert_eq!(breaker.open_is_default, path != "targets.<name>.breaker.open");
            breaker.open_is_default = true;
        }
        assert_eq!(written, config(&without.to_string()), "the default of `{path}`");
        seen += 1;
    }
    assert!(seen > 25, "only {seen} defaults were compared");
}

/// The schema of one key.
pub(super) fn schema_of(path: &str) -> Value {
    let steps = path.replace("[]", "").replace("<name>.", "");
    steps.split('.').fold(schema(), |schema, step| {
        let inside = |schema: &Value| {
            let of_name = schema.pointer(&format!("/additionalProperties/properties/{step}"));
            let of_item = schema.pointer(&format!("/items/properties/{step}"));
            schema.pointer(&format!("/properties/{step}")).or(of_name).or(of_item).cloned()
        };
        let choices = schema["anyOf"].as_array().map(Vec::as_slice).unwrap_or_default().iter();
        inside(&schema).or_else(|| choices.rev().find_map(inside)).unwrap()
    })
}
