//! Scale signals: a queue that stays long and a target that stays idle are told once each, to the log, to webhooks and by the API.

use fake_backend::{Behaviour, Fake};
use serde_json::Value;

use super::metrics::scrape;
use super::support::process::Process;
use super::support::{Client, eventually, fakes};

const CONFIG: &str = "scale: {out: {queued: 2, for: 1s}, in: {busy: 50%, for: 3s}}";

fn events(process: &Process) -> Vec<(String, String)> {
    let (_, list) = process.ask("GET /api/v1/events", b"");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let events = list["events"].as_array().cloned().unwrap_or_default();
    let all = events.iter().map(|event| (text(&event["kind"]), text(&event["object"])));
    all.filter(|(kind, _)| kind.starts_with("scale_")).collect()
}

fn signal(process: &Process) -> Value {
    process.ask("GET /api/v1/targets/web", b"").1["scale"].clone()
}

#[test]
fn a_long_queue_and_an_idle_target_are_told_once_each_to_all_who_listen() {
    let backend = &fakes(1)[0];
    let hook = Fake::http("hook").record().start_in_thread().unwrap();
    backend.behave(Behaviour::hang());
    let config = |scale: &str| {
        format!(
            "workers: 2\nwebhooks: [{{url: '{}/x', events: [scale_out, scale_in]}}]\n{scale}\ntargets:\n  web:\n    \
             protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n    max_in_flight: 2\n    queue: {{size: 10, timeout: 1m}}\n    \
             backends: [{{host: 127.0.0.1, port: {}}}]\n  other:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n    \
             backends: [{{host: 127.0.0.1, port: {}}}]\n",
            hook.url(),
            backend.port(),
            backend.port(),
        )
    };
    let process = Process::start(&config(CONFIG), 2);
    let address = process.address("web");
    let clients: Vec<Client> = (0..5)
        .map(|_| {
            let mut client = Client::connect(address);
            client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
            client
        })
        .collect();
    eventually("it needs more", || signal(&process) == "out");
    let out = ("scale_out".to_owned(), "web".to_owned());
    assert_eq!(events(&process), std::slice::from_ref(&out));
    let metrics = scrape(&process);
    for (series, value) in
        [("web\",direction=\"out", 1.0), ("web\",direction=\"in", 0.0), ("other\",direction=\"out", 0.0)]
    {
        assert_eq!(metrics[&format!("evenkeel_scale_signal{{target=\"{series}\"}}")], value, "{series}");
    }
    let status = process.command(&["status", "web"]);
    let status = String::from_utf8_lossy(&status.stdout);
    assert!(status.contains("\n  it needs more backends\n"), "{status}");

    // They leave, and nothing is under way any more.
    drop(clients);
    eventually("it would do with fewer", || signal(&process) == "in");
    let into = ("scale_in".to_owned(), "web".to_owned());
    assert_eq!(events(&process), [out.clone(), into.clone()]);
    eventually("the receiver knows", || {
        hook.last_requests().iter().filter(|told| told.complete).count() == 2
    });
    let told = hook.last_requests();
    let bodies: Vec<Value> = told.iter().map(|told| serde_json::from_slice(&told.body).unwrap()).collect();
    assert_eq!([&bodies[0]["event"], &bodies[1]["event"]], ["scale_out", "scale_in"]);
    assert!(bodies.iter().all(|body| body["object"] == "web"), "what has no bound is never idle: {bodies:?}");
    assert!(bodies[0]["reason"].as_str().unwrap().ends_with("more than 2"), "{bodies:?}");

    // Without thresholds nothing holds.
    process.reload(&config(""));
    eventually("nobody looks any more", || signal(&process) == Value::Null);
    assert_eq!(events(&process), [out, into]);
}
