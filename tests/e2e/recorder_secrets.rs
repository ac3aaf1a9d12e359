//! No secret is kept or told, and nothing that a client wrote steers a terminal.

use std::io::Write as _;
use std::path::Path;

use fake_backend::Fake;

use super::support::process::{Process, whole};
use super::support::{Client, eventually};

/// Stands in each place where a secret can stand.
const CANARY: &str = "c4n4ryVALUE";
/// The same as `Authorization: Basic` has it, of `u:c4n4ryVALUE`.
const ENCODED: &str = "dTpjNG40cnlWQUxVRQ";

/// A process in front of one backend that refuses, one of whose secrets comes from its environment.
fn process(more: &str) -> Process {
    let off = Fake::http("off").refusing().start_in_thread().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "workers: 1\n{more}\ntargets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n    \
         sticky: {{cookie: s, key: \"${{CANARY_KEY}}\"}}\n    backends: [{{url: '{}'}}]\n",
        off.url()
    );
    std::fs::write(folder.path().join("evenkeel.yaml"), whole(&text)).unwrap();
    let key = format!("{CANARY}{CANARY}");
    Process::start_with(folder, 1, &[("CANARY_KEY", Path::new(&key))])
}

/// Everything that is told of requests, by the API and by commands, as text and as JSON.
struct Told {
    api: Vec<String>,
    commands: Vec<String>,
}

fn all_that_is_told(process: &Process, count: usize) -> Told {
    let list = || process.ask("GET /api/v1/requests?last=1000&sampled=true", b"").1;
    eventually("all are kept", || list()["requests"].as_array().unwrap().len() >= count);
    let list = list();
    let socket = process.socket();
    let command = |words: &[&str]| {
        let output = process.command(&[words, &["--socket", socket.to_str().unwrap()]].concat());
        let both = [output.stdout, output.stderr].concat();
        String::from_utf8(both).unwrap()
    };
    let mut told = Told { api: vec![list.to_string()], commands: Vec::new() };
    for one in list["requests"].as_array().unwrap().iter() {
        let id = one["id"].as_str().unwrap();
        told.api.push(process.ask(&format!("GET /api/v1/requests/{id}"), b"").1.to_string());
        told.commands.extend([command(&["why", id]), command(&["why", id, "--json"])]);
    }
    for words in [
        &["why", "-n", "1000"][..],
        &["why", "-n", "1000", "--json"],
        &["why", "--last"],
        &["why", "--last", "--json"],
        &["status"],
        &["status", "--json"],
        &["log"],
        &["log", "--json"],
    ] {
        told.commands.push(command(words));
    }
    told
}

#[test]
fn a_secret_is_in_nothing_that_is_kept_or_told_wherever_it_stood() {
    let process = process("recorder: {show_headers: [User-Agent, Referer, X-Forwarded-For]}");
    let address = process.address("web");
    let lines: Vec<String> = vec![
        format!("GET /a?token={CANARY} HTTP/1.1\r\nHost: test\r\n"),
        format!("GET /a?{CANARY} HTTP/1.1\r\nHost: test\r\n"),
        format!("GET /a?x=1&key={CANARY};k={CANARY}&y HTTP/1.1\r\nHost: test\r\n"),
        format!("GET /a;jsessionid={CANARY}/b HTTP/1.1\r\nHost: test\r\n"),
        format!("GET /fetch/http://u:{CANARY}@h/x?y={CANARY} HTTP/1.1\r\nHost: test\r\n"),
        format!("GET http://u:{CANARY}@test/a HTTP/1.1\r\nHost: test\r\n"),
        format!("GET http://test/a?b={CANARY} HTTP/1.1\r\nHost: test\r\n"),
        format!("GET / HTTP/1.1\r\nHost: u:{CANARY}@test\r\n"),
        format!("GET / HTTP/1.1\r\nHost: test\r\nCookie: session={CANARY}\r\n"),
        format!("GET / HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {CANARY}\r\n"),
        format!("GET / HTTP/1.1\r\nHost: test\r\nAuthorization: Basic {ENCODED}==\r\n"),
        format!("GET / HTTP/1.1\r\nHost: test\r\nProxy-Authorization: Basic {ENCODED}==\r\n"),
        format!("GET / HTTP/1.1\r\nHost: test\r\nX-Api-Key: {CANARY}\r\nX-Auth-Token: {CANARY}\r\n"),
        format!("GET / HTTP/1.1\r\nHost: test\r\nReferer: https://u:{CANARY}@test/a?b={CANARY}#{CANARY}\r\n"),
        format!("GET / HTTP/1.1\r\nHost: test\r\nReferer: /a?{CANARY}\r\n"),
        format!(
            "POST / HTTP/1.1\r\nHost: test\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{CANARY}",
            CANARY.len()
        ),
        format!("CONNECT u:{CANARY}@test:80 HTTP/1.1\r\nHost: test\r\n"),
        format!("GET /broken?a={CANARY} HTTP/1.1\r\nHost: test\r\nHost: two\r\n"),
        format!("GET /broken?a={CANARY} HTTP/9.9\r\nHost: test\r\n"),
    ];
    for line in &lines {
        let mut client = Client::connect(address);
        let end = if line.starts_with("POST") { "" } else { "\r\n" };
        let answer = client.ask(&format!("{line}{end}"));
        assert!(answer.status >= 400, "{line}: {}", answer.status);
    }
    let told = all_that_is_told(&process, lines.len());
    for text in told.api.iter().chain(&told.commands) {
        assert!(!text.contains(CANARY) && !text.contains(ENCODED), "{text}");
    }
    let all = told.commands.concat();
    for kept in ["/a?token=*", "/a?*", "/a?x=*&key=*;k=*&*", "/a;jsessionid=*/b", "/fetch/http://*@h/x?y=*"] {
        assert!(all.contains(kept), "{kept}");
    }
    assert!(all.contains("https://*@test/a?b=*"), "what is listed is shown without what is secret in it");
}

/// What may stand in a text of a client.
const EVIL: &[&[u8]] = &[
    b"\x1b[2J",
    b"\x1b]0;owned\x07",
    "\u{202e}".as_bytes(),
    "\u{2066}abc\u{2069}".as_bytes(),
    "\u{9b}31m".as_bytes(),
    b"\x9b31m",
    "\u{200b}\u{feff}".as_bytes(),
    "\u{e0041}\u{e007f}".as_bytes(),
    "\u{2028}".as_bytes(),
    b"\xff\xfe\xc3",
    b"\x7f",
    b"%1b%5b2J",
    b"\\u{1b}",
    b"\t",
];

fn steers(sign: char) -> bool {
    evenkeel::message::steers(sign) && sign != '\n'
}

#[test]
fn two_hundred_hostile_paths_and_header_lines_steer_no_terminal() {
    let process = process("");
    let address = process.address("web");
    let mut taken = 0;
    for number in 0..200 {
        let (one, two) = (EVIL[number % EVIL.len()], EVIL[number / EVIL.len() % EVIL.len()]);
        let [path, agent, host] = match number % 4 {
            0 => [[one, two].concat(), b"me".to_vec(), b"test".to_vec()],
            1 => [b"x".to_vec(), [one, b" ", two].concat(), b"test".to_vec()],
            2 => [b"x".to_vec(), two.to_vec(), one.to_vec()],
            _ => [one.to_vec(), two.repeat(40), b"test".to_vec()],
        };
        let mut client = Client::connect(address);
        let lines: [&[u8]; 7] =
            [b"GET /", &path, b" HTTP/1.1\r\nHost: ", &host, b"\r\nUser-Agent: ", &agent, b"\r\n\r\n"];
        client.socket.write_all(&lines.concat()).unwrap();
        let answer = client.final_answer();
        assert!(matches!(answer.status, 400 | 503), "{number}: {}", answer.status);
        taken += usize::from(answer.status == 503);
        if number % 8 == 0 {
            let url = format!("http://test/{}", String::from_utf8_lossy(&path).replace('\0', ""));
            let line = format!("X-A: {}", String::from_utf8_lossy(&agent));
            for words in [&["explain", "GET", &url][..], &["explain", "GET", "http://test/", "-H", &line]] {
                let output = process.command(words);
                let both = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
                assert!(!both.contains(steers), "{both:?}");
            }
        }
    }
    assert!(taken > 30, "only {taken} were taken");
    let told = all_that_is_told(&process, 200);
    for text in &told.commands {
        assert!(!text.contains(steers), "{text:?}");
    }
    let all = told.commands.concat();
    for shown in ["\\u{202e}", "\\u202e", "\\u{9b}31m", "\\xff\\xfe\\xc3", "\\udb40\\udc41"] {
        assert!(all.contains(shown), "{shown}");
    }
}
