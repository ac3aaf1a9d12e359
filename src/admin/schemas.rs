//! What answers and bodies look like, for the OpenAPI document. `tests/e2e/openapi.rs` holds the answers of a process to it.
//!
//! A line for each type: its name, and its fields as `name:type`. A field with a `?` behind its name may be absent, a type
//! with one may be `null`. `[T]` is a list, `{T}` an object with any names, `any` is anything; a name in capitals is another line.

use serde_json::{Map, Value, json};

/// Stands for an answer that is no JSON but text.
pub const TEXT: &str = "Text";

/// Stands for a page.
pub const PAGE: &str = "Page";

/// All of them; what stands in answers of hyper's making alone is not among them.
pub const SCHEMAS: &[(&str, &str)] = &[
    ("Liveness", "alive:boolean"),
    ("Readiness", "ready:boolean reasons:[string]"),
    ("Process", "version:string name:string pid:integer config:string? routes:[Route]"),
    ("Route", "method:string path:string scope:string does:string"),
    ("Document", "openapi:string info:any paths:any components:any"),
    ("Digest", "digest:string"),
    ("Session", "who:string scope:string ends_ms:integer? tokens:boolean"),
    ("Login", "token:string"),
    ("Board", "at_ms:integer up_ms:integer rows:any"),
    ("History", "step_s:integer age_ms:integer rows:{Points}"),
    ("Points", "requests:[integer] errors:[integer] active:[integer] p50_ms:[number?] p99_ms:[number?]"),
    (
        "Fault",
        "file?:string line?:integer column?:integer message:string expected?:string hint?:string note?:string text:string",
    ),
    ("Problem", "type:string title:string status:integer detail:string pointer?:string problems?:[Fault]"),
    (
        "Plan",
        "verdict:string objects:[PlannedObject] addresses:[PlannedAddress] problems:[Fault] warnings:[string] over?:[PlannedEnd]",
    ),
    (
        "PlannedObject",
        "kind:string name:string change:string place?:PlannedPlace keys:[PlannedKey] loses_traffic:boolean under_way:integer \
         idle_connections:integer connections:integer",
    ),
    ("PlannedPlace", "text:string file?:string line?:integer"),
    ("PlannedKey", "key:string old:string? new:string? place?:PlannedPlace"),
    ("PlannedAddress", "address:string listener:string change:any"),
    ("PlannedEnd", "object:string field:string value?:string author:string reason:string"),
    ("ApplyReport", "plan:Plan trial:TrialReport?"),
    ("TrialReport", "who:string since_ms:integer window_ms:integer left_ms:integer"),
    ("Confirmed", "file:string before?:string"),
    ("Upgrade", "binary?:string force?:boolean"),
    ("UpgradeReport", "version:string process:integer generation:integer draining:[Draining]"),
    ("Draining", "process:integer seconds:integer"),
    ("Change", "objects:[string] plan:Plan entries:[Entry]"),
    ("Overlay", "entries:[Entry] blocked:[BlockedEntry] refused?:string"),
    ("Blocked", "entries:[BlockedEntry] refused?:string"),
    (
        "BlockedEntry",
        "id:integer network:string keep?:boolean author:string at_ms:integer expires_ms?:integer ends_in_ms?:integer",
    ),
    (
        "BlockAnswer",
        "id:integer network:string keep?:boolean author:string at_ms:integer expires_ms?:integer ends_in_ms?:integer cut:integer",
    ),
    ("Purge", "url?:string prefix?:string tag?:string all?:boolean soft?:boolean local?:boolean"),
    ("PurgeReport", "of:string soft:boolean objects:integer?"),
    ("Block", "network:string for?:integer keep?:boolean force?:boolean local?:boolean"),
    (
        "Entry",
        "id:integer target:string backend?:string field:string value?:any file_value?:string address?:string author:string \
         at_ms:integer expires_ms?:integer gone_since_ms?:integer file_says?:string place?:string aside?:string \
         ends_in_ms?:integer",
    ),
    ("SaveReport", "files:[SavedFile] saved:[Entry] left:[LeftEntry]"),
    ("SavedFile", "file:string lines:[SavedLine]"),
    ("SavedLine", "sign:string line:integer text:string"),
    ("LeftEntry", "entry:Entry reason:string"),
    ("TargetChange", "max_in_flight?:any for?:integer local?:boolean"),
    ("BackendChange", "state?:string? weight?:integer? for?:integer local?:boolean"),
    (
        "Addition",
        "url:string name?:string weight?:integer priority?:integer backup?:boolean zone?:string health_path?:string for?:integer local?:boolean",
    ),
    (
        "Cluster",
        "cluster:string node:string store:string standing:string reason?:string store_refuses?:string for_ms:integer lease_ms:integer kept_ms:integer? \
         revision:integer config?:Revision nodes:[Node]",
    ),
    ("Revision", "revision:integer author:string node:string at_ms:integer current:integer?"),
    (
        "Node",
        "name:string own:boolean version:string schema:[integer] boot:string since_ms:integer zone?:string drained_by?:string",
    ),
    ("Owners", "targets:[TargetOwners]"),
    ("TargetOwners", "target:string nodes:[NodeOwns] backends:[Owned]"),
    ("NodeOwns", "node:string backends:integer"),
    ("Owned", "backend:string node:string? by_hand:boolean active:integer elsewhere:integer"),
    ("OwnerChange", "node:string"),
    ("Host", "host:string"),
    ("Sample", "method?:string url:string listener?:string from?:string headers?:[string]"),
    ("Explanation", "chain:Chain candidates:[Candidacy] lines:[string]"),
    (
        "Chain",
        "request:string from:string client:string? listener:string path:PathTaken? not:[PassedOver] not_more:integer \
         route:string? access:string? blocked:string? denied_by:string? auth:string? rate_limits:[string] cache:string? copies:string? verdict:Verdict",
    ),
    ("PathTaken", "sent:string taken:string?"),
    ("PassedOver", "route:string why:string"),
    (
        "Verdict",
        "is:string targets?:[Side] status?:integer cause?:string? location?:string? lines?:[HeaderPair]",
    ),
    (
        "Side",
        "target:string percent:number path:string edits:[HeaderChange] answer_lines:[HeaderPair] pin:string?",
    ),
    ("HeaderPair", "name:string value:string"),
    ("HeaderChange", "name:string before:[string] after:[string]"),
    ("Candidacy", "target:string balance:string pick:string? backends:[Candidate]"),
    (
        "Candidate",
        "name:string state:string ready:boolean tier:integer? weight:integer load:integer score:number?",
    ),
    ("Servers", "{boolean}"),
    (
        "Status",
        "process:StatusProcess connections:Connections upstream:Upstream causes:{integer} listeners:[Listener] targets:[Target] cache?:Cache \
         webhooks?:[Webhook] rate_limits?:[RateLimit] access_lists?:[AccessList]",
    ),
    (
        "RateLimit",
        "name:string dry_run:boolean admitted:integer refused:integer would_refuse:integer crowded:integer",
    ),
    ("AccessList", "name:string refused:integer"),
    ("Cache", "bytes:integer memory:integer compressed:integer requests:{integer} reasons:{integer}"),
    (
        "StatusProcess",
        "version:string name:string pid:integer config:string? config_number:integer workers:integer started_ms:integer \
         uptime_ms:integer blocked:integer trial?:TrialReport",
    ),
    (
        "Webhook",
        "url:string events:[string] waiting:integer delivered:integer failed:integer dropped:integer last_error:string? \
         last_error_ms:integer?",
    ),
    ("Requests", "requests:[Request] more:boolean"),
    (
        "Request",
        "id:string time_ms:integer kind:string kept_for:string client:string? listener:string route:string? target:string? \
         backend:string? method:string? host:string? path:string? status:integer? cause:string? duration_ms:number attempts:integer trace_id:string?",
    ),
    (
        "Story",
        "id:string time_ms:integer kind:string kept_for:string client:string? listener:string route:string? target:string? \
         backend:string? method:string? host:string? path:string? status:integer? cause:string? duration_ms:number attempts:integer trace_id:string? \
         verdict:string fault:string headers:[HeaderPair] bytes_in:integer bytes_out:integer steps:[Step] tries:[Try] \
         config_number:integer config_changed:boolean config:[DecidingKey] events:[NearbyEvent]",
    ),
    ("Step", "step:string at_ms:number took_ms:number? text:string"),
    (
        "Try",
        "backend:string cause:string? reused:boolean resent:boolean in_flight:integer? was_left_out:boolean",
    ),
    ("DecidingKey", "key:string value:string place:PlannedPlace"),
    (
        "NearbyEvent",
        "at_ms:number id:string time_ms:integer level:string kind:string object:string? text:string facts:{any}",
    ),
    ("Events", "events:[Event] latest:string missed:integer"),
    ("Event", "id:string time_ms:integer level:string kind:string object:string? text:string facts:{any}"),
    ("Connections", "open:integer limit:integer accepted:integer refused:integer"),
    ("Upstream", "opened:integer reused:integer retries:integer"),
    ("Traffic", "requests:integer by_class:{integer} bytes_in:integer bytes_out:integer"),
    ("Rate", "requests:number errors:number over_ms:integer"),
    (
        "Listener",
        "name:string state:string reason:string since_ms:integer age_ms:integer protocol:string addresses:[string] \
         targets:[string] connections:integer connections_limit:integer? connections_per_client:integer? traffic:Traffic \
         rate:Rate? certificates:[Certificate]",
    ),
    (
        "Certificate",
        "names:[string] file:string begins_ms:integer expires_ms:integer days_left:integer key:string chain:[string] \
         stapled_until_ms:integer? is_default:boolean order:Order?",
    ),
    (
        "Order",
        "state:string challenge:string is_busy:boolean next_ms:integer? by:string? failures:integer last_error:string?",
    ),
    (
        "Target",
        "name:string state:string reason:string since_ms:integer age_ms:integer protocol:string balance:string left:integer \
         of:integer active:integer waiting:integer max_in_flight:integer? scale:string? panics:boolean stand_ins:integer traffic:Traffic \
         rate:Rate? first_byte:Latency? copies:Copies? names:[Name] backends:[Backend]",
    ),
    (
        "Name",
        "name:string asked_as:string addresses:[string] lacked:[string] left_out:integer ttl_ms:integer? answered_ms:integer? \
         answered_age_ms:integer? trouble:NameTrouble? asked_by:string?",
    ),
    ("NameTrouble", "reason:string since_ms:integer age_ms:integer"),
    ("Copies", "chosen:integer answered:integer by_cause:{integer}"),
    ("Latency", "p50_ms:number p99_ms:number"),
    (
        "Backend",
        "target:string name:string address:string tls:boolean state:string source:string reason:string since_ms:integer \
         age_ms:integer inputs:[Input] weight:integer agent_share:integer share:number priority:integer zone:string? \
         active:integer elsewhere:integer is_own:boolean? idle_connections:integer traffic:Traffic attempts:integer failures:integer rate:Rate? \
         first_byte:Latency? last_probe:Probe?",
    ),
    ("Input", "source:string says:string reason:string since_ms:integer age_ms:integer"),
    ("Probe", "at_ms:integer age_ms:integer result:string reason:string? took_ms:number"),
];

/// All as JSON Schemas, by name.
#[must_use]
pub fn components() -> Map<String, Value> {
    SCHEMAS.iter().map(|(name, fields)| ((*name).to_owned(), object(fields))).collect()
}

/// A reference to the one of this name.
#[must_use]
pub fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn object(fields: &str) -> Value {
    if fields.starts_with('{') {
        return typed(fields);
    }
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, of) in fields.split_whitespace().filter_map(|field| field.split_once(':')) {
        let plain = name.strip_suffix('?');
        if plain.is_none() {
            required.push(name);
        }
        properties.insert(plain.unwrap_or(name).to_owned(), typed(of));
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

fn typed(of: &str) -> Value {
    if let Some(inner) = of.strip_suffix('?') {
        return json!({ "anyOf": [typed(inner), { "type": "null" }] });
    }
    if let Some(inner) = of.strip_prefix('[').and_then(|of| of.strip_suffix(']')) {
        return json!({ "type": "array", "items": typed(inner) });
    }
    if let Some(inner) = of.strip_prefix('{').and_then(|of| of.strip_suffix('}')) {
        return json!({ "type": "object", "additionalProperties": typed(inner) });
    }
    match of {
        "any" => json!({}),
        plain if plain.starts_with(|c: char| c.is_ascii_lowercase()) => json!({ "type": plain }),
        name => reference(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_schema() {
        assert_eq!(
            object("a:string b?:[Route] c:{integer} d:Rate? e:any"),
            json!({
                "type": "object",
                "required": ["a", "c", "d", "e"],
                "properties": {
                    "a": { "type": "string" },
                    "b": { "type": "array", "items": { "$ref": "#/components/schemas/Route" } },
                    "c": { "type": "object", "additionalProperties": { "type": "integer" } },
                    "d": { "anyOf": [{ "$ref": "#/components/schemas/Rate" }, { "type": "null" }] },
                    "e": {},
                },
            })
        );
        assert_eq!(components().len(), SCHEMAS.len(), "each name once");
    }
}
