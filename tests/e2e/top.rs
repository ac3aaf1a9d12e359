//! `evenkeel top` on a real terminal: what it shows, what keys do, and that the terminal is given back.

use std::cell::RefCell;

use fake_backend::{Behaviour, Running};
use rustix::process::Signal;

use super::by_hand::{of, seen};
use super::support::process::Process;
use super::support::terminal::Terminal;
use super::support::{Client, eventually, fakes};

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (160, 50);
const ESC: &str = "\u{1b}";
const DOWN: &str = "\u{1b}[B";

fn begin(count: usize) -> (Vec<Running>, Process) {
    let backends = fakes(count);
    let process = Process::start(&of(&backends, ""), 1);
    (backends, process)
}

fn top(process: &Process, words: &[&str], size: (u16, u16)) -> Terminal {
    let terminal = Terminal::start(process.folder(), &[&["top"], words].concat(), size, &[]);
    terminal.shows("live");
    terminal
}

/// Marks a backend of the target `web`.
fn mark(terminal: &Terminal, backend: &str) {
    // Its name: the numbers behind it change by themselves.
    let marked = |text: &str| {
        let line = text.lines().find(|line| line.starts_with('>')).unwrap_or_default();
        line.split_whitespace().nth(2).unwrap_or_default().to_owned()
    };
    terminal.press("\u{1b}[H");
    terminal.eventually("the first line", |text| marked(text) == "web");
    let mut at = "web".to_owned();
    while at != backend {
        terminal.press(DOWN);
        let next = RefCell::default();
        terminal.eventually(backend, |text| {
            next.replace(marked(text));
            !next.borrow().is_empty() && *next.borrow() != at
        });
        at = next.into_inner();
    }
}

#[test]
fn it_shows_the_state_and_gives_the_terminal_back() {
    let (_backends, process) = begin(3);
    let mut terminal = top(&process, &[], SMALL);
    terminal.shows("All is well · 3 of 3 backends get requests");
    let lines: Vec<String> = terminal.text().lines().map(str::to_owned).collect();
    assert!(lines[0].starts_with(" evenkeel ") && lines[0].ends_with("● live"), "{lines:#?}");
    assert!(lines[3].starts_with("   NAME") && lines[3].ends_with("WHY"), "{lines:#?}");
    assert!(lines[4].starts_with("> ● web ") && lines[5].starts_with("    ● b0 "), "{lines:#?}");
    assert!(!terminal.is_given_back() && terminal.has_colours());
    let mut client = Client::connect(process.address("web"));
    // Rates are of each second, so it goes on until one is seen.
    terminal.eventually("a rate", |_| {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.answer().status, 200);
        let line = terminal.line_with("● web ").unwrap_or_default();
        let figures: Vec<&str> = line.split_whitespace().collect();
        figures.get(4).and_then(|rate| rate.parse::<f64>().ok()).is_some_and(|rate| rate > 0.0)
    });
    terminal.press("q");
    assert_eq!(terminal.end().code(), Some(0));
    eventually("what it has written is read", || terminal.is_given_back());
}

#[test]
fn a_drain_is_done_after_a_yes_and_nothing_after_a_no() {
    let (_backends, process) = begin(3);
    let terminal = top(&process, &[], SMALL);
    mark(&terminal, "b1");
    terminal.press("d");
    terminal.shows("drains web/b1: 2 of 3 backends left, nothing is under way on it");
    terminal.shows("evenkeel drain web/b1");
    terminal.press("n");
    terminal.shows("nothing was done");
    assert_eq!(seen(&process), ["b0 1 up", "b1 1 up", "b2 1 up"]);
    terminal.press("dy");
    terminal.shows("done: ~ backend web/b1 state: up -> drain (by hand");
    assert_eq!(seen(&process), ["b0 1 up", "b1 1 drain", "b2 1 up"]);
    terminal.eventually("the state", |text| text.contains("◐ b1") && text.contains("2/3 up"));
    terminal.shows("b1 of web taken out by hand");
    terminal.press("u");
    terminal.shows("takes back that web/b1 is draining");
    terminal.press("y");
    terminal.shows("done: ~ backend web/b1 state: drain -> up");
    terminal.press("xy");
    terminal.shows("done: ~ backend web/b1 state: up -> down");
    assert_eq!(seen(&process), ["b0 1 up", "b1 1 down", "b2 1 up"]);
    terminal.eventually("it is down", |text| text.contains("✕ b1"));
}

#[test]
fn what_is_under_way_is_counted_and_what_is_refused_is_told() {
    let (backends, process) = begin(2);
    let terminal = top(&process, &[], SMALL);
    let slow = Behaviour::default().latency(std::time::Duration::from_secs(30));
    backends.iter().for_each(|backend| backend.behave(slow.clone().times(1)));
    let mut client = Client::connect(process.address("web"));
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is under way", || backends[0].requests() + backends[1].requests() == 1);
    let busy = format!("b{}", usize::from(backends[1].requests() == 1));
    mark(&terminal, &busy);
    terminal.press("d");
    terminal.shows("1 of 2 backends left, 1 request under way will finish");
    // Meanwhile somebody takes it away.
    let (status, _) = process.ask(&format!("DELETE {}/backends/{busy}?drain=0s", super::by_hand::WEB), b"");
    assert_eq!(status, 200);
    terminal.press("y");
    terminal.shows(&format!("refused: web/{busy} was removed by hand"));
}

#[test]
fn filter_sort_detail_weight_and_help() {
    let (_backends, process) = begin(3);
    let terminal = top(&process, &[], SMALL);
    terminal.press("/b2");
    terminal.eventually("the others are gone", |text| text.contains("● b2") && !text.contains("● b1"));
    terminal.press("\r");
    terminal.shows("filter: b2");
    terminal.press(ESC);
    terminal.shows("● b1");
    terminal.press("s");
    terminal.shows("sort: req/s");
    terminal.press("r");
    terminal.shows("sort: req/s (r)");
    terminal.press("rsssss");
    terminal.shows("sort: name");
    mark(&terminal, "b2");
    terminal.press("\r");
    terminal.shows("   commands          evenkeel status web/b2");
    terminal.press("w7\r");
    terminal.shows("weighs web/b2: 1 -> 7, so of new clients' requests it gets about 78%");
    terminal.shows("evenkeel weight web/b2 7");
    terminal.press("y");
    terminal.shows("done: ~ backend web/b2 weight: 1 -> 7 (by hand");
    assert_eq!(seen(&process), ["b0 1 up", "b1 1 up", "b2 7 up"]);
    terminal.shows("   weight            7, 78% of new clients' requests");
    terminal.press("wfy");
    terminal.shows("weight: 7 -> 1");
    terminal.press(ESC);
    terminal.shows("NAME");
    terminal.press("?");
    terminal.shows("Any key goes back");
    terminal.press("q");
    terminal.shows("NAME");
    // All of it is drawn anew, and keys are taken as before.
    terminal.press("\u{c}");
    terminal.press("p");
    terminal.shows("= held, Space goes on");
    terminal.resize(LARGE);
    terminal.shows("LAST 30 S");
    terminal.shows("LISTENER");
}

#[test]
fn each_end_gives_the_terminal_back() {
    let (_backends, process) = begin(1);
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let mut terminal = top(&process, &[], SMALL);
        terminal.signal(signal);
        assert_eq!(terminal.end().code(), Some(code));
        eventually("what it has written is read", || terminal.is_given_back());
    }
    let mut terminal = top(&process, &[], SMALL);
    terminal.press("\u{3}");
    assert_eq!(terminal.end().code(), Some(0));
    eventually("what it has written is read", || terminal.is_given_back());
}

#[test]
fn it_goes_on_with_a_process_that_was_started_anew() {
    let (_backends, process) = begin(2);
    let terminal = top(&process, &["-c", "evenkeel.yaml"], SMALL);
    terminal.shows("All is well");
    let folder = process.kill();
    terminal.shows("Nothing is heard from evenkeel any more; trying again");
    terminal.shows("no news for ");
    let process = Process::start_in(folder, 1);
    terminal.shows("evenkeel was started anew: process ");
    terminal.eventually("it is live", |text| text.contains("● live") && text.contains("All is well"));
    mark(&terminal, "b0");
    terminal.press("d");
    terminal.shows("evenkeel drain web/b0 -c evenkeel.yaml");
    terminal.press("y");
    terminal.shows("done: ");
    assert_eq!(seen(&process), ["b0 1 drain", "b1 1 up"]);
}

#[test]
fn without_colours_and_without_unicode() {
    let (_backends, process) = begin(2);
    for (words, variables) in [
        (&["top", "--no-color", "--ascii"][..], &[][..]),
        (&["top"], &[("NO_COLOR", "1"), ("LC_ALL", "C")]),
        (&["top"], &[("TERM", "dumb"), ("LC_ALL", ""), ("LC_CTYPE", "POSIX")]),
    ] {
        let terminal = Terminal::start(process.folder(), words, SMALL, variables);
        terminal.shows("o live");
        terminal.shows("    o b0");
        assert!(!terminal.has_colours() && terminal.bytes().is_ascii(), "{words:?}");
    }
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let (_backends, process) = begin(2);
    let done = process.command(&["top"]);
    assert_eq!(done.status.code(), Some(2));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(
        said.contains("standard output is not a terminal") && said.contains("`evenkeel status`"),
        "{said}"
    );
    let done = process.command(&["top", "--once"]);
    assert_eq!(done.status.code(), Some(0));
    let text = String::from_utf8(done.stdout).unwrap();
    let line = text.lines().find(|line| line.contains(" b1 ")).unwrap_or_else(|| panic!("{text}"));
    let figures: Vec<&str> = line.split_whitespace().skip(1).collect();
    assert_eq!(figures[..3], ["b1", "up", "0"], "rates are known: {text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80) && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn nobody_to_show_is_told_before_the_terminal_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path(), &["top"], SMALL, &[]);
    assert_eq!(terminal.end().code(), Some(2));
    terminal.shows("no evenkeel of this user runs");
    eventually("what it has written is read", || terminal.is_given_back());
}
