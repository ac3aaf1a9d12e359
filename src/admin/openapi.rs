//! The table of routes as an OpenAPI 3.1 document, for whoever makes a client of it.

use serde_json::{Map, Value, json};

use super::exchange::problem_document::MEDIA_TYPE;
use super::exchange::question::BodyKind;
use super::route::AdminRoute;
use super::schemas;
use crate::config::model::Scope;
use crate::telemetry::exposition::TextForm;

const PROBLEM: &str = "#/components/responses/Problem";

/// The document of `routes`.
#[must_use]
pub fn document(routes: &[AdminRoute]) -> Value {
    let mut paths = Map::new();
    for route in routes {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "evenkeel admin API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Over the unix socket every right and no token; over TCP a token, whose scope is read, operate or configure.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas::components(),
            "responses": { "Problem": {
                "description": "Why it was not done (RFC 9457).",
                "content": { MEDIA_TYPE: { "schema": schemas::reference("Problem") } },
            } },
        },
    })
}

fn operation(route: &AdminRoute) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    let text = json!({ "type": "string" });
    let mut parameter = |name: &str, place: &str| {
        parameters.push(json!({ "name": name, "in": place, "required": place == "path", "schema": text }));
    };
    route.parameters().for_each(|name| parameter(name, "path"));
    route.query.iter().for_each(|name| parameter(name, "query"));
    if route.changes {
        parameter("If-Match", "header");
    }
    let mut operation = json!({
        "operationId": identifier(route),
        "summary": route.does,
        "parameters": parameters,
        "responses": {
            "2XX": { "description": "Done.", "content": answers(route.schemas.1) },
            "default": { "$ref": PROBLEM },
        },
        "x-scope": route.scope.name(),
    });
    if route.scope > Scope::Open {
        operation["security"] = json!([{ "token": [] }]);
    } else {
        operation["security"] = json!([]);
    }
    match route.body {
        BodyKind::None => {}
        BodyKind::Json => {
            let content = json!({ "application/json": content(route.schemas.0) });
            operation["requestBody"] = json!({ "content": content });
        }
        BodyKind::Config => {
            let content = json!({ "application/yaml": { "schema": { "type": "string" } } });
            operation["requestBody"] = json!({ "required": false, "content": content });
        }
    }
    operation
}

/// What an answer of this schema comes as.
fn answers(schema: &str) -> Value {
    if schema == schemas::TEXT {
        let forms = [TextForm::Prometheus, TextForm::OpenMetrics].map(TextForm::media_type);
        let text = json!({ "schema": { "type": "string" } });
        return forms.into_iter().map(|form| (form.to_owned(), text.clone())).collect::<Map<_, _>>().into();
    }
    if schema == schemas::PAGE {
        return json!({ "text/html": { "schema": { "type": "string" } } });
    }
    json!({ "application/json": content(schema) })
}

/// What has the schema of this name.
fn content(schema: &str) -> Value {
    if schema.is_empty() { json!({}) } else { json!({ "schema": schemas::reference(schema) }) }
}

/// Method and path in one word.
fn identifier(route: &AdminRoute) -> String {
    let words = route.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(route.method.to_ascii_lowercase(), |all, word| format!("{all}_{word}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::exchange::problem_document::ProblemDocument;
    use super::super::routes::ROUTES;
    use super::*;
    use crate::reload::fault::Fault;

    /// Every place in a document that refers to another one.
    fn references(of: &Value, found: &mut Vec<String>) {
        match of {
            Value::Object(fields) => fields.iter().for_each(|(name, value)| match value.as_str() {
                Some(place) if name == "$ref" => found.push(place.to_owned()),
                _ => references(value, found),
            }),
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn the_document_has_every_route_and_no_other() {
        let document = document(ROUTES);
        let paths = document["paths"].as_object().expect("paths");
        let operations = paths.iter().flat_map(|(path, item)| {
            let methods = item.as_object().expect("methods").keys();
            methods.map(move |method| format!("{} {path}", method.to_ascii_uppercase()))
        });
        let table = ROUTES.iter().map(|route| format!("{} {}", route.method, route.path));
        assert_eq!(operations.collect::<BTreeSet<_>>(), table.collect::<BTreeSet<_>>());
        let mut ids = BTreeSet::new();
        for route in ROUTES {
            let operation = &paths[route.path][route.method.to_ascii_lowercase()];
            assert!(ids.insert(operation["operationId"].to_string()), "{operation}");
            assert_eq!(operation["x-scope"], route.scope.name());
            assert_eq!(
                operation["security"].as_array().expect("a list").is_empty(),
                route.scope == Scope::Open
            );
            assert_eq!(operation["requestBody"].is_object(), route.body != BodyKind::None);
            let (body, answer) = route.schemas;
            assert_eq!(!body.is_empty(), route.body == BodyKind::Json, "{}: a body has a schema", route.path);
            assert!(!answer.is_empty(), "{}: an answer has a schema", route.path);
            // What stands in braces is declared, and nothing else is in the path.
            let declared = operation["parameters"].as_array().expect("a list").iter();
            let in_path: Vec<&str> = declared
                .filter(|one| one["in"] == "path" && one["required"] == true)
                .filter_map(|one| one["name"].as_str())
                .collect();
            assert_eq!(in_path, route.parameters().collect::<Vec<_>>());
        }
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(!found.is_empty());
        for place in found {
            let pointer = place.strip_prefix('#').expect("inside");
            assert!(document.pointer(pointer).is_some(), "{place}");
        }
    }

    #[test]
    fn the_schema_of_a_problem_has_all_that_a_problem_can_have() {
        let names = |schema: &Value| -> BTreeSet<String> {
            schema["properties"].as_object().expect("properties").keys().cloned().collect()
        };
        let fault = Fault {
            file: Some(String::new()),
            line: Some(1),
            column: Some(1),
            expected: Some(String::new()),
            hint: Some(String::new()),
            note: Some(String::new()),
            ..Fault::default()
        };
        let mut problem = ProblemDocument::refused(vec![fault], false);
        problem.pointer = Some("/a".into());
        let shown = serde_json::to_value(problem).expect("JSON");
        let fields = |of: &Value| of.as_object().expect("fields").keys().cloned().collect::<BTreeSet<_>>();
        let schemas = schemas::components();
        assert_eq!(names(&schemas["Problem"]), fields(&shown));
        assert_eq!(names(&schemas["Fault"]), fields(&shown["problems"][0]));
    }
}
