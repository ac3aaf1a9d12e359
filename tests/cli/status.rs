//! `evenkeel status`, as somebody asks who has just been woken.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::{Started, demo_from, eventually, outcome, own_ports};

/// A demo on ports of its own, and where its admin socket is.
fn demo() -> (Started, String) {
    let mut demo = Started::new(demo_from(own_ports()));
    let line = demo.line("admin socket ");
    let socket = line.split("admin socket ").nth(1).unwrap().to_owned();
    (demo, socket)
}

#[test]
fn the_status_of_the_demo_fits_a_terminal_and_names_who_is_ill() {
    let (mut demo, socket) = demo();
    let line = demo.line("make fake-1 ill");
    let fake = line.split('\'').nth(1).unwrap().split('/').next().unwrap().to_owned();
    let status = |object: &[&str]| outcome(&[&["status", "--socket", &socket], object].concat());
    let (mut code, mut text, mut said) = status(&[]);
    eventually("all are up", || {
        (code, text, said) = status(&[]);
        code == Some(0) && text.contains("all targets are up, all backends are up")
    });
    assert_eq!(said, "");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(text.lines().count() <= 33, "four targets fit a window: {text}");
    let (_, web, _) = status(&["web"]);
    assert!(web.lines().count() <= 24, "one target fits any terminal: {web}");
    for word in [
        "web is up for ",
        "api is up for ",
        "tcp is up for ",
        "fake-1 ",
        "tcp-fake-2 ",
        " https ",
        " 33%",
        " 25%",
        " 50%",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }

    let (code, text, _) = status(&["web/fake-1"]);
    assert_eq!(code, Some(0));
    assert!(text.starts_with("web/fake-1 is up for "), "{text}");
    assert!(text.contains("\n* probe     good "), "{text}");
    assert!(text.contains("\n  last probe  good, "), "{text}");

    let (code, json, _) = status(&["tcp", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (code, &json["state"], json["backends"].as_array().unwrap().len()),
        (Some(0), &"up".into(), 2)
    );

    let mut ill = TcpStream::connect(&fake).unwrap();
    ill.write_all(
        b"POST /_fake?health=down HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    )
    .unwrap();
    ill.read_to_end(&mut Vec::new()).unwrap();
    let mut text = String::new();
    eventually("it is down", || {
        let (code, now, _) = status(&["web/fake-1"]);
        text = now;
        code == Some(1)
    });
    assert!(text.starts_with("web/fake-1 is down for ") && text.contains(" (probe)\n"), "{text}");
    let (code, text, _) = status(&["web"]);
    assert_eq!(code, Some(0), "two others serve: {text}");
    assert!(text.contains("\n  ! fake-1 ") && text.contains(" (probe)\n"), "{text}");
}

#[test]
fn what_is_not_there_is_told_with_what_may_have_been_meant() {
    let (_demo, socket) = demo();
    for (object, told) in [
        ("wbe", "there is no target `wbe`; did you mean `web`?"),
        ("x", "there is no target `x`; there are web, api, tcp, udp"),
        ("web/fake1", "target web has no backend `fake1`; did you mean `fake-1`?"),
        ("web/", "`web/` is no TARGET and no TARGET/BACKEND"),
        ("/x", "`/x` is no TARGET and no TARGET/BACKEND"),
    ] {
        let (code, out, said) = outcome(&["status", object, "--socket", &socket]);
        assert_eq!((code, out.as_str(), said.trim_end()), (Some(2), "", told));
    }
    let (code, _, said) = outcome(&["status", "--socket", "/nonexistent/admin.sock"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("/nonexistent/admin.sock: no answer"), "{said}");
}

#[test]
fn completions_ask_the_process_for_names() {
    let (mut demo, socket) = demo();
    demo.line("make fake-1 ill");
    let (code, names, _) = outcome(&["names", "--socket", &socket]);
    let names: Vec<&str> = names.lines().collect();
    assert_eq!(code, Some(0));
    assert_eq!(names[..2], ["web", "web/fake-1"]);
    assert_eq!(names[names.len() - 2..], ["udp/udp-fake-1", "udp/udp-fake-2"]);
    assert_eq!(outcome(&["names", "--socket", "/nonexistent"]), (Some(0), String::new(), String::new()));
    for (shell, asks) in [
        ("bash", "--help $(evenkeel names 2>/dev/null)"),
        ("zsh", "($(evenkeel names 2>/dev/null))"),
        ("fish", "(evenkeel names 2>/dev/null)"),
    ] {
        let (_, script, _) = outcome(&["completions", shell]);
        assert!(script.contains(asks) && !script.contains("__names__"), "{shell}: {script}");
    }
    // As bash does it, with this program in its path.
    let program = std::path::Path::new(super::PROGRAM).parent().unwrap().display().to_string();
    let line = "source /dev/stdin; COMP_WORDS=(evenkeel status web/f); COMP_CWORD=2; \
                _evenkeel evenkeel web/f status; echo ${COMPREPLY[@]}";
    let mut bash = std::process::Command::new("bash");
    let path = format!("{program}:{}", std::env::var("PATH").unwrap());
    bash.args(["-c", line]).env("PATH", path).env("EVENKEEL_SOCKET", &socket);
    let mut bash =
        bash.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let (_, script, _) = outcome(&["completions", "bash"]);
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let said = String::from_utf8(bash.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(said, "web/fake-1 web/fake-2 web/fake-3\n");
}
