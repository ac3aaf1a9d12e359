//! The commands that change something by hand, as people type them.

use fake_backend::{Behaviour, Running};

use super::by_hand::{of, seen};
use super::support::process::Process;
use super::support::{Client, eventually, fakes};

/// Exit code and standard output, or standard error where nothing was printed.
fn run(process: &Process, line: &str) -> (Option<i32>, String) {
    let words: Vec<&str> = line.split(' ').collect();
    let output = process.command(&words);
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), if stdout.is_empty() { stderr } else { stdout })
}

/// A process that is killed can't take its link away.
#[test]
fn links_that_lead_nowhere_were_left_for_ever() {
    use std::os::unix::fs::{DirBuilderExt as _, symlink};
    let backends = fakes(1);
    let process = begin(&backends);
    let link = |name: &str, to: &std::path::Path| {
        let folder = process.folder().join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
        symlink(to, folder.join("admin.sock")).unwrap();
        folder
    };
    let dead = process.folder().join("dead.sock");
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    let gone =
        [link("evenkeel-1-00000001", &dead), link("evenkeel-1-00000002", &process.folder().join("none"))];
    let alive = link("evenkeel-1-00000003", &process.socket());
    let (code, text) = run(&process, "status");
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(gone.map(|folder| folder.exists()), [false, false]);
    assert!(alive.join("admin.sock").exists() && dead.exists());
}

fn begin(backends: &[Running]) -> Process {
    Process::start(&of(backends, ""), 1)
}

#[test]
fn each_command_does_what_it_says_and_diff_shows_it() {
    let backends = fakes(3);
    let process = begin(&backends[..2]);
    let done = |line: &str, said: &str| {
        let (code, text) = run(&process, line);
        assert_eq!(code, Some(0), "{line}: {text}");
        assert!(text.contains(said), "{line}: {text}");
    };
    assert_eq!(run(&process, "diff"), (Some(0), "nothing is changed by hand\n".into()));
    done("drain web/b1", "~ backend web/b1 state: up -> drain (by hand, uid ");
    done("down web/b1 --for 1h", "~ backend web/b1 state: drain -> down (by hand, uid ");
    done("weight web/b0 7", "~ backend web/b0 weight: 1 -> 7 (by hand, uid ");
    let url = format!("http://127.0.0.1:{}", backends[2].port());
    done(&format!("add web {url} --name b2 --weight 3"), "+ backend web/b2 (by hand, uid ");
    assert_eq!(seen(&process), ["b0 7 up", "b1 1 down", "b2 3 up"]);
    let (code, text) = run(&process, "diff");
    assert_eq!((code, text.lines().count()), (Some(1), 3), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("~ web/b1 state: up -> down (default; by hand, uid ")
            && lines[0].contains(", over in "),
        "{text}"
    );
    assert!(lines[1].starts_with("~ web/b0 weight: 1 -> 7 (default; by hand, uid "), "{text}");
    assert!(lines[2].starts_with(&format!("+ web/b2: {url} (by hand, uid ")), "{text}");
    done("ready web/b1", "~ backend web/b1 state: down -> up (default)");
    done("ready web/b1", "nothing differs for web/b1");
    done("weight web/b0 file", "~ backend web/b0 weight: 7 -> 1 (default)");
    done("remove web/b2 --now", "- backend web/b2");
    done("remove web/b1", "- backend web/b1");
    let (_, text) = run(&process, "diff");
    assert!(text.starts_with("- web/b1: 127.0.0.1:"), "{text}");
    assert!(text.contains("/evenkeel.yaml:"), "it has the line of the file: {text}");
    done(&format!("add web http://127.0.0.1:{}", backends[1].port()), "+ backend web/b1");
    assert_eq!(seen(&process), ["b0 1 up", "b1 1 up"]);
}

#[test]
fn as_json_it_is_the_answer_and_what_is_refused_says_why() {
    let backends = fakes(2);
    let process = begin(&backends);
    for (line, key) in [
        ("drain web/b1 --json", "plan"),
        ("down web/b1 --json", "plan"),
        ("ready web/b1 --json", "plan"),
        ("weight web/b1 2 --json", "plan"),
        ("add web http://127.0.0.1:1 --json", "plan"),
        ("remove web/b1 --json", "plan"),
        ("diff --json", "entries"),
    ] {
        let (_, text) = run(&process, line);
        let answer: serde_json::Value =
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{line}: {text}"));
        assert!(!answer[key].is_null(), "{line}: {answer}");
    }
    let failed = |line: &str, code: i32, why: &str| {
        let (found, text) = run(&process, line);
        assert_eq!(found, Some(code), "{line}: {text}");
        assert!(text.contains(why), "{line}: {text}");
    };
    failed("drain web/b7", 1, "there is no backend web/b7");
    failed(&format!("add web http://127.0.0.1:{}", backends[0].port()), 1, "is there twice");
    failed("add web ftp://a", 1, "whose scheme does not exist");
    failed("drain web", 2, "a backend is TARGET/BACKEND");
    failed("weight web/b0 300", 2, "from 0 to 256");
    failed("drain web/b0 --socket /nowhere.sock", 2, "no answer");
}

#[test]
fn a_drain_that_waits_returns_when_nothing_is_under_way() {
    let backends = fakes(2);
    let process = begin(&backends);
    let mut client = Client::connect(process.address("web"));
    backends[0].behave(Behaviour::default().latency(std::time::Duration::from_millis(600)).times(1));
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is under way", || backends[0].requests() + backends[1].requests() == 1);
    let busy = usize::from(backends[1].requests() == 1);
    let (code, text) = run(&process, &format!("drain web/b{busy} --wait"));
    assert_eq!(code, Some(0), "{text}");
    let active =
        process.ask(&format!("GET {}/backends/b{busy}", super::by_hand::WEB), b"").1["active"].clone();
    assert_eq!(active, 0);
    assert_eq!(client.answer().status, 200);
}
