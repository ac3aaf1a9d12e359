//! Changes by hand written into the config file.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use super::by_hand::{change, entries, of, seen};
use super::support::process::{Process, whole};
use super::support::{eventually, fakes};

/// Exit code and both outputs.
fn save(process: &Process, words: &[&str]) -> (Option<i32>, String, String) {
    let output = process.command(&[&["save"], words].concat());
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), stdout, stderr)
}

fn set(process: &Process, request: &str, body: &Value) {
    let (status, answer) = change(process, request, body);
    assert!(matches!(status, 200 | 201), "{request}: {status} {answer}");
}

fn text(process: &Process) -> String {
    std::fs::read_to_string(process.folder().join("evenkeel.yaml")).unwrap()
}

/// Lines that differ, as `diff` has them but for numbers.
fn differing(before: &str, after: &str) -> Vec<String> {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let gone = before.iter().filter(|line| !after.contains(line)).map(|line| format!("-{line}"));
    let new = after.iter().filter(|line| !before.contains(line)).map(|line| format!("+{line}"));
    gone.chain(new).collect()
}

#[test]
fn what_is_saved_is_what_a_start_without_the_journal_serves() {
    let backends = fakes(4);
    let process = Process::start(&of(&backends[..3], ""), 1);
    let before = text(&process);
    assert_eq!(save(&process, &[]), (Some(0), "nothing to save\n".into(), String::new()));
    set(&process, "PATCH /backends/b0", &json!({"weight": 5}));
    set(&process, "PATCH /backends/b1", &json!({"state": "drain"}));
    set(&process, "DELETE /backends/b2", &Value::Null);
    let url = format!("http://127.0.0.1:{}", backends[3].port());
    set(&process, "POST /backends", &json!({"url": url, "name": "b3"}));
    set(&process, "PATCH /backends/b3", &json!({"weight": 2}));
    set(&process, "PATCH ", &json!({"max_in_flight": 50}));
    set(&process, "PATCH /backends/b0", &json!({"state": "drain", "for": 600}));
    let all = seen(&process);
    assert_eq!(all, ["b0 5 drain", "b1 1 drain", "b3 2 up"]);
    let (code, out, err) = save(&process, &[]);
    assert_eq!((code, &*err), (Some(0), ""), "{out}");
    let after = text(&process);
    let [one, two, three, four] = [0, 1, 2, 3].map(|number: usize| backends[number].port());
    assert_eq!(
        differing(&before, &after),
        [
            format!("-      - {{name: b0, host: 127.0.0.1, port: {one}}}"),
            format!("-      - {{name: b1, host: 127.0.0.1, port: {two}}}"),
            format!("-      - {{name: b2, host: 127.0.0.1, port: {three}}}"),
            "+    max_in_flight: 50".into(),
            format!("+      - {{name: b0, host: 127.0.0.1, port: {one}, weight: 5}}"),
            format!("+      - {{name: b1, host: 127.0.0.1, port: {two}, state: drain}}"),
            format!("+      - {{url: http://127.0.0.1:{four}, name: b3, weight: 2}}"),
        ]
    );
    assert!(out.contains("  + ") && out.contains(": it ends by itself\n"), "{out}");
    assert_eq!(seen(&process), all, "nothing has changed in the process");
    assert_eq!(entries(&process).len(), 1, "only what ends by itself is left");
    eventually("it is said", || process.said().iter().any(|line| line.contains("saved into ")));
    let log = process.said();
    let saved = log.iter().filter(|line| line.contains("saved into ")).count();
    assert_eq!((saved, log.iter().filter(|line| line.contains("WARN")).count()), (1, 0), "{log:#?}");
    let said = process.hang_up();
    assert!(said.contains("reloaded: nothing differs"), "{said}");
    let folder = process.kill();
    std::fs::remove_dir_all(folder.path().join("state")).unwrap();
    let process = Process::start_in(folder, 1);
    assert_eq!(seen(&process), ["b0 5 up", "b1 1 drain", "b3 2 up"]);
    assert_eq!(entries(&process).len(), 0);
}

#[test]
fn what_can_t_be_written_is_told_and_nothing_changes() {
    let backends = fakes(2);
    let ports = [0, 1].map(|number: usize| backends[number].port());
    let [one, two] = ports;
    let config = |weight: &str| {
        format!(
            "x-one: &one {{name: b0, host: 127.0.0.1, port: {one}}}\ntargets:\n  web:\n    protocol: http\n    \
             listener: 127.0.0.1:0\n    backends:\n      - *one\n      - {{name: b1, host: 127.0.0.1, port: {two}{weight}}}\n"
        )
    };
    let process = Process::start(&config(""), 1);
    let before = text(&process);
    set(&process, "PATCH /backends/b1", &json!({"weight": 5}));
    set(&process, "PATCH /backends/b0", &json!({"weight": 7}));
    let (code, out, err) = save(&process, &[]);
    assert_eq!((code, &*out), (Some(1), ""), "{err}");
    let file = process.folder().join("evenkeel.yaml").display().to_string();
    let told = format!("{file}:8: this backend is an alias; write into the backend web/b0:\n    weight: 7\n");
    assert!(err.starts_with(&told), "{err}");
    let (code, out, _) = save(&process, &["--json"]);
    let problem: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &problem["status"], &problem["problems"][0]["line"]),
        (Some(1), &json!(409), &json!(8))
    );
    assert_eq!((text(&process), entries(&process).len()), (before, 2));
    // Somebody edits the file meanwhile.
    set(&process, "PATCH /backends/b0", &json!({"weight": null}));
    std::fs::write(&file, whole(&config(", weight: 1"))).unwrap();
    let edited = text(&process);
    let (code, _, err) = save(&process, &[]);
    assert_eq!(code, Some(1));
    assert!(err.contains("is not what was read last"), "{err}");
    assert_eq!(text(&process), edited);
    assert!(process.hang_up().contains("reloaded: nothing differs"));
    assert_eq!(save(&process, &[]).0, Some(0));
    assert_eq!(seen(&process), ["b0 1 up", "b1 5 up"]);
}

#[test]
fn a_watched_file_behind_a_link_is_replaced_and_not_read_twice() {
    let backends = fakes(2);
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real.yaml"), folder.path().join("evenkeel.yaml"));
    let config = of(&backends, "");
    std::fs::write(&real, format!("{config}access_log: {{path: access.log, format: json}}\n")).unwrap();
    std::fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
    symlink("real.yaml", &link).unwrap();
    let process = Process::start_in(folder, 1);
    set(&process, "PATCH /backends/b1", &json!({"weight": 5}));
    let (status, answer) = process.ask("POST /api/v1/overlay/save", b"");
    assert_eq!(status, 200, "{answer}");
    let lines: Vec<&str> = answer["files"][0]["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["sign"].as_str().unwrap())
        .collect();
    assert_eq!((lines, answer["saved"][0]["field"].as_str()), (vec!["-", "+"], Some("weight")));
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&link).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(std::fs::read_to_string(&real).unwrap().contains(", weight: 5}"));
    // The next edit is read, and nothing was before it.
    std::fs::write(&real, std::fs::read_to_string(&real).unwrap().replace("weight: 5", "weight: 6")).unwrap();
    eventually("the edit is read", || !process.reloads().is_empty());
    let reloads = process.reloads();
    assert!(reloads.len() == 1 && reloads[0].contains("weight: 5 -> 6"), "{reloads:#?}");
    assert_eq!(seen(&process), ["b0 1 up", "b1 6 up"]);
}
