//! What the admin API says of the state of things.

use fake_backend::Running;
use serde_json::Value;

use super::support::process::Process;
use super::support::{Client, eventually, fakes};

fn of(backends: &[Running], states: [&str; 2]) -> String {
    let line = |(backend, (name, state)): (&Running, (&str, &str))| {
        format!(
            "      - {{name: {name}, host: 127.0.0.1, port: {}, weight: 3, state: {state}}}\n",
            backend.port()
        )
    };
    let names = ["a", "b%c"];
    let each = backends.iter().zip(names.into_iter().zip(states));
    let each: String = each.map(line).collect();
    format!(
        "workers: 2\ntargets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:0\n    balance: least_connections\n    \
         health_check: {{path: /health, interval: 100ms, timeout: 10s}}\n    backends:\n{each}"
    )
}

fn get(process: &Process, path: &str) -> Value {
    let (status, answer) = process.ask(&format!("GET {path}"), b"");
    assert_eq!(status, 200, "{answer}");
    answer
}

fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

#[test]
fn everything_known_of_listeners_targets_and_backends_is_told() {
    let before = now_ms();
    let backends = fakes(2);
    let process = Process::start(&of(&backends, ["up", "up"]), 1);
    let states = || {
        let status = get(&process, "/api/v1/targets/web");
        let states = status["backends"].as_array().unwrap().iter();
        states.map(|one| one["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    eventually("both are up", || states() == ["up", "up"]);
    let mut client = Client::connect(process.address("web"));
    for _ in 0..10 {
        assert_eq!(client.get("/").status, 200);
    }
    eventually("they are counted", || get(&process, "/api/v1/targets/web")["traffic"]["requests"] == 10);

    let whole = get(&process, "/api/v1/status");
    assert_eq!((&whole["process"]["workers"], &whole["process"]["config_number"]), (&2.into(), &1.into()));
    assert_eq!(whole["connections"]["open"], 1);
    let listener = &whole["listeners"][0];
    assert_eq!(listener["addresses"], serde_json::json!([process.address("web").to_string()]));
    assert_eq!((&listener["protocol"], &listener["targets"]), (&"http".into(), &serde_json::json!(["web"])));
    assert_eq!((&listener["connections"], &listener["traffic"]["by_class"]["2xx"]), (&1.into(), &10.into()));
    let target = &whole["targets"][0];
    assert_eq!((&target["state"], &target["left"], &target["of"]), (&"up".into(), &2.into(), &2.into()));
    assert_eq!(target["balance"], "least_connections");
    assert!(target["first_byte"]["p99_ms"].as_f64().unwrap() > 0.0, "{target}");
    let counted = |key: &str| -> u64 {
        target["backends"].as_array().unwrap().iter().map(|backend| backend[key].as_u64().unwrap()).sum()
    };
    assert_eq!((counted("attempts"), counted("failures"), counted("active")), (10, 0, 0));
    let backend = &target["backends"][0];
    assert_eq!((&backend["weight"], &backend["share"]), (&3.into(), &50.0.into()));
    assert_eq!((&backend["source"], &backend["reason"]), (&"probe".into(), &"the first probe passed".into()));
    assert_eq!(backend["last_probe"]["result"], "good");
    let sources: Vec<&str> =
        backend["inputs"].as_array().unwrap().iter().map(|input| input["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["operator", "name", "probe", "agent", "breaker", "outlier"]);
    for object in [listener, target, backend, &backend["inputs"][0], &backend["inputs"][2]] {
        let (since, age) = (object["since_ms"].as_u64().unwrap(), object["age_ms"].as_u64().unwrap());
        assert!(since + 1_000 >= before && since + age <= now_ms() + 1_000, "{object}");
    }
    eventually("it is old enough for rates", || {
        get(&process, "/api/v1/targets/web")["rate"]["requests"].as_f64().is_some()
    });
}

#[test]
fn who_is_drained_says_so_with_its_source_and_a_name_may_be_anything() {
    let backends = fakes(2);
    let process = Process::start(&of(&backends, ["up", "up"]), 1);
    let path = "/api/v1/targets/web/backends/b%25c";
    let state = || get(&process, path)["state"].as_str().unwrap().to_owned();
    eventually("it is up", || state() == "up");
    let said = process.reload(&of(&backends, ["up", "drain"]));
    assert!(said.contains("state: up -> drain"), "{said}");
    let drained = get(&process, path);
    assert_eq!((&drained["state"], &drained["source"]), (&"draining".into(), &"operator".into()));
    assert_eq!((&drained["reason"], &drained["share"]), (&"drained by the config".into(), &0.0.into()));
    assert_eq!(
        (&drained["inputs"][0]["says"], &drained["inputs"][2]["says"]),
        (&"drain".into(), &"good".into())
    );
    let output = process.command(&["status", "web/b%c"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("\n* operator  drain "), "{text}");
    for (path, told) in [
        ("/api/v1/targets/nope", "there is no target `nope`"),
        ("/api/v1/targets/web/backends/zz", "target web has no backend `zz`"),
    ] {
        let (status, problem) = process.ask(&format!("GET {path}"), b"");
        assert_eq!(status, 404, "{problem}");
        assert!(problem["detail"].as_str().unwrap().starts_with(told), "{problem}");
    }
}
