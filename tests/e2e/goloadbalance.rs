//! GoLoadBalance's config, its flags and its own paths.

use fake_backend::Running;
use serde_json::{Value, json};

use super::door_lab::{CONFIGURE, OPERATE, READ, ask, bearer, door, guarded};
use super::support::process::Process;
use super::support::{Client, eventually, fakes};

/// As its example has them, but for the ports and for what is not there yet: the cache.
fn servers(backends: &[Running]) -> String {
    let server = |backend: &Running| format!("  - \"http://127.0.0.1:{}\"\n", backend.port());
    let servers: String = backends.iter().map(server).collect();
    format!(
        "algorithm: round_robin\nservers: \n{servers}health_check_frequency_in_seconds: 3\nhealth_check_max_retries: 2\n"
    )
}

fn post(process: &Process, path: &str, body: &Value) -> (u16, Value) {
    process.ask(&format!("POST /goloadbalance/{path}"), body.to_string().as_bytes())
}

fn url(backend: &Running) -> String {
    format!("http://127.0.0.1:{}", backend.port())
}

/// Its config has no key for the port, so the target is written out where a test may not have port 3030.
fn one_target(backends: &[Running]) -> String {
    let item = |backend: &Running| format!("{{host: 127.0.0.1, port: {}}}", backend.port());
    let items: Vec<String> = backends.iter().map(item).collect();
    format!(
        "workers: 1\ntargets:\n  default:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n    backends: [{}]\n",
        items.join(", ")
    )
}

#[test]
fn its_paths_add_remove_and_show_servers() {
    let backends = fakes(3);
    let process = Process::start(&one_target(&backends[..2]), 1);
    let shown = || process.ask("GET /goloadbalance", b"");
    let at = |number: usize| format!("127.0.0.1:{}", backends[number].port());
    assert_eq!(shown(), (200, json!({at(0): true, at(1): true})));
    let (status, answer) = post(&process, "add_server", &json!({"host": url(&backends[2])}));
    assert_eq!((status, &answer["objects"]), (200, &json!([format!("default/{}", at(2))])), "{answer}");
    eventually("it is up", || shown() == (200, json!({at(0): true, at(1): true, at(2): true})));
    let (status, answer) = post(&process, "remove_server", &json!({"Host": url(&backends[0])}));
    assert_eq!((status, &answer["objects"]), (200, &json!([format!("default/{}", at(0))])), "{answer}");
    assert_eq!(shown(), (200, json!({at(1): true, at(2): true})));
    let heard = |_| Client::connect(process.address("default")).get("/hello_world").text();
    let mut heard: Vec<String> = (0..6).map(heard).collect();
    heard.sort();
    heard.dedup();
    assert_eq!(heard, ["Hello from fake-2", "Hello from fake-3"]);
    // It is the same change by hand as any other: it lasts, and the URL alone brings it back.
    let process = Process::start_in(process.kill(), 1);
    assert_eq!(process.ask("GET /goloadbalance", b""), (200, json!({at(1): true, at(2): true})));
    let (status, answer) = post(&process, "add_server", &json!({"host": url(&backends[0])}));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(process.ask("GET /api/v1/overlay", b"").1["entries"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_its_paths_refuse_is_told_with_the_field_as_it_calls_it() {
    let backends = fakes(1);
    let process = Process::start(&one_target(&backends), 1);
    let digest = process.digest();
    let refused = |path: &str, body: Value, status: u16, pointer: Option<&str>, detail: &str| {
        let (found, answer) = post(&process, path, &body);
        assert_eq!((found, answer["pointer"].as_str()), (status, pointer), "{path} {body}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains(detail), "{path} {body}: {answer}");
    };
    refused("add_server", json!({"host": url(&backends[0])}), 409, None, "is there twice");
    refused(
        "add_server",
        json!({"host": "127.0.0.1:1"}),
        422,
        Some("/host"),
        "/host: `host` is `127.0.0.1:1`, which has no scheme",
    );
    refused("add_server", json!({}), 422, Some("/host"), "/host: a URL");
    refused("add_server", json!({"url": "http://a"}), 422, Some("/url"), "there is no such field");
    refused("remove_server", json!({"host": "http://127.0.0.1:1"}), 404, None, "has no server");
    for other in ["https", "tcp", "tls"] {
        let wrong = url(&backends[0]).replace("http", other);
        let has = format!("has no server `{wrong}`; it has `{}`", url(&backends[0]));
        refused("remove_server", json!({"host": wrong}), 404, None, &has);
    }
    refused(
        "remove_server",
        json!({"host": "127.0.0.1:1"}),
        422,
        Some("/host"),
        "/host: `host` is `127.0.0.1:1`, which has no scheme",
    );
    // GoLoadBalance ends with its last server.
    refused("remove_server", json!({"host": url(&backends[0])}), 409, None, "no backend of the target");
    assert_eq!(process.ask("GET /goloadbalance/add_server", b"").0, 405);
    assert_eq!(process.digest(), digest);
}

#[test]
fn with_several_targets_the_query_says_which_one_is_meant() {
    let backends = fakes(3);
    let config = one_target(&backends[..1]);
    let other = format!(
        "  other:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n    \
         backends: [{{host: 127.0.0.1, port: {}}}]\n",
        backends[1].port()
    );
    let process = Process::start(&format!("{config}{other}"), 2);
    let body = json!({"host": url(&backends[2])});
    let digest = process.digest();
    for path in ["GET /goloadbalance", "POST /goloadbalance/add_server", "POST /goloadbalance/remove_server"]
    {
        let body = if path.starts_with("GET") { String::new() } else { body.to_string() };
        let (status, answer) = process.ask(path, body.as_bytes());
        let detail = answer["detail"].as_str().unwrap();
        assert!(status == 409 && detail.contains("default, other;"), "{path}: {status} {answer}");
        assert_eq!(process.ask(&format!("{path}?target=nobody"), body.as_bytes()).0, 404, "{path}");
    }
    assert_eq!(process.digest(), digest);
    assert_eq!(post(&process, "add_server?target=other", &body).0, 200);
    let (status, shown) = process.ask("GET /goloadbalance?target=other", b"");
    assert_eq!((status, shown.as_object().map(serde_json::Map::len)), (200, Some(2)), "{shown}");
    assert_eq!(post(&process, "remove_server?target=other", &body).0, 200);
    let (_, shown) = process.ask("GET /goloadbalance?target=other", b"");
    assert_eq!(shown.as_object().map(serde_json::Map::len), Some(1), "{shown}");
}

#[test]
fn over_tcp_its_paths_need_the_scopes_and_the_origin_of_any_other_change() {
    let backends = fakes(2);
    let process = guarded(&backends[0]);
    let door = door(&process);
    let body = json!({"host": url(&backends[1])}).to_string();
    let add = |headers: &str| ask(door, "POST /goloadbalance/add_server", headers, body.as_bytes()).status;
    assert_eq!((add(""), add(&bearer(READ)), add(&bearer(OPERATE))), (401, 403, 403));
    assert_eq!(add(&format!("{}|Origin: http://evil.example", bearer(CONFIGURE))), 403);
    assert_eq!(add(&format!("{}|Host: evil.example", bearer(CONFIGURE))), 421);
    // As a form of another page would send it.
    assert_eq!(add(&format!("{}|Content-Type: text/plain", bearer(CONFIGURE))), 415);
    assert_eq!(ask(door, "GET /goloadbalance", "", b"").status, 401);
    assert_eq!(add(&bearer(CONFIGURE)), 200);
    let shown = ask(door, "GET /goloadbalance", &bearer(READ), b"").body;
    assert_eq!(shown.as_object().map(serde_json::Map::len), Some(2), "{shown}");
    let entries = process.ask("GET /api/v1/overlay", b"").1;
    assert_eq!(entries["entries"][0]["author"], "token head", "{entries}");
}

/// What its article shows, but for what is refused by name until it is there.
#[test]
fn its_config_loads_with_all_of_its_keys() {
    let backends = fakes(2);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("example.yaml");
    let check = |config: &str| {
        std::fs::write(&file, config).unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .arg("check")
            .arg(&file)
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    };
    let (code, said) = check(&servers(&backends));
    assert_eq!(code, Some(0), "{said}");
    let fall = said.lines().find(|line| line.starts_with("targets.default.health_check.fall "));
    assert!(fall.is_some_and(|line| line.split_whitespace().nth(1) == Some("2")), "{said}");
    let (code, said) =
        check(&format!("{}on_dead_server_webhook: http://127.0.0.1/hook\n", servers(&backends)));
    assert!(code == Some(0) && !said.contains("/hook"), "{said}");
    let (code, said) = check(&format!("{}blacklisted_ips: [10.0.0.9, 10.6.0.0/16]\n", servers(&backends)));
    assert!(code == Some(0) && said.contains("blacklisted_ips"), "{said}");
    let cached = "cache_enabled: true\ncache_timeout_in_seconds: 7\n";
    let (code, said) = check(&format!("{}{cached}", servers(&backends)));
    let ttl = said.lines().find(|line| line.starts_with("targets.default.cache.ttl "));
    assert!(ttl.is_some_and(|line| line.split_whitespace().nth(1) == Some("7s")), "{said}");
    assert_eq!(code, Some(0), "{said}");
}
