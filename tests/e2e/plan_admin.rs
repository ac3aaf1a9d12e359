//! The admin socket of a process: plan, reload, digest, and the commands that talk to it.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};

use fake_backend::{Authority, Running};
use serde_json::Value;

use super::support::process::{Process, ask, whole};
use super::support::{Client, PATIENCE, eventually, fakes};

fn of(backend: &Running, more: &str) -> String {
    format!(
        "workers: 1\n{more}targets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n    \
         backends: [{{host: 127.0.0.1, port: {}}}]\n",
        backend.port()
    )
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Exit code, standard output, standard error.
fn said(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn first(answer: &Value) -> String {
    answer["problems"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// The form of the requirement: fifty in all, of ten kinds.
#[test]
fn fifty_failing_reloads_of_ten_kinds_change_nothing_and_each_is_told_at_its_line() {
    let backends = fakes(2);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let process = Process::start(&of(&backends[0], ""), 1);
    let mut client = Client::connect(process.address("web"));
    assert_eq!(client.get("/").text(), "Hello from fake-1");
    let file = process.folder().join("evenkeel.yaml");
    for name in ["a", "b"] {
        let issued = Authority::new(name).issue(["localhost"]);
        std::fs::write(process.folder().join(format!("{name}.pem")), issued.cert_pem).unwrap();
        std::fs::write(process.folder().join(format!("{name}.key")), issued.key_pem).unwrap();
    }
    let good = std::fs::read_to_string(&file).unwrap();
    let other = of(&backends[1], "");
    let with = |from: &str, to: &str| whole(&other.replace(from, to)).into_bytes();
    let https = |tls: &str| with("protocol: http\n", &format!("protocol: https\n    tls: {tls}\n"));
    let taken = format!("listener: {}", taken.local_addr().unwrap());
    let kinds: [(&str, Vec<u8>, &str); 8] = [
        ("address taken", with("listener: 127.0.0.1:0", &taken), "evenkeel.yaml:6: listener web: can't bind"),
        ("a pair that does not fit", https("{cert_file: a.pem, cert_key: b.key}"), "evenkeel.yaml:6:"),
        (
            "unknown key",
            with("workers: 1\n", "workers: 1\nworker: 2\n"),
            "evenkeel.yaml:3:1: unknown key `worker`",
        ),
        ("include missing", with("workers: 1\n", "workers: 1\ninclude: missing.yaml\n"), "evenkeel.yaml:3:"),
        ("cycle", with("workers: 1\n", "workers: 1\ninclude: evenkeel.yaml\n"), "evenkeel.yaml:3:"),
        ("needs a restart", with("workers: 1", "workers: 2"), "evenkeel.yaml:2: `workers` differs"),
        (
            "unreadable",
            b"workers: 1\n# \xff\n".to_vec(),
            "evenkeel.yaml:2:3: this byte is not part of a UTF-8",
        ),
        ("50 MB", b"x: y\n".repeat(10_000_000), "evenkeel.yaml: this file is larger than 16MiB"),
    ];
    let digest = process.digest();
    let refused = |kind: &str, place: &str| {
        let told = process.reloads().len();
        let log = process.hang_up();
        assert!(
            log.contains("reload refused, nothing has changed: ") && log.contains(place),
            "{kind}: {log}"
        );
        assert_eq!(process.digest(), digest, "{kind}");
        let (status, answer) = process.ask("POST /api/v1/config/plan", b"");
        assert_eq!((status, &answer["verdict"]), (200, &Value::from("refused")), "{kind}: {answer}");
        assert!(first(&answer).contains(place), "{kind}: {answer}");
        let (status, answer) = process.ask("POST /api/v1/config/reload", b"");
        assert!(matches!(status, 409 | 422), "{kind}: {status} {answer}");
        assert!(first(&answer).contains(place), "{kind}: {answer}");
        assert_eq!(process.digest(), digest, "{kind}");
        // Its line may come later than its answer.
        eventually("both are told", || process.reloads().len() == told + 2);
    };
    for _ in 0..5 {
        for (kind, text, place) in &kinds {
            std::fs::write(&file, text).unwrap();
            refused(kind, place);
        }
        std::fs::remove_file(&file).unwrap();
        refused("gone", "evenkeel.yaml: this config file does not exist");
        std::fs::create_dir(&file).unwrap();
        refused("a folder", "evenkeel.yaml: this is a folder");
        std::fs::remove_dir(&file).unwrap();
    }
    std::fs::write(&file, good).unwrap();
    let (status, answer) = process.ask("POST /api/v1/config/reload", b"");
    assert_eq!((status, &answer["verdict"]), (200, &Value::from("unchanged")), "{answer}");
    assert_eq!(client.get("/").text(), "Hello from fake-1");
    std::fs::write(&file, whole(&other)).unwrap();
    let (_, answer) = process.ask("POST /api/v1/reload", b"");
    assert_eq!(answer["verdict"], "taken", "{answer}");
    assert_ne!(process.digest(), digest, "what has changed is seen");
    assert_eq!(client.get("/").text(), "Hello from fake-2");
}

#[test]
fn plan_and_reload_print_what_changes_and_end_with_its_code() {
    let backends = fakes(2);
    let process = Process::start(&of(&backends[0], ""), 1);
    let file = process.folder().join("evenkeel.yaml");
    assert_eq!(said(&process.command(&["plan"])), (Some(0), "nothing would change\n".into(), String::new()));
    let (old, new) = (backends[0].port(), backends[1].port());
    std::fs::write(&file, whole(&of(&backends[1], "max_connections: 99\n"))).unwrap();
    let lines = format!(
        "~ max_connections: (file descriptor limit - 200) / 2 -> 99 (FILE:3)\n\
         + backend web/127.0.0.1:{new} (FILE:9)\n- backend web/127.0.0.1:{old} (FILE:8)\n"
    );
    let lines = lines.replace("FILE", &file.display().to_string());
    let counts = "1 added, 1 removed, 1 changed";
    let digest = process.digest();
    let planned = said(&process.command(&["plan"]));
    assert_eq!(planned, (Some(0), format!("{lines}it would be taken: {counts}\n"), String::new()));
    assert_eq!(process.digest(), digest);
    let (code, json, _) = said(&process.command(&["plan", "--json", "-c", "evenkeel.yaml"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, json["objects"].as_array().unwrap().len()), (Some(0), 3), "{json}");
    let reloaded = said(&process.command(&["reload"]));
    assert_eq!(reloaded, (Some(0), format!("{lines}reloaded: {counts}\n"), String::new()));
    let (_, again, _) =
        said(&process.command(&["reload", "--socket", &process.socket().display().to_string()]));
    assert_eq!(again, "reloaded: nothing differs\n");

    // Another file's text is read as if it stood at the config's place.
    let other = process.folder().join("sub folder");
    std::fs::create_dir(&other).unwrap();
    let other = other.join("other.yaml");
    std::fs::write(&other, whole(&of(&backends[0], "max_connections: 99\n"))).unwrap();
    let (code, printed, _) = said(&process.command(&["plan", "sub folder/other.yaml"]));
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains(&format!("+ backend web/127.0.0.1:{old} (sub folder/other.yaml:9)")),
        "{printed}"
    );
    let wrong = whole("workers: 1\ntargets: {web: {protocol: http, lisener: 1}}\n");
    std::fs::write(&other, &wrong).unwrap();
    let (code, printed, _) = said(&process.command(&["plan", "sub folder/other.yaml"]));
    assert_eq!(code, Some(1));
    let (check, _, problems) = said(&process.command(&["check", "sub folder/other.yaml"]));
    assert_eq!(
        (check, &printed.replace("it would be refused: ", "")),
        (Some(1), &problems),
        "the words of `check`"
    );
    std::fs::write(&file, &wrong).unwrap();
    let (code, printed, problems) = said(&process.command(&["reload"]));
    assert_eq!((code, printed.as_str()), (Some(1), ""));
    assert!(problems.contains("unknown key `lisener`"), "{problems}");
    assert!(problems.ends_with("refused, nothing has changed: 2 problems\n"), "{problems}");
}

#[test]
fn a_command_finds_its_process_or_says_what_to_do() {
    let backends = fakes(1);
    let process = Process::start(&of(&backends[0], "name: first\n"), 1);
    let wrong = |words: &[&str]| {
        let (code, printed, problems) = said(&process.command(words));
        assert_eq!((code, printed.as_str()), (Some(2), ""), "{words:?}: {problems}");
        problems
    };
    assert!(wrong(&["plan", "--socket", "nowhere.sock"]).contains("nowhere.sock: no answer"));
    assert!(wrong(&["reload", "-c", "other.yaml"]).contains("no evenkeel serves "));
    assert!(wrong(&["plan", "missing.yaml"]).contains("missing.yaml: can't be read"));
    // Its name is in the file, and the file may be broken otherwise.
    let file = process.folder().join("evenkeel.yaml");
    std::fs::write(&file, "name: first\nnonsense: 1\n").unwrap();
    let (code, ..) = said(&process.command(&["plan", "-c", "evenkeel.yaml"]));
    assert_eq!(code, Some(1));
    // No name any more: the process says which file it serves.
    std::fs::write(&file, "nonsense: 1\n").unwrap();
    assert_eq!(said(&process.command(&["plan", "-c", "./evenkeel.yaml"])).0, Some(1));

    std::fs::write(process.folder().join("second.yaml"), of(&backends[0], "name: second\n")).unwrap();
    let mut second = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    let mut second = second
        .args(["-c", "second.yaml"])
        .current_dir(process.folder())
        .env("XDG_RUNTIME_DIR", process.folder())
        .env("TMPDIR", process.folder())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let socket = process.folder().join("evenkeel/second.sock");
    eventually("the second one listens", || UnixStream::connect(&socket).is_ok());
    let several = wrong(&["plan"]);
    assert!(several.starts_with("2 processes run; name one with `--socket PATH` or `-c FILE`:"), "{several}");
    assert!(several.contains("  first (process ") && several.contains("second.yaml): "), "{several}");
    assert_eq!(said(&process.command(&["plan", "-c", "second.yaml"])).0, Some(0));
    second.kill().unwrap();
    second.wait().unwrap();
    assert!(socket.exists(), "a stale socket");
    assert_eq!(
        said(&process.command(&["plan"])).0,
        Some(1),
        "nobody answers there, so the first one is meant"
    );
}

#[test]
fn without_a_process_the_command_says_so() {
    let empty = tempfile::tempdir().unwrap();
    let run = |variable: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        let folders = ["XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TMPDIR"];
        command.arg("plan").envs(folders.map(|name| (name, empty.path()))).env_remove("EVENKEEL_SOCKET");
        command.envs(variable.map(|socket| ("EVENKEEL_SOCKET", socket)));
        said(&command.output().unwrap())
    };
    let (code, _, problem) = run(None);
    assert_eq!(code, Some(2));
    assert!(problem.contains("no evenkeel of this user runs") && problem.contains("hint: "), "{problem}");
    let (code, _, problem) = run(Some("/nowhere/a.sock"));
    assert_eq!(code, Some(2));
    assert!(problem.starts_with("/nowhere/a.sock: no answer: "), "{problem}");
}

#[test]
fn the_socket_is_for_its_user_alone_and_goes_with_the_process() {
    let backends = fakes(1);
    let process = Process::start(&of(&backends[0], ""), 1);
    let socket = process.socket();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o600, 0o700));
    assert!(socket.starts_with(process.folder()));
    // It drains, and whoever comes after may have the path.
    let mut client = Client::connect(process.address("web"));
    backends[0].behave(fake_backend::Behaviour::default().latency(PATIENCE).times(1));
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is under way", || backends[0].requests() == 1);
    process.terminate();
    eventually("the socket is gone", || !socket.exists());
}

#[test]
fn a_live_socket_is_never_taken_away() {
    let backends = fakes(1);
    let process = Process::start(&of(&backends[0], "admin: {socket: own.sock}\n"), 1);
    let start = |name: &str, admin: &str| {
        let file = process.folder().join(format!("{name}.yaml"));
        std::fs::write(&file, of(&backends[0], admin)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        command.arg(&file).stdin(Stdio::null()).env("XDG_STATE_HOME", process.folder());
        command.env("XDG_RUNTIME_DIR", process.folder());
        command
    };
    let (code, _, problem) = said(&start("other", "admin: {socket: own.sock}\n").output().unwrap());
    assert_eq!(code, Some(1));
    assert!(
        problem.contains("other.yaml:2: admin socket ") && problem.contains("own.sock: Address"),
        "{problem}"
    );
    assert_eq!(
        ask(&process.folder().join("own.sock"), "GET /api/v1", b"").1["name"].as_str().unwrap().len(),
        12
    );
    // One that nobody has asked for is done without.
    let default = Process::start(&of(&backends[0], "name: same\n"), 1);
    let taken = default.folder().join("evenkeel/same.sock");
    let mut second = start("second", "name: same\n");
    let second = second.env("XDG_RUNTIME_DIR", default.folder()).stderr(Stdio::piped());
    let mut second = second.spawn().unwrap();
    let mut stderr = second.stderr.take().unwrap();
    let mut said = String::new();
    while !said.contains("listening ") {
        let mut some = [0; 1024];
        let count = stderr.read(&mut some).unwrap();
        assert!(count > 0, "it ended: {said}");
        said += &text(&some[..count]);
    }
    second.kill().unwrap();
    second.wait().unwrap();
    assert!(said.contains("no admin socket for `evenkeel plan`: "), "{said}");
    assert_eq!(ask(&taken, "GET /api/v1", b"").0, 200);
}

#[test]
fn wrong_requests_are_problem_documents_and_every_listed_route_answers() {
    let backends = fakes(1);
    let process = Process::start(&of(&backends[0], ""), 1);
    let (status, about) = process.ask("GET /api/v1", b"");
    assert_eq!((status, about["pid"].as_u64().is_some()), (200, true), "{about}");
    assert!(about["config"].as_str().unwrap().ends_with("evenkeel.yaml"));
    for route in about["routes"].as_array().unwrap() {
        let text = |name: &str| route[name].as_str().unwrap();
        let (status, answer) = process.ask(&format!("{} {}", text("method"), text("path")), b"");
        let detail = answer["detail"].as_str().unwrap_or_default();
        assert!(status != 405 && !detail.contains("nothing at this path"), "{route}: {answer}");
    }
    let problem = |request: &str, body: &[u8], expected: u16, detail: &str| {
        let (status, answer) = process.ask(request, body);
        assert_eq!((status, answer["status"].as_u64()), (expected, Some(expected.into())), "{answer}");
        assert!(answer["detail"].as_str().unwrap().contains(detail), "{answer}");
        assert!(answer["type"].is_string() && answer["title"].is_string());
    };
    problem("GET /api/v1/config/plann", b"", 404, "did you mean /api/v1/config/plan?");
    problem("GET /api/v1/config/plan", b"", 405, "POST only");
    problem("POST /api/v1/reload", b"x: 1", 415, "takes no body");
    problem("POST /api/v1/config/plan\nContent-Type: application/json", b"{}", 415, "application/yaml");
    problem("POST /api/v1/config/plan", b"\xff", 400, "UTF-8");
    let mut stream = UnixStream::connect(process.socket()).unwrap();
    let head = "POST /api/v1/config/plan HTTP/1.1\r\nHost: a\r\nContent-Length: 16777217\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("application/problem+json"), "{answer}");
    let (status, answer) = process.ask("POST /api/v1/config/plan?file=a%20b.yaml", b"nonsense: 1\n");
    assert_eq!((status, answer["problems"][0]["file"].as_str()), (200, Some("a b.yaml")), "{answer}");
}

#[test]
fn idle_admin_connections_harm_neither_traffic_nor_those_behind_them() {
    let backends = fakes(1);
    let process = Process::start(&of(&backends[0], ""), 1);
    let idle: Vec<UnixStream> = (0..100).map(|_| UnixStream::connect(process.socket()).unwrap()).collect();
    assert_eq!(Client::connect(process.address("web")).get("/").status, 200);
    drop(idle);
    assert_eq!(process.ask("GET /api/v1", b"").0, 200);
}

#[test]
fn without_a_file_the_process_is_found_all_the_same_and_has_nothing_to_read_again() {
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    let folders = ["XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TMPDIR"].map(|name| (name, folder.path()));
    // Nothing but the private folder will do.
    std::fs::write(folder.path().join("evenkeel"), "").unwrap();
    let url = format!("http://127.0.0.1:{}", backends[0].port());
    let mut serving = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["--backends", &url, "--port", "0"])
        .envs(folders)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let plan = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        said(&command.arg("plan").envs(folders).env_remove("EVENKEEL_SOCKET").output().unwrap())
    };
    let mut heard = plan();
    eventually("it answers", || {
        heard = plan();
        heard.0 == Some(1)
    });
    assert!(heard.1.contains("there is no config file"), "{heard:?}");
    let private = || {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        entries
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("evenkeel-"))
            .count()
    };
    assert_eq!(private(), 1);
    let pid = rustix::process::Pid::from_child(&serving);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(serving.wait().unwrap().success());
    assert_eq!(private(), 0, "it went with the process");
}
