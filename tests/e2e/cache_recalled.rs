//! What many ask for is sent without being looked for: whoever asks in another way must not notice.

use evenkeel::config::model::cache::CachePolicy;

use super::cache_lab::{Origin, get, keel, write};
use super::support::Client;
use super::support::process::Process;

/// So many times the same is asked for that the worker knows it by heart: the first stores it, the second finds it, the third is noted.
const OFTEN: usize = 4;

fn warm(client: &mut Client, path: &str) {
    for _ in 0..OFTEN {
        assert_eq!(get(client, path, &[]).0, 200);
    }
}

/// An answer without what depends on the moment.
fn told(client: &mut Client, request: &str) -> (u16, Vec<String>, String) {
    let answer =
        if request.starts_with("HEAD") { client.send(request).answer_to_head() } else { client.ask(request) };
    let lines =
        answer.head.lines().filter_map(|line| match line.split(':').next()?.to_ascii_lowercase().as_str() {
            "age" | "date" => None,
            "cache-status" => line.split("ttl=").next().map(str::to_owned),
            _ => Some(line.to_owned()),
        });
    (answer.status, lines.collect(), answer.text())
}

/// Lines and methods by which a request is another one, or none at all.
const REQUESTS: &[&str] = &[
    "GET {} HTTP/1.1\r\nHost: a.example\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nCookie: a=b\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nAuthorization: Basic eDp5\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nConnection: x-key\r\nX-Key: 1\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nCache-Control: no-cache\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nCache-Control: max-age=0\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nCache-Control: no-store\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nPragma: no-cache\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nRange: bytes=2-3\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nRange: bytes=2-3\r\nIf-Range: \"v2\"\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nIf-None-Match: \"v1\"\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nIf-None-Match: \"v2\"\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nIf-Match: \"v2\"\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nIf-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nIf-Unmodified-Since: Fri, 01 Jan 1999 00:00:00 GMT\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi",
    "GET {} HTTP/1.1\r\nHost: a.example\r\nAccept-Encoding: gzip\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: b.example\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: A.example\r\n\r\n",
    "GET {} HTTP/1.1\r\nHost: a.example:80\r\n\r\n",
    "GET {}?x=1 HTTP/1.1\r\nHost: a.example\r\n\r\n",
    "GET {}? HTTP/1.1\r\nHost: a.example\r\n\r\n",
    "GET http://a.example{} HTTP/1.1\r\nHost: c.example\r\n\r\n",
    "GET {} HTTP/1.0\r\nHost: a.example\r\nConnection: keep-alive\r\n\r\n",
    "HEAD {} HTTP/1.1\r\nHost: a.example\r\n\r\n",
    "POST {} HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi",
    "OPTIONS {} HTTP/1.1\r\nHost: a.example\r\n\r\n",
];

#[test]
fn who_asks_in_another_way_is_answered_as_if_nobody_had_asked_before() {
    let policies = [
        CachePolicy::default(),
        CachePolicy { headers: vec!["X-Key".into()], ..CachePolicy::default() },
        CachePolicy { query: Some(vec!["y".into()]), ..CachePolicy::default() },
        CachePolicy { ignore_cookies: true, ..CachePolicy::default() },
    ];
    const SAYS: [&[&str]; 3] =
        [&["ETag: \"v1\"", "Cache-Control: max-age=100"], &["ETag: \"v1\""], &["Vary: Accept-Encoding"]];
    for (policy, says) in policies.iter().flat_map(|policy| SAYS.map(|says| (policy, says))) {
        // Its answers tell neither how many there were nor for which path.
        let origin = Origin::scripted(move |got, _, stream| {
            let key = got.line("x-key").unwrap_or("none");
            write(stream, 200, says, &format!("{} {key}", got.method));
        });
        let keel = keel(&origin, policy.clone());
        for (number, request) in REQUESTS.iter().enumerate() {
            let (often, once) = (format!("/often/{number}"), format!("/once/{number}"));
            let mut clients = [keel.client(), keel.client()];
            warm(&mut clients[0], &often);
            assert_eq!(get(&mut clients[1], &once, &[]).0, 200);
            let told_often = told(&mut clients[0], &request.replace("{}", &often));
            let told_once = told(&mut clients[1], &request.replace("{}", &once));
            assert_eq!(told_often, told_once, "{says:?} {policy:?} {request}");
            // And who asks plainly after that.
            let plain = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n");
            let told_often = told(&mut keel.client(), &plain(&often));
            let told_once = told(&mut keel.client(), &plain(&once));
            assert_eq!(told_often, told_once, "after {says:?} {policy:?} {request}");
        }
    }
}

/// One whose route `/` leads to the origin, with a cache.
fn process(origin: &Origin, cache: &str) -> (Process, String) {
    let config = format!(
        "listeners:\n  front:\n    bind: 127.0.0.1:0\n    routes: [{{target: web, cache: {cache}}}]\n\
         targets:\n  web: {{health_check: off, backends: [{{host: 127.0.0.1, port: {}}}]}}\n",
        origin.address.port()
    );
    (Process::start(&config, 1), config)
}

#[test]
fn what_is_changed_or_purged_is_not_known_by_heart() {
    let origin = Origin::with(&["Cache-Control: max-age=100", "Cache-Tag: every"]);
    let (process, _) = process(&origin, "{ttl: off}");
    let mut client = Client::connect(process.address("front"));
    let mut expected = 1;
    for body in [
        r#"{"url": "http://a.example/x"}"#,
        r#"{"url": "http://a.example/x", "soft": true}"#,
        r#"{"prefix": "http://a.example/"}"#,
        r#"{"tag": "every"}"#,
        r#"{"tag": "every", "soft": true}"#,
        r#"{"all": true}"#,
    ] {
        warm(&mut client, "/x");
        assert_eq!(get(&mut client, "/x", &[]).1, format!("body {expected}"), "before {body}");
        assert_eq!(process.ask("POST /api/v1/cache/purge", body.as_bytes()).0, 200);
        expected += 1;
        assert_eq!(get(&mut client, "/x", &[]).1, format!("body {expected}"), "{body}");
    }
    warm(&mut client, "/x");
    assert_eq!(client.ask("POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi").status, 200);
    assert_eq!(get(&mut client, "/x", &[]).1, format!("body {}", expected + 2));
}

#[test]
fn what_is_no_longer_fresh_is_not_known_by_heart() {
    let origin = Origin::with(&["Cache-Control: max-age=1"]);
    let keel = keel(&origin, CachePolicy::default());
    let mut client = keel.client();
    // Each second has its own.
    let mut asked = 0;
    while asked < 3 {
        let (_, body, said) = get(&mut client, "/", &[]);
        let number: usize = body.trim_start_matches("body ").parse().unwrap();
        assert!(said.contains("ttl=0") || said.contains("ttl=1"), "{said}");
        asked = number;
    }
    assert_eq!(origin.count(), 3);
}

#[test]
fn its_age_is_that_of_the_moment() {
    let origin = Origin::with(&["Cache-Control: max-age=100"]);
    let keel = keel(&origin, CachePolicy::default());
    let mut client = keel.client();
    let mut ages = Vec::new();
    while ages.last().is_none_or(|age| *age < 2) {
        let answer = client.ask("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let Some(age) = answer.header("age") else { continue };
        let (age, said): (u64, _) = (age.parse().unwrap(), answer.header("cache-status").unwrap());
        assert!(
            [99 - age, 100 - age].iter().any(|ttl| said == format!("evenkeel; hit; ttl={ttl}")),
            "{said}, {age}"
        );
        ages.push(age);
    }
    assert!(ages.is_sorted() && ages[0] < 2);
}

#[test]
fn a_reload_ends_what_is_known_by_heart() {
    let origin = Origin::with(&["Cache-Control: max-age=100"]);
    let (process, config) = process(&origin, "{ttl: off}");
    let mut client = Client::connect(process.address("front"));
    warm(&mut client, "/");
    let with = |change: &str| config.replace("target: web, ", &format!("target: web, {change}, "));
    process.reload(&with("headers: {response: {set: {X-New: one}}}"));
    let answer = client.ask("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    assert_eq!((answer.text().as_str(), answer.header("x-new")), ("body 1", Some("one")));
    warm(&mut client, "/");
    process.reload(&config.replace("cache: {ttl: off}", "cache: off"));
    assert_eq!(get(&mut client, "/", &[]), (200, "body 2".into(), String::new()));
}
