//! Keys of sticky cookies: told to nobody, and that one is made is told to everybody.

use rustix::process::Signal;

use super::{Started, evenkeel, outcome};

const SECRET: &str = "correct-horse-battery";

/// A folder with a config; two targets are named on purpose, so that each is told once.
fn folder(sticky: [&str; 2]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let target = |name: &str, sticky: &str| {
        let backends = "{url: http://127.0.0.1:1}, {url: http://127.0.0.1:2}";
        format!(
            "  {name}: {{protocol: http, listener: 0, health_check: off, sticky: {sticky}, backends: [{backends}]}}\n"
        )
    };
    let text =
        format!("workers: 1\ntargets:\n{}{}", target("kept-a", sticky[0]), target("kept-b", sticky[1]));
    let config = folder.path().join("evenkeel.yaml");
    std::fs::write(&config, text).unwrap();
    let config = config.to_str().unwrap().to_owned();
    (folder, config)
}

#[test]
fn check_shows_no_key_and_warns_of_one_that_is_made() {
    let (_folder, config) = folder(["{}", &format!("{{key: {SECRET}}}")]);
    let (code, out, err) = outcome(&["check", "--all", "--config", &config]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let row = |path: &str| out.lines().find(|line| line.starts_with(path)).unwrap_or_default().to_owned();
    assert!(row("targets.kept-a.sticky.key").contains("made at the start, lasts until the restart"), "{out}");
    assert!(row("targets.kept-b.sticky.key").contains("(hidden)"), "{out}");
    assert!(!out.contains(SECRET), "{out}");
    let warnings: Vec<&str> = out.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("the sticky cookies of kept-a last until the restart"), "{warnings:?}");
}

#[test]
fn a_start_with_made_keys_warns_once_for_each_target() {
    let (_folder, config) = folder(["{}", "{cookie: app}"]);
    let mut lb = Started::new(evenkeel(&["--config", &config]));
    lb.wait_for("listening");
    lb.wait_for("listening");
    lb.signal(Signal::TERM);
    assert_eq!(lb.exit_code(), Some(0));
    // To the end of its output.
    let said: Vec<String> = lb.seen.drain(..).chain(lb.lines.iter()).collect();
    for name in ["kept-a", "kept-b"] {
        let told: Vec<&String> =
            said.iter().filter(|line| line.contains("`sticky`") && line.contains(name)).collect();
        assert!(told.len() == 1 && told[0].contains("WARN"), "{name}: {said:#?}");
    }
}

#[test]
fn a_start_with_keys_of_its_own_warns_of_nothing() {
    let key = format!("{{key: {SECRET}}}");
    let (_folder, config) = folder([&key, &key]);
    let mut lb = Started::new(evenkeel(&["--config", &config]));
    lb.wait_for("listening");
    lb.wait_for("listening");
    lb.signal(Signal::TERM);
    assert_eq!(lb.exit_code(), Some(0));
    let said: Vec<String> = lb.seen.drain(..).chain(lb.lines.iter()).collect();
    assert!(!said.iter().any(|line| line.contains("`sticky`") || line.contains(SECRET)), "{said:#?}");
}
