//! Webhooks: what receivers are told, in which order, and what a receiver that is down, slow or elsewhere changes.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, verify};
use fake_backend::{Authority, Behaviour, Fake, Recorded, Running, TlsOptions};
use serde_json::Value;

use super::support::process::Process;
use super::support::{accept, eventually, fakes};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const CHECK: &str = "health_check: {interval: 20ms, timeout: 2s, fall: 1, rise: 1}";

/// A receiver that keeps what it is sent, or refuses connections at first.
fn receiver(refusing: bool) -> Running {
    let fake = Fake::http("hook").record();
    if refusing { fake.refusing().start_in_thread().unwrap() } else { fake.start_in_thread().unwrap() }
}

/// One target `web` of these backends, called `b0` and so on, and `top` above it.
fn config(backends: &[Running], top: &str) -> String {
    let line = |(number, backend): (usize, &Running)| {
        format!("      - {{name: b{number}, host: 127.0.0.1, port: {}}}\n", backend.port())
    };
    let all: String = backends.iter().enumerate().map(line).collect();
    let target = "protocol: http\n    listener: 127.0.0.1:0";
    format!(
        "name: edge-1\nworkers: 1\n{top}\ntargets:\n  web:\n    {target}\n    {CHECK}\n    backends:\n{all}"
    )
}

fn hook(receiver: &Running, more: &str) -> String {
    format!("webhooks: [{{url: '{}/T0/hush'{more}}}]", receiver.url())
}

/// A process whose backends have all been found to be well.
fn started(config: &str, backends: &[Running]) -> Process {
    let process = Process::start(config, 1);
    all_well(&process, backends.len());
    process
}

fn all_well(process: &Process, count: usize) {
    eventually("all are up", || states(process).iter().filter(|state| *state == "up").count() == count);
}

fn states(process: &Process) -> Vec<String> {
    let (_, target) = process.ask("GET /api/v1/targets/web", b"");
    let backends = target["backends"].as_array().cloned().unwrap_or_default();
    backends.iter().map(|backend| backend["state"].as_str().unwrap().to_owned()).collect()
}

/// Takes a backend down and waits until that was seen.
fn kill(process: &Process, backends: &[Running], index: usize) {
    backends[index].stop();
    eventually("it is down", || states(process)[index] == "down");
}

fn revive(process: &Process, backends: &[Running], index: usize) {
    backends[index].restart().unwrap();
    eventually("it is up", || states(process)[index] == "up");
}

/// What the receiver has taken, each message once: `event object`.
fn told(receiver: &Running) -> Vec<String> {
    let mut ids = Vec::new();
    let mut all = bodies(receiver);
    all.retain(|body| {
        let is_new = !ids.contains(&body["id"]);
        ids.push(body["id"].clone());
        is_new
    });
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    all.iter().map(|body| format!("{} {}", text(&body["event"]), text(&body["object"]))).collect()
}

fn whole(receiver: &Running) -> Vec<Recorded> {
    receiver.last_requests().into_iter().filter(|request| request.complete).collect()
}

fn bodies(receiver: &Running) -> Vec<Value> {
    whole(receiver).iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

fn wait_for(receiver: &Running, expected: &[&str]) {
    eventually("all are told", || told(receiver).len() >= expected.len());
    assert_eq!(told(receiver), expected);
}

/// What the process says of its only webhook.
fn status(process: &Process) -> Value {
    let (_, status) = process.ask("GET /api/v1/status", b"");
    status["webhooks"][0].clone()
}

fn is_signed(request: &Recorded, secret: &str) -> bool {
    let [header] = &request.header("Evenkeel-Signature")[..] else { return false };
    let (time, tag) = header.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
    let tag: Vec<u8> =
        (0..tag.len()).step_by(2).map(|at| u8::from_str_radix(&tag[at..at + 2], 16).unwrap()).collect();
    let signed = [time.as_bytes(), b".", &request.body].concat();
    verify(&Key::new(HMAC_SHA256, secret.as_bytes()), &signed, &tag).is_ok()
}

#[test]
fn death_and_recovery_are_one_signed_post_each() {
    let (backends, receiver) = (fakes(2), receiver(false));
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("hook.key");
    std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
    let more = format!(", secret_file: {}", secret.display());
    let process = started(&config(&backends, &hook(&receiver, &more)), &backends);
    kill(&process, &backends, 0);
    wait_for(&receiver, &["backend_down web/b0"]);
    revive(&process, &backends, 0);
    wait_for(&receiver, &["backend_down web/b0", "backend_up web/b0"]);
    let requests = whole(&receiver);
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|request| is_signed(request, SECRET) && !is_signed(request, "other")));
    assert!(requests[0].head_text().starts_with("POST /T0/hush HTTP/1.1\r\n"));
    let [down, up] = &bodies(&receiver)[..] else { panic!("two") };
    assert_eq!(requests[0].header("Evenkeel-Id"), [down["id"].as_str().unwrap()]);
    assert_eq!((&down["node"], &down["reason"]), (&"edge-1".into(), &"connection refused".into()));
    assert!(down["time"].as_str() >= down["since"].as_str() && up["time"].as_str() > down["time"].as_str());
    let host = format!("127.0.0.1:{}", backends[0].port());
    let expected = serde_json::json!({"host": host, "state": "down", "alive": false});
    assert_eq!(
        (&down["backends"]["web/b0"], &down["backends"]["web/b1"]["state"]),
        (&expected, &"up".into())
    );
    // Whoever receives knows it first.
    eventually("both were taken", || status(&process)["waiting"] == 0);
    let known = status(&process);
    assert_eq!((&known["delivered"], &known["waiting"], &known["failed"]), (&2.into(), &0.into(), &0.into()));
}

#[test]
fn what_was_not_taken_is_sent_on_by_the_next_process_in_order_and_with_its_ids() {
    let (backends, receiver) = (fakes(2), receiver(true));
    let process = started(&config(&backends, &hook(&receiver, "")), &backends);
    kill(&process, &backends, 0);
    revive(&process, &backends, 0);
    kill(&process, &backends, 1);
    eventually("three wait", || status(&process)["waiting"] == 3);
    eventually("it was tried", || status(&process)["failed"].as_u64().unwrap() > 0);
    assert_eq!(status(&process)["last_error"], "connection refused");
    // What is on the disk is all that is left.
    let journal = process.folder().join("state/evenkeel/edge-1/webhooks.journal");
    eventually("they are kept", || {
        std::fs::read_to_string(&journal).unwrap_or_default().matches("\"number\"").count() == 3
    });
    let process = Process::start_in(process.kill(), 1);
    eventually("they wait again", || status(&process)["waiting"] == 3);
    receiver.restart().unwrap();
    let object = |object: &str| {
        let of_it = |line: &String| line.ends_with(object);
        told(&receiver).into_iter().filter(of_it).collect::<Vec<_>>()
    };
    eventually("all are taken", || told(&receiver).len() == 3 && status(&process)["waiting"] == 0);
    assert_eq!(object("b0"), ["backend_down web/b0", "backend_up web/b0"]);
    assert_eq!(object("b1"), ["backend_down web/b1"], "it is still down, which is no news");
    let ids: Vec<Value> = bodies(&receiver).iter().map(|body| body["id"].clone()).collect();
    let start = |id: &Value| id.as_str().unwrap().split('-').next().unwrap().to_owned();
    assert!(ids.iter().all(|id| start(id) == start(&ids[0])), "all are of the first process: {ids:?}");
    revive(&process, &backends, 1);
    eventually("the next one comes", || object("b1").len() == 2);
    assert_ne!(start(&bodies(&receiver)[3]["id"]), start(&ids[0]));
}

#[test]
fn a_message_that_is_not_taken_holds_up_its_own_object_only() {
    let backends = fakes(2);
    let receiver = receiver(false);
    receiver.behave(Behaviour::status(500).times(1));
    let process = started(&config(&backends, &hook(&receiver, "")), &backends);
    kill(&process, &backends, 0);
    eventually("it fails", || status(&process)["failed"] == 1);
    revive(&process, &backends, 0);
    kill(&process, &backends, 1);
    eventually("all are taken", || status(&process)["delivered"] == 3);
    let all: Vec<String> =
        bodies(&receiver).iter().map(|body| format!("{}{}", body["event"], body["object"])).collect();
    let place = |text: &str| all.iter().rposition(|one| one.contains(text)).unwrap();
    assert!(place("down\"\"web/b0") < place("up\"\"web/b0"), "{all:?}");
    assert_eq!(all.iter().filter(|one| one.contains("web/b1")).count(), 1, "{all:?}");
    let said = process.said().join("\n");
    assert!(said.contains("does not take messages, they are sent again: it answered 500"), "{said}");
    eventually("that is over", || process.said().join("\n").contains("takes messages again after"));
    assert_eq!(process.said().join("\n").matches("does not take messages").count(), 1);
}

#[test]
fn a_redirect_is_not_followed() {
    let backends = fakes(2);
    let elsewhere = receiver(false);
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let top = format!("on_dead_server_webhook: http://{}/T0/hush", door.local_addr().unwrap());
    let process = started(&config(&backends, &top), &backends);
    backends[0].stop();
    for answer in [format!("302 Found\r\nLocation: {}/", elsewhere.url()), "200 OK".to_owned()] {
        let mut socket = accept(&door);
        let mut head = Vec::new();
        while !head.windows(2).any(|two| two == b"}}") {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        socket.write_all(answer.as_bytes()).unwrap();
        // Until it closes.
        let _ = socket.read_to_end(&mut Vec::new());
    }
    eventually("it is taken", || status(&process)["delivered"] == 1);
    assert_eq!(status(&process)["last_error"], "it answered 302; redirects are not followed");
    assert_eq!((status(&process)["failed"].as_u64(), elsewhere.connections()), (Some(1), 0));
}

#[test]
fn nothing_that_is_said_has_the_path_of_a_url() {
    let (backends, down) = (fakes(2), receiver(true));
    let top = |word: &str| {
        let port = down.port();
        format!("webhooks: [{{url: 'http://{word}:pass-{word}@127.0.0.1:{port}/T0/{word}?k={word}'}}]")
    };
    let process = started(&config(&backends, &top("hush")), &backends);
    kill(&process, &backends, 0);
    eventually("it was tried", || status(&process)["failed"].as_u64().unwrap() > 0);
    let shown = format!("http://127.0.0.1:{}/…", down.port());
    assert_eq!(status(&process)["url"], shown);
    let file = process.folder().join("evenkeel.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("hush", "other-hush")).unwrap();
    let plan = process.command(&["plan"]);
    let plan = String::from_utf8(plan.stdout).unwrap() + &String::from_utf8(plan.stderr).unwrap();
    assert!(plan.contains("webhooks[0].url") && plan.contains(&shown), "{plan}");
    let reloaded = process.hang_up();
    assert!(reloaded.contains("webhooks[0].url"), "{reloaded}");
    std::fs::write(&file, format!("wokers: 1 # {}\n{text}", top("hush"))).unwrap();
    let check = process.command(&["check", "--all", "evenkeel.yaml"]);
    let check = String::from_utf8(check.stdout).unwrap() + &String::from_utf8(check.stderr).unwrap();
    assert!(check.contains("wokers"), "{check}");
    let mut all = vec![plan, check, process.said().join("\n")];
    for path in ["status", "targets", "config/digest", "overlay", "events"] {
        all.push(process.ask(&format!("GET /api/v1/{path}"), b"").1.to_string());
    }
    let journal = process.folder().join("state/evenkeel/edge-1/webhooks.journal");
    all.push(std::fs::read_to_string(journal).unwrap());
    for text in all {
        assert!(!text.contains("hush") && !text.contains("pass-"), "{text}");
    }
}

#[test]
fn a_reload_changes_who_is_told_and_what_waits_for_others_is_dropped() {
    let (backends, down, up) = (fakes(2), receiver(true), receiver(false));
    let process = started(&config(&backends, &hook(&down, "")), &backends);
    kill(&process, &backends, 0);
    eventually("it waits", || status(&process)["waiting"] == 1);
    process.reload(&config(&backends, &hook(&up, ", events: [backend_up, reload]")));
    wait_for(&up, &["reload -"]);
    eventually("what was dropped is told", || {
        process.said().join("\n").contains("1 messages were dropped: it is not in the config any more")
    });
    revive(&process, &backends, 0);
    wait_for(&up, &["reload -", "backend_up web/b0"]);
    eventually("none waits", || status(&process)["waiting"] == 0);
    assert_eq!(down.connections(), 0);
}

#[test]
fn a_receiver_over_tls_is_verified_by_whom_the_system_trusts() {
    let (backends, authority) = (fakes(2), Authority::new("lab"));
    let start = |authority: &Authority| {
        let tls = TlsOptions::new().authority(authority);
        Fake::http("hook").record().tls(tls).start_in_thread().unwrap()
    };
    let (receiver, stranger) = (start(&authority), start(&Authority::new("other")));
    let folder = tempfile::tempdir().unwrap();
    let roots = folder.path().join("roots.pem");
    std::fs::write(&roots, authority.ca_pem()).unwrap();
    let top = format!(
        "webhooks: [{{url: 'https://localhost:{}/a'}}, {{url: 'https://localhost:{}/a'}}]",
        stranger.port(),
        receiver.port()
    );
    let file = folder.path().join("evenkeel.yaml");
    std::fs::write(file, super::support::process::whole(&config(&backends, &top))).unwrap();
    let process = Process::start_with(folder, 1, &[("SSL_CERT_FILE", &roots)]);
    all_well(&process, 2);
    kill(&process, &backends, 0);
    wait_for(&receiver, &["backend_down web/b0"]);
    eventually("the other one failed", || status(&process)["failed"].as_u64().unwrap() > 0);
    let why = status(&process)["last_error"].as_str().unwrap().to_owned();
    assert!(why.starts_with("TLS: "), "{why}");
    assert_eq!(stranger.requests(), 0);
}
