//! What `check` and a start that fails say.

use std::net::TcpListener;

use super::outcome;

#[test]
fn a_taken_address_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, _, err) = outcome(&["--backends", "http://127.0.0.1:1", "--port", &port]);
    assert_eq!(code, Some(1));
    assert!(err.contains("--port: listener default: can't bind ") && err.contains("in use"), "{err}");
    // It is this process that has it, and nothing hides it from a child.
    let holder = format!("(process {})\n  hint: end that process, or write another port", std::process::id());
    assert!(err.contains(&format!("127.0.0.1:{port}")) && err.contains(&holder), "{err}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("evenkeel.yaml");
    let backends = "backends: [{host: 127.0.0.1, port: 1}]";
    std::fs::write(&file, format!("targets:\n  web:\n    listener: [0, {port}]\n    {backends}\n")).unwrap();
    let (code, _, err) = outcome(&[file.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(err.contains(&format!("{}:3: listener web: can't bind", file.display())), "{err}");
}

#[test]
fn check_of_a_small_file_fits_a_screen() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("evenkeel.yaml");
    let text = "targets:\n  web:\n    protocol: http\n    listener: 8080\n    backends:\n      \
                - {host: 127.0.0.1, port: 8001}\n      - {host: 127.0.0.1, port: 8002}\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let (code, short, _) = outcome(&["check", file]);
    assert_eq!(code, Some(0));
    assert!(short.lines().count() < 24, "{short}");
    assert!(short.contains("targets.web.listener") && !short.contains("  default"), "{short}");
    let (code, long, _) = outcome(&["check", file, "--all"]);
    assert_eq!(code, Some(0));
    assert!(long.contains("targets.web.timeouts.connect") && long.contains("  default"), "{long}");
    assert!(short.ends_with("the config is valid\n") && long.ends_with("the config is valid\n"));
}
