//! The OpenAPI document, and the answers that it speaks of.

use fake_backend::Running;
use serde_json::{Value, json};

use super::by_hand::of;
use super::support::process::Process;
use super::support::{Client, fakes};

/// What is wrong with `value` as one of `schema`; fields that the schema does not have are wrong too.
fn faults(document: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return faults(document, document.pointer(&name[1..]).unwrap(), value, place);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let all: Vec<Vec<String>> = any.iter().map(|one| faults(document, one, value, place)).collect();
        return if all.iter().any(Vec::is_empty) { Vec::new() } else { all.concat() };
    }
    let is_right = match schema["type"].as_str() {
        None => true,
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("null") => value.is_null(),
        Some(other) => panic!("{place}: a schema of type {other}"),
    };
    if !is_right {
        return vec![format!("{place}: {value} is no {}", schema["type"])];
    }
    let mut found = Vec::new();
    let fields = value.as_object().filter(|_| schema["type"] == "object");
    for (name, inner) in fields.into_iter().flatten() {
        let place = format!("{place}/{name}");
        match (schema["properties"].get(name), schema.get("additionalProperties")) {
            (Some(schema), _) | (None, Some(schema)) => found.extend(faults(document, schema, inner, &place)),
            (None, None) => found.push(format!("{place} is in no schema")),
        }
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    found.extend(
        required.filter(|name| value.get(name).is_none()).map(|name| format!("{place}/{name} is missing")),
    );
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(faults(document, &schema["items"], item, &format!("{place}/{number}")));
    }
    found
}

#[test]
fn every_answer_is_what_the_document_says_of_it() {
    let backends = fakes(3);
    let guarded = "webhooks: [{url: 'http://127.0.0.1:9/x'}]\nrate_limits: {l: {rate: 9/s}}\n\
                   access_lists: {a: {deny: 192.0.2.7}}";
    let of = |backends: &[Running], keys: &str| {
        of(backends, keys).replacen("  web:\n", "  web:\n    rate_limit: l\n    access: a\n", 1)
    };
    let process = Process::start(&format!("{guarded}\n{}", of(&backends[..2], "")), 1);
    let together =
        Process::start(
            &format!("cluster: {{name: t, node: only}}\n{}", super::by_hand::of(&backends[..2], ""))
                .replacen("  web:\n", "  web:\n    max_in_flight: 1\n    owner: soft\n", 1),
            1,
        );
    super::support::eventually("it is a member, and has a config to share", || {
        together.ask("GET /api/v1/cluster", b"").1["config"]["revision"] == 1
    });
    let document = process.ask("GET /api/v1/openapi.json", b"").1;
    let url = |number: usize| format!("http://127.0.0.1:{}", backends[number].port());
    let web = "/api/v1/targets/{target}";
    let backend = "/api/v1/targets/{target}/backends/{backend}";
    // A text of a config is sent as it is; all else is JSON.
    let config = |weight: u32| {
        Value::from(super::support::process::whole(&format!(
            "{guarded}\n{}",
            of(&backends[..2], &format!(", weight: {weight}"))
        )))
    };
    let asked: Vec<(&str, &str, Value)> = vec![
        ("GET", "/healthz", Value::Null),
        ("GET", "/readyz", Value::Null),
        ("GET", "/metrics", Value::Null),
        ("GET", "/", Value::Null),
        ("GET", "/api/v1/stream", Value::Null),
        ("GET", "/api/v1/history", Value::Null),
        ("GET", "/api/v1/session", Value::Null),
        ("GET", "/api/v1", Value::Null),
        ("GET", "/api/v1/openapi.json", Value::Null),
        ("GET", "/api/v1/config/digest", Value::Null),
        ("PATCH", web, json!({"max_in_flight": 7, "for": 3_600})),
        ("PATCH", backend, json!({"state": "drain", "weight": 5})),
        ("POST", "/api/v1/targets/{target}/backends", json!({"url": url(2), "name": "b2", "weight": 3})),
        (
            "POST",
            "/api/v1/access/blocked/entries",
            json!({"network": "192.0.2.0/24", "for": 60, "keep": true}),
        ),
        ("GET", "/api/v1/access/blocked/entries", Value::Null),
        ("POST", "/api/v1/cache/purge", json!({"url": "http://h.example/x?a", "soft": true})),
        ("GET", "/api/v1/overlay", Value::Null),
        ("DELETE", "/api/v1/access/blocked/entries/{network}", Value::Null),
        ("GET", "/api/v1/cluster", Value::Null),
        ("POST", "/api/v1/cluster/nodes/{node}/drain", Value::Null),
        ("DELETE", "/api/v1/cluster/nodes/{node}/drain", Value::Null),
        ("POST", "/api/v1/targets/{target}/backends/{backend}/owner", json!({"node": "only"})),
        ("GET", "/api/v1/cluster/owners", Value::Null),
        ("DELETE", "/api/v1/targets/{target}/backends/{backend}/owner", Value::Null),
        ("GET", "/api/v1/events?limit=50", Value::Null),
        ("DELETE", backend, Value::Null),
        ("POST", "/goloadbalance/remove_server", json!({"host": url(2)})),
        ("POST", "/goloadbalance/add_server", json!({"host": url(0)})),
        ("GET", "/goloadbalance", Value::Null),
        ("GET", "/api/v1/requests?last=9", Value::Null),
        ("GET", "/api/v1/requests/{id}", Value::Null),
        ("GET", "/api/v1/status", Value::Null),
        ("GET", web, Value::Null),
        ("GET", backend, Value::Null),
        (
            "POST",
            "/api/v1/explain",
            json!({"method": "GET", "url": "http://h.example/x", "headers": ["A: b"]}),
        ),
        ("POST", "/api/v1/config/plan", Value::Null),
        ("POST", "/api/v1/config/reload", Value::Null),
        ("POST", "/api/v1/reload", Value::Null),
        ("POST", "/api/v1/config/apply", config(2)),
        ("POST", "/api/v1/config/apply?confirm=1h", config(3)),
        ("GET", "/api/v1/status", Value::Null),
        ("POST", "/api/v1/config/confirm", Value::Null),
        ("PATCH", backend, json!({"weight": 9})),
        ("PATCH", web, json!({"max_in_flight": 8, "for": 3_600})),
        ("POST", "/api/v1/overlay/save", Value::Null),
        ("POST", "/api/v1/config/apply?confirm=1h", config(4)),
        ("POST", "/api/v1/config/rollback", Value::Null),
    ];
    let schema = |method: &str, path: &str| document["paths"][path][method.to_lowercase()].clone();
    let check = |schema: &Value, value: &Value, place: &str| {
        assert!(schema.is_object(), "{place} has no schema");
        let found = faults(&document, schema, value, "");
        assert!(found.is_empty(), "{place}: {found:#?}");
    };
    let mut left: Vec<String> = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        left.extend(
            item.as_object().unwrap().keys().map(|method| format!("{} {path}", method.to_uppercase())),
        );
    }
    // By its rate limit or by nothing: the last of ten is refused, and that is kept.
    let mut client = Client::connect(process.address("web"));
    let refused = (0..99).map(|_| client.get("/")).find(|answer| answer.status == 429);
    let refused = refused.unwrap().header("x-request-id").unwrap().to_owned();
    for (method, path, body) in asked {
        let line = format!("{method} {}", path.replace("{target}", "web").replace("{backend}", "b0"));
        let line =
            line.replace("{network}", "192.0.2.0%2F24").replace("{id}", &refused).replace("{node}", "only");
        let bytes = match &body {
            Value::Null => Vec::new(),
            Value::String(text) => text.clone().into_bytes(),
            fields => fields.to_string().into_bytes(),
        };
        let shared = path.starts_with("/api/v1/cluster") || path.ends_with("/owner");
        let asked = if shared { &together } else { &process };
        let (status, answer) = asked.ask(&line, &bytes);
        assert!(matches!(status, 200 | 201), "{line}: {status} {answer}");
        let path = path.split('?').next().unwrap();
        let operation = schema(method, path);
        let content = operation["responses"]["2XX"]["content"].as_object().unwrap();
        match content.get("application/json") {
            Some(json) => check(&json["schema"], &answer, &line),
            // Text, which says nothing to who reads JSON.
            None => assert!(content.keys().all(|kind| kind.contains("text")) && answer.is_null(), "{line}"),
        }
        if body.is_object() {
            check(&operation["requestBody"]["content"]["application/json"]["schema"], &body, &line);
        }
        left.retain(|known| *known != format!("{method} {path}"));
    }
    // There is nobody to log in over the unix socket: `dashboard` does.
    left.retain(|line| !matches!(&**line, "POST /api/v1/session" | "DELETE /api/v1/session"));
    // Somebody has to end the process that comes of it: `upgrade` does.
    left.retain(|line| line != "POST /api/v1/upgrade");
    assert!(left.is_empty(), "nothing was asked of {left:?}");
    // A plan with everything in it, and one that is refused.
    let other = super::by_hand::of(&backends[1..], ", weight: 2")
        .replace("listener: 127.0.0.1:0", "listener: [127.0.0.1:0, unix:s]");
    let plan = schema("POST", "/api/v1/config/plan");
    let plan = &plan["responses"]["2XX"]["content"]["application/json"]["schema"];
    for text in [super::support::process::whole(&other), "workers: [\n".to_owned(), "workers: 0\n".to_owned()]
    {
        let (status, answer) = process.ask("POST /api/v1/config/plan", text.as_bytes());
        assert_eq!(status, 200, "{answer}");
        check(plan, &answer, &text);
    }
    let problem =
        &document["components"]["responses"]["Problem"]["content"]["application/problem+json"]["schema"];
    for (line, body) in [
        ("GET /api/v1/nothing", ""),
        ("PATCH /api/v1/targets/web", "{\"max_in_flight\": 0}"),
        ("POST /api/v1/targets/web/backends", "{\"url\": \"x\"}"),
    ] {
        let (status, answer) = process.ask(line, body.as_bytes());
        assert!(status >= 400, "{line}: {answer}");
        check(problem, &answer, line);
    }
    // The check itself finds what is wrong.
    let entry = json!({"$ref": "#/components/schemas/Digest"});
    assert_eq!(faults(&document, &entry, &json!({"digest": 1}), ""), ["/digest: 1 is no \"string\""]);
    assert_eq!(faults(&document, &entry, &json!({"more": ""}), "").len(), 2);
}
