//! `evenkeel log`, also where the process that is followed is started anew.

use rustix::process::Signal;

use super::{Started, evenkeel, eventually, outcome};

/// A process with its socket in `folder`, and a target without a backend that answers.
fn serve(folder: &std::path::Path, level: &str) -> Started {
    let config = folder.join("evenkeel.yaml");
    let socket = folder.join("admin.sock");
    std::fs::write(
        &config,
        format!(
            "watch: off\nshutdown_delay: 300ms\nlogging: {level}\nstate_dir: {}\nadmin: {{socket: {}}}\ntargets: {{web: {{protocol: http, listener: 127.0.0.1:0, \
             health_check: {{interval: 100ms, fall: 1}}, backends: [{{name: b1, host: 127.0.0.1, port: 1}}]}}}}\n",
            folder.join("state").display(),
            socket.display()
        ),
    )
    .unwrap();
    Started::new(evenkeel(&["--config", config.to_str().unwrap()]))
}

#[test]
fn the_log_has_what_the_level_keeps_out_of_the_log_and_each_line_is_one_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = serve(folder.path(), "error");
    let told = process.wait_for("target web: no backend left");
    let socket = folder.path().join("admin.sock");
    let log = |words: &[&str]| outcome(&[&["log", "--socket", socket.to_str().unwrap()], words].concat());
    let mut asked = log(&[]);
    // A line is written before it is kept.
    eventually("what was written is kept", || {
        asked = log(&[]);
        asked.1.contains("Z ERROR ")
    });
    let (code, text, said) = asked;
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.iter().any(|line| line.contains("Z  INFO listening 127.0.0.1:")), "{text}");
    assert!(lines.iter().any(|line| line.contains("Z  WARN backend web/b1 is down: ")), "{text}");
    let last = lines.iter().find(|line| line.contains("Z ERROR ")).unwrap();
    // But for the time, which has fewer figures.
    assert_eq!(last.split_once('Z').unwrap().1, told.split_once('Z').unwrap().1);

    let (code, text, _) = log(&["--json", "--kind", "backend_down,target_down", "-n", "1"]);
    let event: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &event["kind"], &event["object"]), (Some(0), &"target_down".into(), &"web".into()));
    let (code, _, said) = log(&["--kind", "backend_dwon"]);
    assert_eq!(code, Some(2));
    assert_eq!(said, "there is no kind `backend_dwon` of events; did you mean `backend_down`?\n");
    let (code, text, _) = log(&["-n", "0"]);
    assert_eq!((code, text.as_str()), (Some(0), ""));
}

#[test]
fn following_goes_on_with_a_process_in_the_place_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = serve(folder.path(), "info");
    process.wait_for("target web: no backend left");
    let socket = folder.path().join("admin.sock");
    let (code, _, said) = outcome(&["log", "-f", "--socket", "/nobody/is/here.sock"]);
    assert!(code == Some(2) && said.contains("/nobody/is/here.sock"), "{said}");
    let mut log = Started::new(evenkeel(&["log", "-f", "-n", "9", "--socket", socket.to_str().unwrap()]));
    log.wait_for("target web: no backend left");
    // It follows as soon as it is told of something.
    process.signal(Signal::HUP);
    log.wait_for("reloaded: nothing differs");
    process.signal(Signal::TERM);
    log.wait_for_all(&[
        "SIGTERM: serving on for 300ms",
        "the process does not answer; trying again until Ctrl-C",
    ]);
    assert_eq!(process.exit_code(), Some(0));
    // What comes first of its other events is a matter of chance.
    let mut process = serve(folder.path(), "info");
    log.wait_for("room for ");
    log.wait_for("target web: no backend left");
    process.signal(Signal::KILL);
    let _ = process.exit_code();
    let mut process = serve(folder.path(), "warn");
    log.wait_for("room for ");
    process.wait_for("target web: no backend left");
    log.signal(Signal::INT);
    assert_eq!(log.exit_code(), None, "it is ended by the signal");
}
