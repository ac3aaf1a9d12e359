//! Logs and the shutdown's times, changed in a process that serves.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, kill_process};

use super::logs::{Lab, ask, has, lines};
use super::{evenkeel, eventually};

/// Says that it is over, also where an assertion fails.
struct EndAtDrop<'a>(&'a AtomicBool);

impl Drop for EndAtDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn an_access_log_that_goes_elsewhere_loses_no_line_under_traffic() {
    let to = |name: &str| format!("access_log: {{path: {name}, format: '{{path}}'}}");
    let mut lab = Lab::start(&to("0.log"));
    let stop = AtomicBool::new(false);
    let asked = std::thread::scope(|scope| {
        let (mut busy, stop) = (lab.client(), &stop);
        let traffic = scope.spawn(move || {
            let numbers = (0..).take_while(|_| !stop.load(Ordering::Relaxed));
            numbers.map(|number: u32| ask(&mut busy, &format!("/n/{number}"), "")).count()
        });
        // However this ends, the traffic does.
        let end = EndAtDrop(stop);
        let mut client = lab.client();
        for round in 0..5 {
            let before = lab.file(&format!("{round}.log"));
            ask(&mut client, &format!("/before/{round}"), "");
            let said = lab.reload(&to(&format!("{}.log", round + 1)));
            assert!(said.contains("~ access_log.path: "), "{said}");
            ask(&mut client, &format!("/after/{round}"), "");
            eventually("the old one has its rest", || has(&before, &format!("/before/{round}")));
        }
        drop(end);
        traffic.join().unwrap()
    });
    let files: Vec<_> = (0..=5).map(|round| lab.file(&format!("{round}.log"))).collect();
    lab.lb.signal(Signal::TERM);
    assert_eq!(lab.lb.exit_code(), Some(0));
    for (round, file) in files.iter().enumerate().take(5) {
        assert!(has(file, &format!("/before/{round}")), "{round}");
        assert!(!has(file, &format!("/after/{round}")), "{round}: a finished reload is in force");
    }
    let mut all: Vec<String> = files.iter().flat_map(|file| lines(file)).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), asked + 10, "each line once");
}

#[test]
fn an_access_log_is_turned_on_and_off_and_has_another_form_and_the_signal_means_the_one_in_force() {
    let mut lab = Lab::start("access_log: off");
    let mut client = lab.client();
    ask(&mut client, "/0", "");
    lab.reload("access_log: {path: a.log, format: '{path}'}");
    ask(&mut client, "/1", "");
    lab.reload("access_log: {path: a.log, format: '<{path}>'}");
    ask(&mut client, "/2", "");
    let (log, moved) = (lab.file("a.log"), lab.file("moved.log"));
    eventually("both are there", || lines(&log) == ["/1", "</2>"]);
    std::fs::rename(&log, &moved).unwrap();
    lab.lb.signal(Signal::USR1);
    lab.lb.wait_for("reopened");
    ask(&mut client, "/3", "");
    eventually("it goes on in a new file", || lines(&log) == ["</3>"]);
    lab.reload("access_log: off");
    ask(&mut client, "/4", "");
    lab.lb.signal(Signal::USR1);
    lab.lb.wait_for("no access log file");
    lab.end();
}

#[test]
fn an_access_log_that_can_not_be_opened_refuses_the_reload_at_its_line() {
    let mut lab = Lab::start("access_log: {path: a.log, format: '{path}'}");
    std::fs::create_dir(lab.file("b.log")).unwrap();
    let said = lab.reload("logging: debug\naccess_log: {path: b.log, format: '<{path}>'}");
    assert!(said.contains("reload refused, nothing has changed"), "{said}");
    assert!(said.contains("evenkeel.yaml:2") && said.contains("/b.log"), "{said}");
    ask(&mut lab.client(), "/kept", "");
    let log = lab.file("a.log");
    eventually("the old one goes on", || lines(&log) == ["/kept"]);
    lab.end();
}

#[test]
fn level_and_form_of_events_change_and_the_line_that_says_so_is_seen_in_the_new_form() {
    let mut lab = Lab::start("logging: info");
    let said = lab.reload("log_format: json\nlogging: error");
    assert!(said.starts_with('{') && said.contains("info -> error"), "{said}");
    let said = lab.reload("bad: 1");
    assert!(said.starts_with('{') && said.contains("unknown key `bad`"), "{said}");
    let said = lab.reload("logging: debug");
    assert!(!said.starts_with('{') && said.contains("error -> debug"), "{said}");
    let swapped = lab.lb.wait_for("is in force");
    // How many somebody holds at this moment is not for this test.
    assert!(swapped.contains("DEBUG") && swapped.contains(" alive"), "{swapped}");
    lab.end();
}

#[test]
fn a_level_that_a_flag_has_said_stays_over_reloads() {
    let mut lab = Lab::spawn(tempfile::tempdir().unwrap(), "logging: error", &["--log-level", "debug"]);
    lab.lb.wait_for("listening");
    let said = lab.reload("logging: warn");
    assert!(said.contains("nothing differs"), "{said}");
    lab.lb.wait_for("is in force");
    lab.lb.signal(Signal::TERM);
    assert_eq!(lab.lb.exit_code(), Some(0));
}

#[test]
fn the_times_of_the_shutdown_are_those_of_the_latest_config() {
    let mut lab = Lab::start("shutdown_delay: 1h\nshutdown_timeout: 1h");
    let said = lab.reload("shutdown_delay: 30ms\nshutdown_timeout: 20ms");
    assert!(said.contains("shutdown_delay") && said.contains("shutdown_timeout"), "{said}");
    let mut client = lab.client();
    ask(&mut client, "/", "");
    // Its body never comes.
    client.write_all(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n12345").unwrap();
    lab.lb.signal(Signal::TERM);
    lab.lb.wait_for("`shutdown_delay` is over");
    lab.lb.wait_for("stopped");
    lab.lb.exit_code();
}

/// The config comes slowly here; one with many files or names may take as long.
#[test]
fn a_hangup_before_it_serves_does_not_end_it() {
    let mut command = evenkeel(&["-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    eventually("it has said what becomes of the signal", || {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 1 == 1
    });
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    let config =
        "targets: {web: {listener: 127.0.0.1:0, health_check: off, backends: [{host: 127.0.0.1, port: 1}]}}";
    child.stdin.take().unwrap().write_all(config.as_bytes()).unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let serves = said.take(20).any(|line| line.contains("listening "));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(serves);
}
