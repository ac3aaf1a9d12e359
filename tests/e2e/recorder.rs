//! What is kept of requests that are over, and what is told of them.

use std::io::Read as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fake_backend::{Behaviour, Fake, Running};
use serde_json::Value;

use super::support::process::Process;
use super::support::{Answer, Client, eventually, fakes};

/// A config with a target of these backends, `more` before it and `keys` in it.
fn of(backends: &[&Running], more: &str, keys: &str) -> String {
    let line = |(number, backend): (usize, &&Running)| {
        format!("      - {{name: b{number}, host: 127.0.0.1, port: {}}}\n", backend.port())
    };
    let each: String = backends.iter().enumerate().map(line).collect();
    format!(
        "workers: 2\n{more}\ntargets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n{keys}    backends:\n{each}"
    )
}

/// The id that a client is told.
fn id_of(answer: &Answer) -> String {
    answer.header("x-request-id").unwrap_or_else(|| panic!("no id: {}", answer.head)).to_owned()
}

/// The story of a request, as soon as it is over.
fn story(process: &Process, id: &str) -> Value {
    let mut found = Value::Null;
    eventually("it is kept", || {
        let (status, answer) = process.ask(&format!("GET /api/v1/requests/{id}"), b"");
        found = answer;
        status == 200
    });
    found
}

fn list(process: &Process, query: &str) -> Vec<Value> {
    let (status, answer) = process.ask(&format!("GET /api/v1/requests{query}"), b"");
    assert_eq!(status, 200, "{answer}");
    answer["requests"].as_array().unwrap().clone()
}

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

#[test]
fn a_request_that_failed_is_found_by_the_id_that_its_client_was_told() {
    let before = now_ms();
    let off = Fake::http("off").refusing().start_in_thread().unwrap();
    let process = Process::start(&of(&[&off], "", ""), 1);
    let answer = Client::connect(process.address("web")).get("/shop?user=secret");
    assert_eq!(
        (answer.status, answer.header("proxy-status")),
        (503, Some("evenkeel; details=connect_failed"))
    );
    let id = id_of(&answer);
    assert!(answer.text().contains(&format!("request: {id}\n")), "{}", answer.text());

    let story = story(&process, &id);
    assert_eq!(
        (&story["id"], &story["cause"], &story["status"]),
        (&id.as_str().into(), &"connect_failed".into(), &503.into())
    );
    assert_eq!((&story["kept_for"], &story["fault"]), (&"failed".into(), &"backend".into()));
    assert_eq!(
        (&story["method"], &story["host"], &story["path"]),
        (&"GET".into(), &"test".into(), &"/shop?user=*".into())
    );
    assert_eq!(
        (&story["tries"][0]["backend"], &story["tries"][0]["cause"]),
        (&"b0".into(), &"connect_failed".into())
    );
    assert_eq!(story["tries"][0]["in_flight"], 1);
    let steps: Vec<&str> =
        story["steps"].as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["accept", "head", "route", "attempt", "connect", "end"]);
    let began = story["time_ms"].as_u64().unwrap();
    assert!((before - 1000..=now_ms() + 1000).contains(&began), "{began}");
    let places: Vec<String> = story["config"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| format!("{} {}", key["key"].as_str().unwrap(), key["place"]["text"].as_str().unwrap()))
        .collect();
    assert!(
        places
            .iter()
            .any(|place| place.starts_with("targets.web.listener ") && place.ends_with("evenkeel.yaml:7")),
        "{places:?}"
    );

    let all = list(&process, "");
    assert_eq!((all.len(), &all[0]["id"]), (1, &id.as_str().into()));
    assert!(
        process.records().iter().any(|record| record["id"] == id.as_str()) || {
            eventually("it is logged", || process.records().iter().any(|record| record["id"] == id.as_str()));
            true
        }
    );
}

#[test]
fn a_request_of_which_nothing_is_kept_is_not_found_and_says_what_is_kept() {
    let backends = fakes(1);
    let process = Process::start(&of(&[&backends[0]], "", ""), 1);
    assert_eq!(Client::connect(process.address("web")).get("/").status, 200);
    assert!(list(&process, "").is_empty());
    let told = |path: &str| {
        let (status, problem) = process.ask(&format!("GET /api/v1/requests{path}"), b"");
        (status, problem["detail"].as_str().unwrap_or_default().to_owned())
    };
    let (status, detail) = told("/0123456789abcdef0123456789abcdef");
    assert_eq!(status, 404);
    assert!(
        detail.starts_with(
            "nothing is kept of 0123456789abcdef0123456789abcdef: what went well is kept once in 1000"
        ),
        "{detail}"
    );
    assert_eq!(
        told("/0123"),
        (
            404,
            "there is no such request: an id has 32 hexadecimal digits, as `request: …` of an error has"
                .into()
        )
    );
    assert_eq!(
        told("?cause=connect_faild"),
        (400, "there is no cause `connect_faild`; did you mean `connect_failed`?".into())
    );
    assert_eq!(told("?last=0"), (400, "`last` is a whole number from 1 to 1000".into()));
    assert_eq!(told("?slow=maybe"), (400, "`slow` is true or false".into()));

    process.reload(&of(&[&backends[0]], "recorder: off", ""));
    assert_eq!(told(""), (503, "nothing is kept of requests: the config says `recorder: off`".into()));
}

#[test]
fn who_was_tried_again_is_kept_with_both_attempts_and_found_by_the_cause_of_the_first() {
    let off = Fake::http("off").refusing().start_in_thread().unwrap();
    let on = fakes(1).remove(0);
    let process = Process::start(&of(&[&off, &on], "", ""), 1);
    let mut client = Client::connect(process.address("web"));
    (0..2).for_each(|_| assert_eq!(client.get("/").status, 200));
    eventually("it is kept", || list(&process, "?target=web").len() == 1);
    let found = list(&process, "?cause=connect_failed");
    assert_eq!(
        (found.len(), &found[0]["kept_for"], &found[0]["attempts"]),
        (1, &"retried".into(), &2.into())
    );
    let story = story(&process, found[0]["id"].as_str().unwrap());
    let tries: Vec<(&Value, &Value)> =
        story["tries"].as_array().unwrap().iter().map(|one| (&one["backend"], &one["cause"])).collect();
    assert_eq!(tries, [(&"b0".into(), &"connect_failed".into()), (&"b1".into(), &Value::Null)]);
    assert_eq!(story["verdict"], "It went well. Before that it was tried on `b0` (connect_failed).");
    assert!(list(&process, "?target=other").is_empty() && list(&process, "?slow=true").is_empty());
}

#[test]
fn who_is_slower_than_nearly_all_is_slow_once_enough_have_come() {
    let backend = fakes(1).remove(0);
    let process = Process::start(&of(&[&backend], "", ""), 1);
    let mut client = Client::connect(process.address("web"));
    // What is slow is found out every few seconds; those that are must be few.
    eventually("one is slow", || {
        (0..200).for_each(|_| assert_eq!(client.get("/").status, 200));
        backend.behave(Behaviour::default().latency(Duration::from_millis(1500)).times(1));
        assert_eq!(client.get("/slow").status, 200);
        list(&process, "?slow=true").iter().any(|one| one["path"] == "/slow")
    });
    let all = list(&process, "?slow=true");
    let slow = all.iter().find(|one| one["path"] == "/slow").unwrap();
    assert!(slow["duration_ms"].as_f64().unwrap() >= 1500.0 && slow["kept_for"] == "slow", "{slow}");
    let story = story(&process, slow["id"].as_str().unwrap());
    assert!(story["verdict"].as_str().unwrap().contains("longer than 99 of 100 requests"), "{story}");
}

#[test]
fn what_is_kept_stays_over_a_reload_and_names_are_those_of_then() {
    let off = Fake::http("off").refusing().start_in_thread().unwrap();
    let on = fakes(1).remove(0);
    let process = Process::start(&of(&[&off], "", ""), 1);
    let id = id_of(&Client::connect(process.address("web")).get("/"));
    assert_eq!(story(&process, &id)["config_changed"], false);
    // The numbers of target and backend are somebody else's now.
    let text = of(&[&on], "", "").replace("  web:", "  other:").replace("name: b0", "name: c0");
    process.reload(&text);
    let kept = story(&process, &id);
    assert_eq!((&kept["target"], &kept["backend"]), (&"web".into(), &"b0".into()));
    assert_eq!((&kept["config_number"], &kept["config_changed"]), (&1.into(), &true.into()));
    process.reload(&format!("{text}\nrecorder: {{memory: 8MiB}}\n"));
    assert_eq!(process.ask(&format!("GET /api/v1/requests/{id}"), b"").0, 404);
}

#[test]
fn a_tcp_connection_that_failed_has_an_id_and_a_story() {
    let off = Fake::tcp("off").refusing().start_in_thread().unwrap();
    let process = Process::start(&of(&[&off], "", "").replace("http\n", "tcp\n"), 1);
    let mut client = Client::connect(process.address("web"));
    let mut rest = Vec::new();
    let _ = client.socket.read_to_end(&mut rest);
    eventually("it is kept", || list(&process, "").len() == 1);
    let one = &list(&process, "")[0];
    assert_eq!(
        (&one["kind"], &one["cause"], &one["method"]),
        (&"tcp".into(), &"connect_failed".into(), &Value::Null)
    );
    eventually("it is logged", || process.records().iter().any(|record| record["id"] == one["id"]));
    assert_eq!(story(&process, one["id"].as_str().unwrap())["steps"][0]["step"], "accept");
}
