//! What `explain` says against what then happens: over the socket of a real process, in front of backends that keep what they get.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config as Rounds, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use super::support::process::Process;
use super::support::{self, Client};

/// Every kind of condition, edit and outcome.
const ROUTES: &str = r#"
      - {name: api, match: {host: shop.example, path_prefix: /api}, target: one, rewrite: {strip_prefix: /api, add_prefix: /v2}}
      - {name: put, match: {host: shop.example, path_prefix: /api, method: [PUT, DELETE]}, target: two, headers: {request: {set: {X-Env: "{method}"}, remove: [Cookie]}}}
      - {name: beta, match: {host: shop.example, header: {X-Beta: yes}}, target: two, headers: {request: {add: {X-Tag: "{header.x-tag}b"}}, response: {set: {X-Served: "{target}"}}}}
      - {name: split, match: {host: "*.shop.example"}, split: {targets: {one: 60, two: 40}, by: {cookie: user}}}
      - {name: chance, match: {host: "*.shop.example", path_prefix: /x}, split: {targets: {one: 60, two: 40}}}
      - {name: numbers, match: {path_regex: '^/v([0-9]+)/(.*)$'}, target: one, rewrite: {path: /n/$2/$1}}
      - {name: admin, match: {path_prefix: /admin}, target: one, access: {deny: 127.0.0.0/8}, order: 7}
      - {name: open, match: {path_prefix: /admin/open}, target: two, access: {allow: 127.0.0.1}, order: 6}
      - {name: moved, match: {path: /old}, redirect: {to: "https://{hostname}{path}", status: 301}}
      - {name: away, match: {host: away.example, query: {now: {present: true}}}, respond: {status: 503, body: later, headers: {Retry-After: "5"}}}
      - {name: ringed, match: {host: ring.example}, target: ring}
"#;

fn config(backends: &[fake_backend::Running]) -> String {
    let url = |at: usize| format!("{{url: 'http://{}', name: b{at}}}", backends[at].addr());
    let targets = format!(
        "targets:\n  one: {{health_check: off, backends: [{}]}}\n  two: {{health_check: off, host: two.internal, backends: [{}]}}\n  \
         ring: {{health_check: off, balance: maglev, hash_key: path, backends: [{}, {}]}}\n",
        url(0),
        url(1),
        url(0),
        url(1)
    );
    format!("listeners:\n  front:\n    bind: 127.0.0.1:0\n    routes:{ROUTES}{targets}")
}

/// A request: method, host, path with query, header lines.
fn any_request() -> impl Strategy<Value = (&'static str, &'static str, String, Vec<String>)> {
    let hosts = vec![
        "shop.example",
        "SHOP.example.",
        "shop.example:8080",
        "a.shop.example",
        "b.a.shop.example",
        "away.example",
        "ring.example",
        "other.example",
    ];
    let segment = prop::sample::select(vec![
        "api", "api", "admin", "open", "x", "v12", "old", "..", ".", "%61pi", "%2e%2e", "a%2fb", "a b",
        "%zz", "", "v1;x",
    ]);
    let path = prop::collection::vec(segment, 0..4)
        .prop_map(|all| format!("/{}", all.join("/")).replace(' ', "%20"));
    let query = prop::sample::select(vec!["", "", "?now", "?a=1&now=2", "?x=%41"]);
    let lines = prop::collection::vec(
        prop_oneof![
            Just("X-Beta: yes".to_owned()),
            Just("X-Tag: a".to_owned()),
            Just("X-Env: theirs".to_owned()),
            (0..50).prop_map(|user| format!("Cookie: user=u{user}")),
        ],
        0..3,
    );
    let method = prop::sample::select(vec!["GET", "GET", "GET", "PUT", "DELETE"]);
    (method, prop::sample::select(hosts), (path, query), lines)
        .prop_map(|(method, host, (path, query), lines)| (method, host, path + query, lines))
}

/// The values of a header after the edits that are told of.
fn told<'v>(side: &'v Value, name: &str) -> Option<Vec<&'v str>> {
    let edits = side["edits"].as_array().unwrap();
    let edit = edits.iter().find(|edit| edit["name"].as_str().unwrap().eq_ignore_ascii_case(name))?;
    Some(edit["after"].as_array().unwrap().iter().map(|value| value.as_str().unwrap()).collect())
}

#[test]
fn what_is_explained_is_what_happens() {
    let backends = [support::recording(), support::recording()];
    let process = Process::start(&config(&backends), 1);
    let address = process.address("front");
    let mut runner =
        TestRunner::new_with_rng(Rounds::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &[17; 32]));
    let strategy = any_request();
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    for _ in 0..1_000 {
        let (method, host, target, lines) = strategy.new_tree(&mut runner).unwrap().current();
        let asked = json!({ "method": method, "url": format!("http://{host}{target}"), "from": "127.0.0.1", "headers": lines });
        let (code, explained) = process.ask("POST /api/v1/explain", asked.to_string().as_bytes());
        assert_eq!(code, 200, "{asked}: {explained}");
        let mut client = Client::connect(address);
        let head: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        client.send(format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{head}\r\n"));
        let answer = client.answer();
        let got: Vec<_> = backends.iter().map(fake_backend::Running::take_requests).collect();
        let (chain, verdict) = (&explained["chain"], &explained["chain"]["verdict"]);
        let what = format!("{asked}\n{chain:#}\n{} {got:?}", answer.status);
        *seen.entry(format!("{} {}", verdict["is"], chain["route"])).or_default() += 1;
        if verdict["is"] == "answered" {
            assert_eq!(verdict["status"], answer.status, "{what}");
            assert_eq!(verdict["location"].as_str(), answer.header("location"), "{what}");
            assert!(got.iter().all(Vec::is_empty), "{what}");
            continue;
        }
        assert_eq!(verdict["is"], "forwarded", "{what}");
        let sides = verdict["targets"].as_array().unwrap();
        let place = got.iter().position(|all| !all.is_empty()).unwrap_or_else(|| panic!("{what}"));
        assert_eq!(got.iter().map(Vec::len).sum::<usize>(), 1, "{what}");
        let name = ["one", "two"][place];
        let side = sides.iter().find(|side| side["target"] == name || side["target"] == "ring");
        let side = side.unwrap_or_else(|| panic!("{what}"));
        let sent = &got[place][0];
        assert_eq!(sent.head_text().split(' ').nth(1), side["path"].as_str(), "{what}");
        for header in ["X-Env", "X-Tag", "Cookie", "X-Beta"] {
            let own: Vec<&str> =
                lines.iter().filter_map(|line| line.strip_prefix(&format!("{header}: "))).collect();
            assert_eq!(sent.header(header), told(side, header).unwrap_or(own), "{header} of {what}");
        }
        for line in side["answer_lines"].as_array().unwrap() {
            assert_eq!(answer.header(line["name"].as_str().unwrap()), line["value"].as_str(), "{what}");
        }
        if side["target"] == "ring" {
            let pick = explained["candidates"][0]["pick"].as_str();
            assert_eq!(pick, Some(&*format!("b{place}")), "{explained:#}");
        }
    }
    assert!(seen.len() >= 12, "{seen:#?}");
}

#[test]
fn a_process_explains_with_its_backends_as_they_are_and_sends_nothing() {
    let backends = [support::recording(), support::recording()];
    let process = Process::start(&config(&backends), 1);
    let words = ["explain", "GET", "http://shop.example/api/x", "--from", "10.1.2.3", "-H", "Cookie: a=b"];
    let output = process.command(&words);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for line in [
        "GET http://shop.example/api/x\n",
        "  listener front\n",
        "  not      `put`: the method is GET, not PUT or DELETE\n",
        "  route    `api`\n",
        "  so       it goes to `one` as /v2/x\n",
        "  backend  `one/b0` up: weight 1, load 0, score 1.00\n",
        "  pick     `one/b0` (round_robin)\n",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    let alone = process.command(&["explain", "GET", "http://shop.example/api/x", "-c", "evenkeel.yaml"]);
    let alone = String::from_utf8(alone.stdout).unwrap();
    // The one thing that it says beside is what it can't know.
    let unknown = "  blocked  not known here: whom `evenkeel block` keeps out, a process knows\n";
    let decided = alone.strip_suffix(unknown).unwrap_or_else(|| panic!("{alone}"));
    assert!(text.starts_with(decided) && !alone.contains("pick"), "{alone}");
    let (code, problem) = process.ask("POST /api/v1/explain", br#"{"url": "https://shop.example/"}"#);
    assert_eq!((code, problem["detail"].as_str()), (422, Some("no listener speaks https")));
    assert!(backends.iter().all(|backend| backend.take_requests().is_empty()));
}
