//! Fifteen things that go wrong: each has one reason of its own, and the same one wherever somebody looks.

use std::collections::BTreeSet;
use std::path::Path;

use evenkeel::message::Cause;
use fake_backend::{Authority, Behaviour, Fake, Fault, Running, TlsOptions};

use super::metrics::{scrape, sum};
use super::support::process::Process;
use super::support::{Answer, Client, eventually};

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

/// Causes that are not injected here, each with the test that brings it about.
const ELSEWHERE: &[(Cause, &str, &str)] = &[
    (Cause::BadHead, "src/proxy/http/h1/parse/tests.rs", "line_ends_are_crlf_and_one_empty_line_may_lead"),
    (Cause::BadHost, "src/proxy/http/h1/parse/tests.rs", "exactly_one_valid_host"),
    (Cause::BadLength, "src/proxy/http/h1/framing.rs", "requests"),
    (Cause::LengthConflict, "src/proxy/http/h1/framing.rs", "requests"),
    (Cause::BadTransferEncoding, "src/proxy/http/h1/framing.rs", "requests"),
    (Cause::UnknownTransferCoding, "src/proxy/http/h1/framing.rs", "requests"),
    (Cause::BadChunk, "tests/e2e/http_memory.rs", "nothing_behind_a_bad_chunk_is_ever_looked_at"),
    (Cause::BadVersion, "src/proxy/http/h1/parse/tests.rs", "versions"),
    (
        Cause::TlsHello,
        "src/proxy/http/h1/opening.rs",
        "other_protocols_are_known_by_their_first_bytes_however_they_come",
    ),
    (
        Cause::ProxyProtocol,
        "tests/e2e/stuck_records.rs",
        "what_is_no_handshake_ends_its_connection_and_no_other",
    ),
    (
        Cause::Http2Preface,
        "src/proxy/http/own.rs",
        "a_client_of_http_2_gets_settings_and_a_goaway_with_the_reason_in_words",
    ),
    (
        Cause::ConnectMethod,
        "src/proxy/http/h1/parse/tests.rs",
        "causes_come_in_the_order_lines_target_aliases_host",
    ),
    (Cause::TargetTooLong, "tests/e2e/http_limits.rs", "heads_are_limited_in_bytes_and_lines"),
    (Cause::HeadTooLarge, "tests/e2e/http_limits.rs", "heads_are_limited_in_bytes_and_lines"),
    (Cause::TooManyHeaders, "tests/e2e/http_limits.rs", "heads_are_limited_in_bytes_and_lines"),
    (Cause::HeadTimeout, "tests/e2e/http_limits.rs", "a_head_that_stops_gets_408_and_silence_gets_nothing"),
    (Cause::PlainHttp, "tests/e2e/stuck_records.rs", "what_is_no_handshake_ends_its_connection_and_no_other"),
    (
        Cause::TlsHandshake,
        "tests/e2e/stuck_records.rs",
        "what_is_no_handshake_ends_its_connection_and_no_other",
    ),
    (
        Cause::TlsTimeout,
        "tests/e2e/tls_clients_hostile.rs",
        "a_hello_that_drips_is_cut_at_the_deadline_however_many_bytes_have_come",
    ),
    (
        Cause::ClientCertificate,
        "tests/e2e/tls_clients_certificates.rs",
        "a_required_certificate_must_be_there_and_convince",
    ),
    (Cause::BodyTimeout, "tests/e2e/http_limits.rs", "a_body_that_stops_gets_408"),
    (Cause::ClientStalled, "tests/e2e/http_limits.rs", "a_client_that_stops_taking_is_cut"),
    (
        Cause::ClientGone,
        "tests/e2e/cache_pairs.rs",
        "who_leaves_the_queue_leaves_its_place_to_one_who_wants_the_same",
    ),
    (Cause::OnlyIfCached, "tests/e2e/cache.rs", "nothing_but_what_is_stored"),
    (
        Cause::BadPath,
        "tests/e2e/routes_actions.rs",
        "a_backend_gets_the_path_that_the_route_says_and_a_client_leads_it_nowhere_else",
    ),
    (
        Cause::Blocked,
        "tests/e2e/blocked.rs",
        "explain_says_who_is_blocked_and_until_when_and_that_a_file_does_not_know",
    ),
    (
        Cause::AccessDenied,
        "tests/e2e/access.rs",
        "whom_a_plain_listener_does_not_let_in_gets_its_status_and_a_close_and_is_recorded",
    ),
    (Cause::TokenMissing, "tests/e2e/auth_jwt.rs", "whoever_shows_no_good_token_gets_401_and_is_told_why"),
    (Cause::TokenMalformed, "tests/e2e/auth_jwt.rs", "whoever_shows_no_good_token_gets_401_and_is_told_why"),
    (Cause::TokenSignature, "tests/e2e/auth_jwt.rs", "whoever_shows_no_good_token_gets_401_and_is_told_why"),
    (Cause::TokenExpired, "tests/e2e/auth_jwt.rs", "whoever_shows_no_good_token_gets_401_and_is_told_why"),
    (Cause::TokenClaims, "tests/e2e/auth_jwt.rs", "whoever_shows_no_good_token_gets_401_and_is_told_why"),
    (Cause::TokenKeys, "tests/e2e/auth_jwt.rs", "whoever_shows_no_good_token_gets_401_and_is_told_why"),
    (
        Cause::AuthRequired,
        "tests/e2e/auth_basic.rs",
        "only_a_good_password_lets_in_and_the_connection_goes_on",
    ),
    (
        Cause::AuthMalformed,
        "tests/e2e/auth_basic.rs",
        "only_a_good_password_lets_in_and_the_connection_goes_on",
    ),
    (Cause::AuthFailed, "tests/e2e/auth_basic.rs", "only_a_good_password_lets_in_and_the_connection_goes_on"),
    (
        Cause::AuthBusy,
        "tests/e2e/auth_basic.rs",
        "of_one_client_two_passwords_wait_and_the_others_are_told_to_come_again",
    ),
    (Cause::AuthDenied, "tests/e2e/auth_forward.rs", "any_other_answer_is_the_clients"),
    (
        Cause::AuthUnavailable,
        "tests/e2e/auth_forward.rs",
        "a_service_that_is_dead_slow_or_talks_nonsense_lets_nobody_in",
    ),
    (
        Cause::AuthTimeout,
        "tests/e2e/auth_forward.rs",
        "a_service_that_is_dead_slow_or_talks_nonsense_lets_nobody_in",
    ),
    (
        Cause::AuthAnswer,
        "tests/e2e/auth_forward.rs",
        "a_service_that_is_dead_slow_or_talks_nonsense_lets_nobody_in",
    ),
    (Cause::NoVerdict, "src/proxy/lend.rs", "without_any_verdict_the_wait_ends_with_the_probe_timeout"),
    (
        Cause::TooManyFromClient,
        "tests/e2e/life_connection_limits.rs",
        "over_a_clients_limit_it_is_told_when_to_come_back_and_others_are_served",
    ),
    (
        Cause::TooManyConnections,
        "tests/e2e/life_connection_limits.rs",
        "over_a_listeners_limit_a_client_is_told_and_other_listeners_have_their_own",
    ),
    (
        Cause::LocalShortage,
        "src/proxy/http/forward/failure.rs",
        "a_lack_of_ports_towards_one_backend_is_held_against_nobody_and_another_is_tried",
    ),
    (
        Cause::NoLocalPort,
        "src/proxy/http/forward/failure.rs",
        "a_lack_of_ports_towards_one_backend_is_held_against_nobody_and_another_is_tried",
    ),
    (
        Cause::Shutdown,
        "tests/e2e/drain.rs",
        "who_was_cut_with_a_listener_is_not_counted_at_the_end_of_the_process",
    ),
    (
        Cause::Internal,
        "src/worker/connection_slot.rs",
        "a_panic_in_one_connection_is_counted_and_recorded_and_ends_no_other",
    ),
    (
        Cause::ConnectTimeout,
        "tests/e2e/life_failure.rs",
        "a_backend_that_does_not_accept_is_given_up_after_the_connect_timeout",
    ),
    (
        Cause::UpstreamTls,
        "tests/e2e/tls_backends_failures.rs",
        "what_is_no_handshake_is_told_from_one_that_is_broken",
    ),
    (
        Cause::UpstreamTlsIssuer,
        "tests/e2e/tls_backends.rs",
        "a_self_signed_certificate_is_taken_when_it_stands_in_ca_file_and_only_for_what_it_says",
    ),
    (
        Cause::UpstreamTlsRefused,
        "tests/e2e/tls_backends_failures.rs",
        "a_post_is_not_repeated_elsewhere_after_a_late_refusal_once_it_is_out",
    ),
    (
        Cause::UpstreamNotTls,
        "tests/e2e/tls_backends_failures.rs",
        "bytes_before_the_handshake_end_it_and_reach_no_client",
    ),
    (
        Cause::UpstreamTlsTimeout,
        "tests/e2e/tls_backends_failures.rs",
        "every_broken_backend_has_its_cause_and_its_reason_and_costs_nothing_beside_a_good_one",
    ),
    (Cause::ErrorStatus, "tests/e2e/retries.rs", "the_record_tells_why_each_attempt_has_failed"),
    (Cause::BadUpgrade, "tests/e2e/http_upgrades.rs", "a_101_that_does_not_fit_is_no_tunnel"),
    (
        Cause::BadAnswerBody,
        "tests/e2e/mirror_faults.rs",
        "a_shadow_that_does_odd_things_harms_nobody_and_each_end_has_its_cause",
    ),
    (Cause::AnswerCut, "tests/e2e/cuts.rs", "the_failure_of_one_side_is_no_end_for_the_other"),
    (Cause::AnswerStalled, "tests/e2e/faults.rs", "each_fault_is_told_as_what_it_is"),
    (
        Cause::FieldDropped,
        "src/server/refusals.rs",
        "what_goes_on_is_told_every_ten_seconds_and_nothing_is_left_out",
    ),
    (
        Cause::MirrorFull,
        "tests/e2e/mirror_faults.rs",
        "of_a_shadow_that_never_answers_so_many_copies_are_under_way_so_many_wait_and_the_rest_is_dropped",
    ),
    (Cause::MirrorTooLong, "tests/e2e/mirror.rs", "a_body_of_64_kib_is_copied_and_a_longer_one_not"),
    (
        Cause::MirrorUnfinished,
        "tests/e2e/mirror_faults.rs",
        "a_body_that_does_not_come_to_its_end_is_not_copied",
    ),
    (
        Cause::MirrorCut,
        "tests/e2e/mirror_faults.rs",
        "a_shadow_that_does_odd_things_harms_nobody_and_each_end_has_its_cause",
    ),
    (Cause::Overtaken, "tests/e2e/hedges.rs", "a_competitor_that_is_sooner_gives_the_answer"),
    (Cause::TunnelIdle, "tests/e2e/cuts.rs", "a_download_that_stalled_does_not_look_complete"),
    (Cause::Drained, "tests/e2e/drain.rs", "a_websocket_of_a_backend_that_is_gone_hears_1001_on_both_sides"),
];

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
