//! What a newcomer types does what it means, or names the next step in one line.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::{PROGRAM, Started};

const CONFIG: &str = "targets:\n  web:\n    listener: 0\n    backends:\n      - {host: 127.0.0.1, port: 1}\n";

/// Runs evenkeel in `folder` with `typed`, words with blanks between them: code, output, errors.
fn run(folder: &Path, typed: &str, input: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder).args(typed.split_whitespace());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Who does not read it may end before it is written.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.yaml"), CONFIG).unwrap();
    std::fs::write(folder.path().join("g.yml"), CONFIG).unwrap();
    std::fs::create_dir(folder.path().join("conf")).unwrap();
    std::fs::write(folder.path().join("conf/evenkeel.yaml"), CONFIG).unwrap();
    folder
}

/// What each of these prints, and how it ends.
const TYPED: &[(&str, i32, &str)] = &[
    ("check f.yaml", 0, "the config is valid"),
    ("-c f.yaml check", 0, "the config is valid"),
    ("check -c f.yaml", 0, "the config is valid"),
    ("check --config=f.yaml", 0, "the config is valid"),
    ("check -", 0, "the config is valid"),
    ("-c - check", 0, "the config is valid"),
    ("validate f.yaml", 0, "the config is valid"),
    ("test f.yaml", 0, "the config is valid"),
    ("-t -c f.yaml", 0, "the config is valid"),
    ("check", 2, "neither a config file nor backends are given"),
    ("", 2, "evenkeel demo"),
    ("help", 0, "Usage: evenkeel"),
    ("help check", 0, "evenkeel check evenkeel.yaml"),
    ("version", 0, "evenkeel 0."),
    ("-v", 0, "evenkeel 0."),
    ("-V", 0, "evenkeel 0."),
    ("chekc f.yaml", 2, "did you mean `evenkeel check`?"),
    ("frobnicate", 2, "`evenkeel --help` lists the commands"),
    ("-f f.yaml -t", 0, "the config is valid"),
    ("-tc f.yaml", 0, "the config is valid"),
    ("-c -f f.yaml", 0, "the config is valid"),
    ("--check --conf f.yaml", 0, "the config is valid"),
    ("-s reload", 2, "`evenkeel reload` reads the config again"),
    ("-f f.yaml -D", 2, "it stays in the foreground"),
    ("-f f.yaml -p 80", 2, "write `--port PORT`"),
    ("show", 2, "`evenkeel status` shows every listener"),
    ("stop", 2, "`kill PID`"),
    ("conf", 1, "there is `conf/evenkeel.yaml`"),
    ("missing.yaml", 1, "missing.yaml: this config file does not exist"),
    ("f.yml", 1, "there is `f.yaml`"),
    ("check g.yaml", 1, "there is `g.yml`"),
    ("--confg f.yaml", 2, "--config"),
    ("f.yaml --log-level loud", 2, "command line: `--log-level` is `loud`"),
];

#[test]
fn twenty_things_that_newcomers_type_have_an_answer() {
    let folder = folder();
    for (typed, code, said) in TYPED {
        let (ended, out, err) = run(folder.path(), typed, CONFIG);
        assert_eq!(ended, Some(*code), "evenkeel {typed}\n{out}{err}");
        assert!(format!("{out}{err}").contains(said), "evenkeel {typed}\n{out}{err}");
        if *code == 2
            && !typed.starts_with('-')
            && !typed.is_empty()
            && !said.contains("neither")
            && !typed.starts_with("f.")
        {
            assert_eq!(err.trim_end().lines().count(), 1, "evenkeel {typed}\n{err}");
        }
    }
}

#[test]
fn a_config_without_an_end_was_read_for_ever() {
    let folder = folder();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let pipe = pipe.display().to_string();
    for path in ["/dev/zero", &pipe] {
        let (code, _, err) = run(folder.path(), &format!("check {path}"), "");
        assert!(code == Some(1) && err.contains("this is no file but a device, a pipe or a socket"), "{err}");
        assert!(err.contains("`program | evenkeel -`"), "{err}");
    }
    let mut endless = Command::new(PROGRAM);
    endless.args(["check", "-"]).stdin(std::fs::File::open("/dev/zero").unwrap());
    let output = endless.output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && err.contains("larger than 16MiB"), "{err}");
}

#[test]
fn what_somebody_writes_is_read_through_a_pipe() {
    let folder = folder();
    let (code, out, err) = run(folder.path(), "check /dev/stdin", CONFIG);
    assert!(code == Some(0) && out.contains("standard input:3"), "{out}{err}");
    let mut shell = Command::new("bash");
    shell.current_dir(folder.path()).args(["-c", &format!("{PROGRAM} check <(cat f.yaml)")]);
    let output = shell.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_file_is_served_however_it_is_named() {
    let folder = folder();
    let serve = |typed: &str| {
        let mut command = Command::new(PROGRAM);
        command.current_dir(folder.path()).args(typed.split_whitespace());
        let mut started = Started::new(command);
        started.wait_for("listening");
        started.signal(Signal::TERM);
        assert_eq!(started.exit_code(), Some(0), "evenkeel {typed}");
    };
    for typed in ["f.yaml", "run f.yaml", "start f.yaml", "-c f.yaml", "--config=f.yaml"] {
        serve(typed);
    }
    // Without a name it is the file of the usual one.
    std::fs::write(folder.path().join("evenkeel.yaml"), CONFIG).unwrap();
    for typed in ["", "run"] {
        serve(typed);
    }
    let (code, out, _) = run(folder.path(), "check", "");
    assert!(code == Some(0) && out.contains("evenkeel.yaml:3"), "{out}");
}
