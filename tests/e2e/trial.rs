//! A config that is applied, on trial, confirmed and taken back.

use std::path::Path;

use fake_backend::{Behaviour, Running};
use serde_json::{Value, json};

use super::by_hand::{change, entries, of, seen};
use super::support::process::{Process, whole};
use super::support::{Client, eventually, fakes};

/// Exit code and standard output, or standard error where nothing was printed.
fn run(process: &Process, words: &[&str]) -> (Option<i32>, String) {
    let output = process.command(words);
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), if stdout.is_empty() { stderr } else { stdout })
}

/// Writes a config beside that of the process; gives its path.
fn beside(process: &Process, config: &str) -> String {
    let file = process.folder().join("new.yaml");
    std::fs::write(&file, whole(config)).unwrap();
    file.display().to_string()
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn greeting(process: &Process) -> String {
    Client::connect(process.address("web")).get("/").text()
}

fn trial(process: &Process) -> Value {
    process.ask("GET /api/v1/status", b"").1["process"]["trial"].clone()
}

fn done(process: &Process, words: &[&str], said: &str) -> String {
    let (code, text) = run(process, words);
    assert_eq!(code, Some(0), "{words:?}: {text}");
    assert!(text.contains(said), "{words:?}: {text}");
    text
}

fn refused(process: &Process, words: &[&str], said: &str) {
    let (code, text) = run(process, words);
    assert_eq!(code, Some(1), "{words:?}: {text}");
    assert!(text.contains(said), "{words:?}: {text}");
}

fn one(backend: &Running) -> String {
    of(std::slice::from_ref(backend), "")
}

#[test]
fn what_is_confirmed_lies_in_the_file_and_what_is_not_is_gone_after_a_kill() {
    let backends = fakes(2);
    let process = Process::start(&one(&backends[0]), 1);
    let first = read(process.folder(), "evenkeel.yaml");
    let new = beside(&process, &one(&backends[1]));
    done(&process, &["apply", &new, "--confirm", "1h"], "on trial for 1h: `evenkeel confirm` keeps it");
    assert_eq!(greeting(&process), "Hello from fake-2");
    assert_eq!(read(process.folder(), "evenkeel.yaml"), first);
    assert!(trial(&process)["who"].as_str().unwrap().starts_with("uid "));
    done(&process, &["status"], "(applied by uid ");
    // A crash is a rollback.
    let process = Process::start_in(process.kill(), 1);
    assert_eq!((greeting(&process), trial(&process)), ("Hello from fake-1".into(), Value::Null));
    done(&process, &["apply", &new, "--confirm", "1h"], "replaced");
    done(&process, &["confirm"], "evenkeel.yaml.before the one before");
    assert_eq!((greeting(&process), trial(&process)), ("Hello from fake-2".into(), Value::Null));
    assert_eq!(read(process.folder(), "evenkeel.yaml"), read(process.folder(), "new.yaml"));
    assert_eq!(read(process.folder(), "evenkeel.yaml.before"), first);
    refused(&process, &["confirm"], "no config is on trial");
    refused(&process, &["rollback"], "no config is on trial");
    let process = Process::start_in(process.kill(), 1);
    assert_eq!(greeting(&process), "Hello from fake-2");
}

#[test]
fn what_a_process_left_that_was_killed_in_the_middle_of_a_replacement_is_gone_at_the_next_start() {
    let backends = fakes(1);
    let process = Process::start(&one(&backends[0]), 1);
    let left = [".new-", ".before-"]
        .map(|more| process.folder().join(format!("evenkeel.yaml{more}{}", process.id())));
    for path in &left {
        std::fs::write(path, "half").unwrap();
    }
    let process = Process::start_in(process.kill(), 1);
    for path in left {
        assert!(!path.exists());
        let told = format!("{} is removed: a process that was killed", path.display());
        assert!(process.said().iter().any(|line| line.contains(&told)), "{:#?}", process.said());
    }
}

#[test]
fn without_a_time_it_is_in_force_and_in_the_file_at_once() {
    let backends = fakes(2);
    let process = Process::start(&one(&backends[0]), 1);
    let new = beside(&process, &one(&backends[1]));
    let text = done(&process, &["apply", &new], "applied: ");
    assert!(!text.contains("trial"), "{text}");
    assert_eq!(greeting(&process), "Hello from fake-2");
    assert_eq!(read(process.folder(), "evenkeel.yaml"), read(process.folder(), "new.yaml"));
    assert!(process.hang_up().contains("reloaded: nothing differs"));
    let broken = beside(&process, "targets: {web: {listen: 1}}");
    refused(&process, &["apply", &broken], "unknown key `listen`");
    std::fs::write(&broken, "").unwrap();
    let (code, text) = run(&process, &["apply", &broken]);
    assert_eq!((code, text.contains("this file is empty")), (Some(2), true), "{text}");
    std::fs::write(&broken, b"\xff\xfea").unwrap();
    let wrong = |words: &[&str], said: &str| {
        let (code, text) = run(&process, words);
        assert_eq!((code, text.contains(said)), (Some(2), true), "{words:?}: {text}");
    };
    wrong(&["apply", &broken], "new.yaml: not UTF-8");
    wrong(&["apply", "-"], "standard input: nothing came");
    wrong(&["apply", &new, "--confirm", "-5"], "a time from 1s to 24h");
    let (status, answer) = process.ask("POST /api/v1/config/apply", b"");
    assert_eq!((status, answer["detail"].as_str().unwrap().contains("empty")), (400, true));
    let (status, _) = process.ask("POST /api/v1/config/apply?confirm=25h", b"x: 1");
    assert_eq!(status, 400);
    assert_eq!(greeting(&process), "Hello from fake-2");
}

#[test]
fn what_somebody_calls_a_text_drives_no_terminal_of_another_one() {
    let backends = fakes(2);
    let process = Process::start(&one(&backends[0]), 1);
    let text = whole(&one(&backends[1]));
    let (status, answer) =
        process.ask("POST /api/v1/config/apply?confirm=1h&file=a%0a%1b%5b31mb.yaml", text.as_bytes());
    assert_eq!(status, 200, "{answer}");
    assert!(answer.to_string().contains("a··[31mb.yaml"), "{answer}");
}

#[test]
fn a_trial_ends_by_itself_or_by_a_rollback_and_keeps_everything_else_out() {
    let backends = fakes(3);
    let process = Process::start(&one(&backends[0]), 1);
    let new = beside(&process, &one(&backends[1]));
    done(&process, &["apply", &new, "--confirm", "1s"], "on trial");
    eventually("its time is over", || {
        process.said().iter().any(|line| line.contains("rolled back, it was not confirmed in time: "))
    });
    eventually("it is taken back", || trial(&process).is_null());
    assert_eq!(greeting(&process), "Hello from fake-1");
    done(&process, &["apply", &new, "--confirm", "1h"], "on trial");
    refused(&process, &["apply", &new, "--confirm", "1h"], "a config is on trial for ");
    refused(&process, &["apply", &new], "a config is on trial for ");
    refused(&process, &["reload"], "a config is on trial for ");
    let log = process.hang_up();
    assert!(log.contains("reload refused, nothing has changed: a config is on trial for "), "{log}");
    let file = process.folder().join("evenkeel.yaml");
    let old = read(process.folder(), "evenkeel.yaml");
    std::fs::write(&file, whole(&one(&backends[2]))).unwrap();
    refused(&process, &["confirm"], "evenkeel.yaml has changed since the config was applied");
    assert_eq!(greeting(&process), "Hello from fake-2");
    std::fs::write(&file, old).unwrap();
    done(&process, &["rollback"], "rolled back: ");
    assert_eq!(greeting(&process), "Hello from fake-1");
    eventually("who did it is told", || {
        process.said().iter().any(|line| line.contains("rolled back, as uid "))
    });
}

#[test]
fn changes_by_hand_that_only_the_trial_has_ended_are_back_with_what_was_before() {
    let backends = fakes(2);
    let config = |more: &str| of(&backends, more);
    let process = Process::start(&config(""), 1);
    let changed = |request: &str, body: &Value| {
        let (status, answer) = change(&process, request, body);
        assert_eq!(status, 200, "{request}: {answer}");
    };
    changed("PATCH /backends/b0", &json!({"weight": 5}));
    changed("PATCH /backends/b1", &json!({"weight": 7}));
    changed("PATCH /backends/b0", &json!({"state": "drain"}));
    let new = beside(&process, &config(", weight: 3"));
    done(&process, &["apply", &new, "--confirm", "1h"], "b0 weight 5: the file has changed, it says 3");
    assert_eq!(seen(&process), ["b0 3 drain", "b1 3 up"]);
    // What is said meanwhile holds over the end of it.
    changed("PATCH /backends/b1", &json!({"weight": null}));
    changed("PATCH /backends/b1", &json!({"state": "drain"}));
    changed("PATCH /backends/b0", &json!({"state": null}));
    assert_eq!(seen(&process), ["b0 3 up", "b1 3 drain"]);
    done(&process, &["rollback"], "rolled back: ");
    assert_eq!(seen(&process), ["b0 5 up", "b1 1 drain"]);
    done(&process, &["apply", &new, "--confirm", "1h"], "on trial");
    assert_eq!(seen(&process), ["b0 3 up", "b1 3 drain"]);
    let process = Process::start_in(process.kill(), 1);
    assert_eq!(seen(&process), ["b0 5 up", "b1 1 drain"], "a crash is a rollback");
    done(&process, &["apply", &new, "--confirm", "1h"], "on trial");
    done(&process, &["confirm"], "confirmed: ");
    let left: Vec<Value> = entries(&process).iter().map(|entry| entry["field"].clone()).collect();
    assert_eq!((seen(&process), left), (vec!["b0 3 up".into(), "b1 3 drain".into()], vec![json!("state")]));
    let process = Process::start_in(process.kill(), 1);
    assert_eq!(seen(&process), ["b0 3 up", "b1 3 drain"], "it was over for good");
}

#[test]
fn files_that_keys_name_are_read_under_the_trial_s_text_and_edits_of_the_config_wait() {
    let backends = fakes(3);
    let config = |backend: &Running| {
        format!(
            "workers: 1\nadmin: {{listener: 127.0.0.1:0, token_file: tokens}}\ntargets:\n  web:\n    protocol: http\n    \
             listener: 127.0.0.1:0\n    health_check: off\n    backends: [{{name: b, host: 127.0.0.1, port: {}}}]\n",
            backend.port()
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let token = |last: char| format!("ci read {}{last}\n", "0123456789abcdef".repeat(2));
    std::fs::write(folder.path().join("evenkeel.yaml"), config(&backends[0])).unwrap();
    std::fs::write(folder.path().join("tokens"), token('a')).unwrap();
    let process = Process::start_in(folder, 1);
    let tells = |what: &str| eventually(what, || process.said().iter().any(|line| line.contains(what)));
    let new = process.folder().join("new.yaml");
    std::fs::write(&new, config(&backends[1])).unwrap();
    done(&process, &["apply", new.to_str().unwrap(), "--confirm", "1h"], "on trial");
    std::fs::write(process.folder().join("tokens"), token('b')).unwrap();
    tells("reloaded: ~ admin.token_file");
    assert_eq!(greeting(&process), "Hello from fake-2", "it was read under the text on trial");
    std::fs::write(process.folder().join("evenkeel.yaml"), config(&backends[2])).unwrap();
    tells("evenkeel.yaml has changed, and is not read while a config is on trial");
    assert_eq!(greeting(&process), "Hello from fake-2");
    std::fs::write(process.folder().join("tokens"), token('c')).unwrap();
    eventually("both files are new, and only the tokens are read", || {
        process.said().iter().filter(|line| line.contains("reloaded: ~ admin.token_file")).count() == 2
    });
    assert_eq!(greeting(&process), "Hello from fake-2");
    let told = process.said().iter().filter(|line| line.contains("is not read while")).count();
    assert_eq!(told, 1, "an edit is told once");
    refused(&process, &["confirm"], "has changed since the config was applied");
    done(&process, &["rollback"], "rolled back: ");
    // What was edited meanwhile counts now.
    eventually("the edit is read", || greeting(&process) == "Hello from fake-3");
    eventually("who did it is told", || {
        process.said().iter().any(|line| line.contains("rolled back, as uid "))
    });
}

/// Asks again and again until the config on trial is taken back; gives how many requests failed of how many.
fn until_taken_back(process: &Process) -> (usize, usize) {
    let (mut failed, mut all) = (0, 0);
    let mut client = Client::connect(process.address("web"));
    eventually("it is taken back", || {
        for _ in 0..10 {
            all += 1;
            failed += usize::from(client.get("/").status != 200);
        }
        trial(process).is_null()
    });
    (failed, all)
}

#[test]
fn what_makes_more_than_half_fail_is_taken_back_at_once() {
    let backends = fakes(2);
    backends[1].behave(Behaviour::status(500));
    let process = Process::start(&one(&backends[0]), 1);
    let mut client = Client::connect(process.address("web"));
    for _ in 0..200 {
        assert_eq!(client.get("/").status, 200);
    }
    let new = beside(&process, &one(&backends[1]));
    done(&process, &["apply", &new, "--confirm", "1h"], "on trial");
    let (failed, _) = until_taken_back(&process);
    assert!(failed >= 8, "{failed}");
    eventually("why is told", || {
        process
            .said()
            .iter()
            .any(|line| line.contains("rolled back, ") && line.contains(" requests failed in "))
    });
    assert_eq!(greeting(&process), "Hello from fake-1");
}
