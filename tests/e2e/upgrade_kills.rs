//! Either process of an upgrade is killed, or stands still, at each step.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::json;

use super::support::process::{Process, ask};
use super::support::{Client, eventually, fakes};
use super::upgrade_lab::{Heirs, config, identity, refused, signal};

/// Whether a process stands still.
pub fn stands(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

/// The process that a running one has started, if there is one.
pub fn child_of(process: u32) -> Option<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    let children: Vec<String> = children.collect();
    children.iter().flat_map(|text| text.split_whitespace()).next()?.parse().ok()
}

/// Kills one of the two at a step; says whether somebody serves after it without anybody's help.
fn killed_at(step: &str, kills_old: bool) -> bool {
    let backends = fakes(1);
    let reserved = super::support::port::Reserved::new();
    let port = std::net::SocketAddr::from(([127, 0, 0, 1], reserved.number()));
    let text = config(&backends, "").replace("127.0.0.1:0", &port.to_string());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("evenkeel.yaml"), super::support::process::whole(&text)).unwrap();
    let mut process = Process::start_with(folder, 1, &[("EVENKEEL_UPGRADE_STOP", Path::new(step))]);
    let (old, socket, mut heirs) = (process.id(), process.socket(), Heirs::default());
    // It is there after whatever happens.
    let path = format!("PATCH /api/v1/targets/web/backends/{}", backends[0].addr());
    assert_eq!(ask(&socket, &path, br#"{"weight": 7}"#).0, 200);
    let asking = {
        let socket = socket.clone();
        std::thread::spawn(move || {
            let mut socket = UnixStream::connect(socket).unwrap();
            let head = "POST /api/v1/upgrade HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
            socket.write_all(head.as_bytes()).unwrap();
            // Whoever is killed says nothing.
            let _ = socket.read_to_end(&mut Vec::new());
        })
    };
    let mut new = None;
    eventually(&format!("it comes to {step}"), || {
        // Once it stands the other one is there, if it ever is.
        let stands_old = step.starts_with("old") && stands(old);
        new = child_of(old).or(new);
        new.is_some_and(|new| stands_old || !step.starts_with("old") && stands(new))
    });
    let new = new.unwrap();
    heirs.0.push(new);
    signal(if kills_old { old } else { new }, rustix::process::Signal::KILL);
    signal(if kills_old { new } else { old }, rustix::process::Signal::CONT);
    asking.join().unwrap();
    let serves = || TcpStream::connect(port).is_ok() && Client::connect(port).get("/").status == 200;
    let is_there = |process: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X']) && !rest.is_empty())
    };
    // One of them serves, or none is there before long.
    let mut goes_on = false;
    eventually(&format!("somebody serves after {step}, or nobody is there"), || {
        let left = if kills_old { new } else { old };
        goes_on = is_there(left) && identity(&socket) == Some(left) && serves();
        goes_on || !is_there(left)
    });
    if !goes_on {
        // A supervisor starts it again.
        process = Process::start_in(process.kill(), 1);
        assert!(serves(), "{step}");
    }
    let (_, overlay) = ask(&process.socket(), "GET /api/v1/overlay", b"");
    assert_eq!(overlay["entries"].as_array().map(Vec::len), Some(1), "{step}: {overlay}");
    goes_on
}

#[test]
fn one_that_is_not_ready_in_time_is_given_up() {
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    let text = super::support::process::whole(&config(&backends, ""));
    std::fs::write(folder.path().join("evenkeel.yaml"), text).unwrap();
    let process = Process::start_with(folder, 1, &[("EVENKEEL_UPGRADE_STOP", Path::new("new:started"))]);
    let why = refused(&process, &json!({}));
    assert!(why.contains("not ready within 10 seconds"), "{why}");
    assert_eq!(child_of(process.id()), None, "it was ended");
    assert_eq!(Client::connect(process.address("web")).get("/").status, 200);
}

const OLD_STEPS: [&str; 6] = ["old:started", "old:greeted", "old:given", "old:ready", "old:over", "old:told"];
const NEW_STEPS: [&str; 6] =
    ["new:started", "new:greeted", "new:taken", "new:serving", "new:ready", "new:alone"];

#[test]
fn whichever_of_the_two_is_killed_at_whatever_step_service_goes_on_or_the_next_start_finds_all() {
    let of = |kills_old: bool| -> Vec<&str> {
        let steps = OLD_STEPS.into_iter().chain(NEW_STEPS);
        steps.filter(|step| killed_at(step, kills_old)).collect()
    };
    // The new one is killed: until it has said that it serves, the old one goes on. It may also be gone just when that has been heard.
    let mut goes_on = of(false);
    goes_on.retain(|step| !["old:ready", "new:ready"].contains(step));
    let until_ready =
        ["old:started", "old:greeted", "old:given", "new:started", "new:greeted", "new:taken", "new:serving"];
    assert_eq!(goes_on, until_ready);
    // The old one is: the new one goes on as soon as it has everything. It may all lie there already when the new one has greeted.
    let mut goes_on = of(true);
    goes_on.retain(|step| *step != "new:greeted");
    let from_given = [
        "old:given",
        "old:ready",
        "old:over",
        "old:told",
        "new:taken",
        "new:serving",
        "new:ready",
        "new:alone",
    ];
    assert_eq!(goes_on, from_given);
}

/// Found by an attack: a block needs no turn, and one that came when the new process had read the journal was answered and forgotten.
#[test]
fn whoever_is_blocked_while_two_processes_change_places_stays_so_or_nobody_was_told_so() {
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    let text = super::support::process::whole(&config(&backends, ""));
    std::fs::write(folder.path().join("evenkeel.yaml"), text).unwrap();
    let process = Process::start_with(folder, 1, &[("EVENKEEL_UPGRADE_STOP", Path::new("new:serving"))]);
    let (old, socket, mut heirs) = (process.id(), process.socket(), Heirs::default());
    let (upgraded, other) = (socket.clone(), socket.clone());
    let asking = std::thread::spawn(move || ask(&upgraded, "POST /api/v1/upgrade", b"{}"));
    let mut new = None;
    eventually("it has read what there is", || {
        new = child_of(old).or(new);
        new.is_some_and(stands)
    });
    heirs.0.extend(new);
    let blocking = std::thread::spawn(move || {
        ask(&other, "POST /api/v1/access/blocked/entries", br#"{"network": "192.0.2.7"}"#)
    });
    signal(new.unwrap(), rustix::process::Signal::CONT);
    let (status, answer) = asking.join().unwrap();
    assert_eq!(status, 200, "{answer}");
    let (told, said) = blocking.join().unwrap();
    eventually("the new one answers", || identity(&socket) == new);
    let (_, blocks) = ask(&socket, "GET /api/v1/access/blocked/entries", b"");
    let count = blocks["entries"].as_array().map_or(usize::MAX, Vec::len);
    assert_eq!(count, usize::from(told < 300), "{told} {said}: {blocks}");
}
