//! Runs the cases of a group: one origin and one proxy for all of them, a path for each.

use std::collections::HashMap;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use evenkeel::config::model::cache::CachePolicy;

use super::super::cache_lab::{Got, Origin, keel_with};
use super::super::support::{Answer, Client, eventually};
use super::case::{Case, Source, Step};

/// How many connections the cases of a group share.
const CLIENTS: usize = 4;

/// What the origin knows of a case.
struct Scene {
    /// The step that is under way, and its number.
    step: Step,
    number: usize,
    /// What it was asked.
    got: Vec<Got>,
}

type Scenes = Arc<Mutex<HashMap<String, Scene>>>;

/// What a public suite would set: only what answers say counts, and a guess where that is allowed.
pub fn policy() -> CachePolicy {
    CachePolicy { ttl: None, heuristic: true, ..CachePolicy::default() }
}

/// Runs these cases; all that fail are told at once.
pub fn run(cases: &[Case]) {
    run_with(policy(), cases);
}

/// The same with another policy.
pub fn run_with(policy: CachePolicy, cases: &[Case]) {
    let scenes = Scenes::default();
    let seen = Arc::clone(&scenes);
    let origin = Origin::scripted(move |got, _, stream| answer(&seen, got, stream));
    // What a backend says that fails on purpose is said to the cache, once, and by this backend.
    let keel = keel_with(&origin, policy, |config| {
        let resilience = &mut config.targets[0].resilience;
        (resilience.retries, resilience.breaker, resilience.outlier) = (None, None, None);
    });
    let (address, failures) = (keel.address(), Mutex::new(Vec::new()));
    let takes_time = |case: &&Case| case.steps.iter().any(|step| step.in_time);
    let (slow, quick): (Vec<_>, Vec<_>) = cases.iter().partition(takes_time);
    let shares = quick.chunks(quick.len().div_ceil(CLIENTS).max(1)).map(<[&Case]>::to_vec);
    std::thread::scope(|scope| {
        for share in shares.chain(slow.into_iter().map(|case| vec![case])) {
            let (failures, scenes) = (&failures, &scenes);
            scope.spawn(move || {
                let mut client = Client::connect(address);
                for case in share {
                    case.known.iter().for_each(|why| say(&format!("known: {}: {why}", case.name)));
                    let outcome = catch_unwind(AssertUnwindSafe(|| play(case, address, &mut client, scenes)));
                    let differences = outcome.unwrap_or_else(|_| {
                        client = Client::connect(address);
                        vec!["panicked, see above".into()]
                    });
                    let all = differences.into_iter().map(|what| format!("{}: {what}", case.name));
                    failures.lock().unwrap().extend(all);
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} differences:\n{}", failures.len(), failures.join("\n"));
}

/// Tells whoever runs the tests.
#[expect(
    clippy::print_stdout,
    reason = "who runs it is to know what is asserted though others might wish it otherwise"
)]
pub fn say(what: &str) {
    println!("{what}");
}

/// The steps of one case, up to the first that differs.
fn play(case: &Case, address: SocketAddr, client: &mut Client, scenes: &Scenes) -> Vec<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let steps: Vec<Step> = case.steps.iter().map(|step| dated(step, now)).collect();
    for (at, step) in steps.iter().enumerate() {
        let number = at + 1;
        {
            let mut scenes = scenes.lock().unwrap();
            let got = scenes.remove(&case.name).map(|scene| scene.got).unwrap_or_default();
            scenes.insert(case.name.clone(), Scene { step: step.clone(), number, got });
        }
        let asked = || scenes.lock().unwrap()[&case.name].got.clone();
        let mut differences = Vec::new();
        let mut once = || {
            let before = asked().len();
            let answer = ask(client, &case.name, step);
            if answer.cut {
                *client = Client::connect(address);
            }
            if matches!(step.source, Source::StoredAndAsked(_)) {
                eventually("the origin is asked meanwhile", || asked().len() > before);
            }
            differences = compare(case, &steps, number, &answer, &asked()[before..]);
            differences.is_empty()
        };
        if step.in_time {
            eventually(&format!("{}: step {number}", case.name), once);
        } else {
            once();
        }
        if !differences.is_empty() {
            return differences.into_iter().map(|what| format!("step {number}: {what}")).collect();
        }
    }
    Vec::new()
}

fn ask(client: &mut Client, name: &str, step: &Step) -> Answer {
    let mut text = format!("{} /{name}{} HTTP/1.1\r\nHost: a.example\r\n", step.method, step.place);
    for line in &step.asking {
        text.push_str(line);
        text.push_str("\r\n");
    }
    if let Some(body) = &step.sending {
        text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    } else {
        text.push_str("\r\n");
    }
    client.send(text);
    let mut interim = String::new();
    loop {
        let mut answer = if step.method == "HEAD" { client.answer_to_head() } else { client.answer() };
        if (100..200).contains(&answer.status) {
            interim.push_str(&answer.head);
            continue;
        }
        // Where a case looks for lines it sees those of all heads.
        answer.trailers.push_str(&interim);
        return answer;
    }
}

/// The answer of the origin.
fn answer(scenes: &Scenes, got: &Got, stream: &mut TcpStream) {
    let name = got.path[1..].split(['/', '?']).next().unwrap();
    let (step, number) = {
        let mut scenes = scenes.lock().unwrap();
        let scene = scenes.get_mut(name).unwrap();
        scene.got.push(got.clone());
        (scene.step.clone(), scene.number)
    };
    if step.dies {
        let _ = stream.shutdown(Shutdown::Both);
        return;
    }
    let is_conditional = got.line("if-none-match").is_some() || got.line("if-modified-since").is_some();
    let status = match step.source {
        Source::Validated(_) if is_conditional => 304,
        Source::Validated(_) => 599,
        _ => step.status,
    };
    let mut text = format!("{}HTTP/1.1 {status} Said\r\n", step.interim);
    for line in &step.saying {
        text.push_str(line);
        text.push_str("\r\n");
    }
    let body = if matches!(status, 204 | 304) { String::new() } else { body_of(name, number, &step) };
    let frames = |line: &String| {
        ["content-length:", "transfer-encoding:"]
            .iter()
            .any(|name| line.to_ascii_lowercase().starts_with(name))
    };
    let has_length = step.saying.iter().any(frames);
    let shown = if got.method == "HEAD" { "" } else { &body };
    if step.chunked {
        text.push_str(&format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len()));
    } else if matches!(status, 204 | 304) || has_length {
        text.push_str(&format!("\r\n{shown}"));
    } else {
        text.push_str(&format!("Content-Length: {}\r\n\r\n{shown}", body.len()));
    }
    text.push_str(&step.surplus);
    let _ = stream.write_all(text.as_bytes());
    if step.cuts {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

fn body_of(name: &str, number: usize, step: &Step) -> String {
    step.body.clone().unwrap_or_else(|| format!("{name} says {number}"))
}

/// What of an answer, and of what the origin was asked for it, is not as the case says.
fn compare(case: &Case, steps: &[Step], number: usize, answer: &Answer, asked: &[Got]) -> Vec<String> {
    let step = &steps[number - 1];
    let (count, of) = match step.source {
        Source::Origin => (1, number),
        Source::Validated(of) | Source::Instead(of) | Source::StoredAndAsked(of) => (1, of),
        Source::Stored(of) => (0, of),
        Source::Failure => (1, number),
        Source::Nobody => (0, number),
    };
    let mut differences = Vec::new();
    let mut differs = |what: String| differences.push(what);
    let count = count + step.more;
    // Who dies on a connection that was kept is asked once more on a fresh one.
    let is_again = step.dies && asked.len() == count + 1;
    if asked.len() != count && !is_again {
        differs(format!("the origin was asked {} times, not {count}", asked.len()));
    }
    let status = step.gets.unwrap_or(steps[of - 1].status);
    if answer.status != status {
        differs(format!("status {}, not {status}", answer.status));
    }
    if answer.status == status
        && is_as_given(step)
        && !answer.head.starts_with(&format!("HTTP/1.1 {status} Said\r\n"))
    {
        differs(format!("start line of {:?}", answer.head));
    }
    let is_own = matches!(step.source, Source::Nobody | Source::Failure) || step.cuts;
    let is_empty = step.method == "HEAD" || matches!(status, 204 | 304 | 416) || is_own;
    let body = match &step.text {
        Some(text) => Some(text.clone()),
        None if is_empty => None,
        None => Some(body_of(&case.name, of, &steps[of - 1])),
    };
    if let Some(body) = body.filter(|body| *body != answer.text()) {
        differs(format!("body {:?}, not {body:?}", answer.text()));
    }
    if answer.cut != step.cuts {
        differs(format!("cut: {}", answer.cut));
    }
    let mut lines: Vec<(&str, &str)> = answer.head.lines().filter_map(|line| line.split_once(": ")).collect();
    let from_cache = matches!(step.source, Source::Stored(_) | Source::StoredAndAsked(_));
    let count = |name: &str| lines.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name)).count();
    let says = lines.iter().find(|(name, _)| name.eq_ignore_ascii_case("cache-status"));
    if from_cache && !says.is_some_and(|(_, value)| value.starts_with("evenkeel; hit")) {
        differs(format!("Cache-Status {says:?}"));
    }
    if from_cache && count("age") != 1 || count("age") > 1 && step.source != Source::Origin {
        differs(format!("{} lines Age", count("age")));
    }
    let age = answer.header("age").and_then(|age| age.parse::<u64>().ok());
    if let Some(least) = step.least_age.filter(|least| age.is_none_or(|age| age < *least)) {
        differs(format!("Age {age:?}, not {least} or more"));
    }
    lines.extend(answer.trailers.lines().filter_map(|line| line.split_once(": ")));
    for line in step.has.iter().filter(|line| !lists(&lines, line)) {
        differs(format!("no `{line}` in {:?}", answer.head));
    }
    for line in step.lacks.iter().filter(|line| lists(&lines, line)) {
        differs(format!("`{line}` in {:?}", answer.head));
    }
    if let Some(got) = asked.first() {
        let lines: Vec<_> = got.lines.iter().map(|(name, value)| (&**name, &**value)).collect();
        for line in step.origin_has.iter().filter(|line| !lists(&lines, line)) {
            differs(format!("the origin did not get `{line}`: {lines:?}"));
        }
        for line in step.origin_lacks.iter().filter(|line| lists(&lines, line)) {
            differs(format!("the origin got `{line}`"));
        }
        if got.method != *step.origin_method.as_ref().unwrap_or(&step.method) {
            differs(format!("the origin got {}", got.method));
        }
    }
    differences
}

/// Whether the answer is one that the origin has given, as it gave it.
fn is_as_given(step: &Step) -> bool {
    step.gets.is_none() && !matches!(step.source, Source::Nobody | Source::Failure)
}

/// Whether there is a line like this one: `Name: value`, or `Name` with any value.
fn lists(lines: &[(&str, &str)], line: &str) -> bool {
    let (name, value) = line.split_once(": ").map_or((line, None), |(name, value)| (name, Some(value)));
    lines
        .iter()
        .any(|(other, said)| other.eq_ignore_ascii_case(name) && value.is_none_or(|value| value == *said))
}

/// The step with its dates written: `@N` is in N seconds.
fn dated(step: &Step, now: u64) -> Step {
    let all = |lines: &[String]| lines.iter().map(|line| dated_line(line, now)).collect();
    Step {
        asking: all(&step.asking),
        saying: all(&step.saying),
        has: all(&step.has),
        lacks: all(&step.lacks),
        origin_has: all(&step.origin_has),
        origin_lacks: all(&step.origin_lacks),
        ..step.clone()
    }
}

fn dated_line(line: &str, now: u64) -> String {
    let Some((name, seconds)) = line.split_once(": @") else { return line.to_owned() };
    let Ok(seconds) = seconds.parse::<i64>() else { return line.to_owned() };
    let at = UNIX_EPOCH + Duration::from_secs(now.checked_add_signed(seconds).unwrap());
    format!("{name}: {}", httpdate::fmt_http_date(at))
}
