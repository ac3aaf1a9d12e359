//! Fifteen things that go wrong: each has one reason of its own, and the same one wherever somebody looks.

mod elsewhere;

use std::collections::BTreeSet;
use std::path::Path;

use evenkeel::message::Cause;
use fake_backend::{Authority, Behaviour, Fake, Fault, Running, TlsOptions};

use super::metrics::{scrape, sum};
use super::support::process::Process;
use super::support::{Answer, Client, eventually};
use elsewhere::ELSEWHERE;

/// Something that goes wrong with the requests of a route that has the name of the cause.
struct Row {
    cause: Cause,
    /// Its backend, as it is written; none: nothing is there.
    backend: Backend,
    /// Keys of its target, and of its route.
    keys: [&'static str; 2],
    /// Brings it about; gives the answer that says so.
    inject: fn(&Scene, &str) -> Answer,
}

enum Backend {
    Fake(fn(&Authority) -> Fake),
    /// One that is not there.
    Named(&'static str),
}

struct Scene {
    process: Process,
    /// By the tokens of their causes.
    backends: Vec<(&'static str, Running)>,
}

impl Scene {
    fn client(&self) -> Client {
        Client::connect(self.process.address("public"))
    }

    fn get(&self, path: &str) -> Answer {
        self.client().get(path)
    }

    /// A request that nobody answers.
    fn hold(&self, path: &str) -> Client {
        let mut client = self.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        client
    }

    fn target(&self, token: &str) -> serde_json::Value {
        self.process.ask(&format!("GET /api/v1/targets/{token}"), b"").1
    }
}

fn hanging(_: &Authority) -> Fake {
    Fake::http("hanging").behave(Behaviour::hang())
}

fn good(_: &Authority) -> Fake {
    Fake::http("good")
}

fn plainly(scene: &Scene, path: &str) -> Answer {
    scene.get(path)
}

fn rows() -> Vec<Row> {
    use Backend::{Fake as Of, Named};
    const NEVER_AGAIN: &str = "retries: off";
    vec![
        Row {
            cause: Cause::ConnectFailed,
            backend: Of(|_| Fake::http("refusing").refusing()),
            keys: ["", ""],
            inject: plainly,
        },
        Row {
            cause: Cause::BackendClosed,
            backend: Of(|_| Fake::http("resetting").behave(Behaviour::fault(Fault::ResetMidHead))),
            keys: [NEVER_AGAIN, ""],
            inject: plainly,
        },
        Row {
            cause: Cause::UpstreamTlsName,
            backend: Of(|authority| {
                Fake::http("other").tls(TlsOptions::new().authority(authority).names(["a.example"]))
            }),
            keys: ["upstream_tls: {ca_file: ca.pem}", ""],
            inject: plainly,
        },
        Row {
            cause: Cause::UpstreamTlsExpired,
            backend: Of(|authority| {
                let expired = authority.leaf(["127.0.0.1"]).expired().issue();
                Fake::http("expired").tls(TlsOptions::new().certificate(expired))
            }),
            keys: ["upstream_tls: {ca_file: ca.pem}", ""],
            inject: plainly,
        },
        Row {
            cause: Cause::FirstByteTimeout,
            backend: Of(hanging),
            keys: ["retries: off, timeouts: {first_byte: 50ms}", ""],
            inject: plainly,
        },
        Row {
            cause: Cause::AttemptTimeout,
            backend: Of(hanging),
            keys: ["retries: off, timeouts: {attempt: 50ms}", ""],
            inject: plainly,
        },
        Row {
            cause: Cause::TotalTimeout,
            backend: Of(hanging),
            keys: [NEVER_AGAIN, "timeouts: {total: 50ms}"],
            inject: plainly,
        },
        Row {
            cause: Cause::QueueTimeout,
            backend: Of(hanging),
            keys: ["max_in_flight: 1, queue: {timeout: 50ms}", ""],
            inject: |scene, path| {
                let _first = scene.hold(path);
                eventually("it is under way", || scene.target("queue_timeout")["active"] == 1);
                scene.get(path)
            },
        },
        Row {
            cause: Cause::QueueFull,
            backend: Of(hanging),
            keys: ["max_in_flight: 1, queue: {size: 1, timeout: 1h}", ""],
            inject: |scene, path| {
                let _first = scene.hold(path);
                eventually("it is under way", || scene.target("queue_full")["active"] == 1);
                let _second = scene.hold(path);
                eventually("it waits", || scene.target("queue_full")["waiting"] == 1);
                scene.get(path)
            },
        },
        Row {
            cause: Cause::BreakerOpen,
            backend: Of(|_| Fake::http("resetting").behave(Behaviour::fault(Fault::ResetMidHead))),
            keys: ["retries: off, outlier: off, breaker: {failures: 1, open: 1h}", ""],
            inject: |scene, path| {
                assert_eq!(scene.get(path).status, 502);
                scene.get(path)
            },
        },
        Row {
            cause: Cause::RateLimited,
            backend: Of(good),
            keys: ["", "rate_limit: few"],
            inject: |scene, path| {
                assert_eq!(scene.get(path).status, 200);
                scene.get(path)
            },
        },
        Row {
            cause: Cause::NoRoute,
            backend: Of(good),
            keys: ["", ""],
            inject: |scene, _| scene.get("/nothing/is/here"),
        },
        Row {
            cause: Cause::BodyTooLarge,
            backend: Of(good),
            keys: ["", "limits: {body: 10B}"],
            inject: |scene, path| {
                let head = format!("POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: 11\r\n\r\n");
                scene.client().ask(&head)
            },
        },
        Row {
            cause: Cause::BadAnswer,
            backend: Of(|_| Fake::http("babbling").behave(Behaviour::fault(Fault::Garbage))),
            keys: [NEVER_AGAIN, ""],
            inject: plainly,
        },
        Row {
            // RFC 6761: it never resolves.
            cause: Cause::NoBackend,
            backend: Named("{name: lost, host: backend.invalid, port: 80}"),
            keys: ["", ""],
            inject: |scene, path| {
                let state = || scene.target("no_backend")["backends"][0]["state"].clone();
                eventually("its name is known not to resolve", || state() == "down");
                scene.get(path)
            },
        },
    ]
}

fn scene(rows: &[Row]) -> Scene {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("lab"));
    std::fs::write(folder.path().join("ca.pem"), authority.ca_pem()).unwrap();
    let (mut routes, mut targets, mut backends) = (String::new(), String::new(), Vec::new());
    for Row { cause, backend, keys: [of_target, of_route], .. } in rows {
        let token = cause.token();
        let written = match backend {
            Backend::Named(written) => (*written).to_owned(),
            Backend::Fake(make) => {
                let running = make(&authority).start_in_thread().unwrap();
                let written = format!("{{name: {token}, url: '{}'}}", running.url());
                backends.push((token, running));
                written
            }
        };
        let and = |keys: &str| if keys.is_empty() { String::new() } else { format!(", {keys}") };
        if *cause != Cause::NoRoute {
            let of_route = and(of_route);
            routes += &format!(
                "      - {{name: to_{token}, match: {{path_prefix: /{token}}}, target: {token}{of_route}}}\n"
            );
        }
        targets += &format!("  {token}: {{health_check: off{}, backends: [{written}]}}\n", and(of_target));
    }
    let text = format!(
        "workers: 1\nrate_limits: {{few: {{rate: 1/h, burst: 1, by: [client_ip]}}}}\nlisteners:\n  public:\n    bind: 127.0.0.1:0\n    \
         routes:\n{routes}targets:\n{targets}"
    );
    std::fs::write(folder.path().join("evenkeel.yaml"), super::support::process::whole(&text)).unwrap();
    Scene { process: Process::start_in(folder, 1), backends }
}

#[test]
fn fifteen_causes_have_fifteen_reasons_which_are_the_same_wherever_somebody_looks() {
    let rows = rows();
    let scene = scene(&rows);
    let process = &scene.process;
    let (socket, mut seen) = (process.socket(), BTreeSet::new());
    for Row { cause, inject, .. } in &rows {
        let (cause, token) = (*cause, cause.token());
        let answer = inject(&scene, &format!("/{token}"));
        // The answer, for whoever got it.
        assert_eq!(answer.status, cause.status(), "{token}: {}", answer.text());
        assert_eq!(answer.header("proxy-status"), Some(&*format!("evenkeel; details={token}")));
        assert!(answer.text().contains(&format!("cause: {token}\n")), "{}", answer.text());
        let id = answer.header("x-request-id").unwrap().to_owned();
        // The access log.
        let logged = || process.records().into_iter().find(|record| record["id"] == id.as_str());
        eventually("it is logged", || logged().is_some());
        assert_eq!(logged().unwrap()["cause"], token);
        // The recorder.
        let (status, story) = process.ask(&format!("GET /api/v1/requests/{id}"), b"");
        assert_eq!((status, &story["cause"], &story["status"]), (200, &token.into(), &answer.status.into()));
        let (_, found) = process.ask(&format!("GET /api/v1/requests?cause={token}"), b"");
        let found = found["requests"].as_array().unwrap();
        assert!(found.iter().any(|one| one["id"] == id.as_str()), "{token}: {found:?}");
        // The command, which has the reason in words that no other one has.
        let told = process.command(&["why", &id, "--socket", socket.to_str().unwrap()]);
        let told = String::from_utf8(told.stdout).unwrap();
        let ended = told.lines().nth(1).unwrap_or_default();
        assert!(ended.starts_with(&format!("{} {token} after ", cause.status())), "{told}");
        assert!(told.split_whitespace().collect::<Vec<_>>().join(" ").contains(cause.text()), "{told}");
        assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
        // Metrics.
        let counted = sum(&scrape(process), "evenkeel_errors_total", &[&format!("cause=\"{token}\"")]);
        assert!(counted > 0.0, "{token}");
        assert!(seen.insert(token), "{token} twice");
    }
    assert_eq!(seen.len(), 15);
    // Why the name's backend got nothing stands beside it.
    let (_, list) = process.ask("GET /api/v1/requests?cause=no_backend&last=1", b"");
    let id = list["requests"][0]["id"].as_str().unwrap();
    let (_, story) = process.ask(&format!("GET /api/v1/requests/{id}"), b"");
    let events = story["events"].to_string();
    assert!(events.contains("name does not resolve"), "{events}");
    assert_eq!(scene.backends.len(), 14);
}

#[test]
fn every_cause_is_injected_here_or_by_the_test_that_is_named() {
    let here: Vec<Cause> = rows().iter().map(|row| row.cause).collect();
    for &cause in Cause::ALL.iter().filter(|&&cause| cause != Cause::Done) {
        let elsewhere: Vec<_> = ELSEWHERE.iter().filter(|(known, ..)| *known == cause).collect();
        let times = here.iter().filter(|known| **known == cause).count() + elsewhere.len();
        assert_eq!(times, 1, "{cause} is in {times} rows");
        for (_, file, test) in elsewhere {
            let source = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
            assert!(source.contains(&format!("fn {test}(")), "{cause}: {file} has no test {test}");
        }
    }
}
