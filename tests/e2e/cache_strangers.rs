//! What strangers have tried with the cache: that what one of them asks for is not what another one gets.

use evenkeel::config::model::cache::{CachePolicy, CompressPolicy};

use super::cache_lab::{Origin, get, keel, keel_with, write};
use super::support::{Answer, Client};

/// Asks for `/` at this host.
fn at(client: &mut Client, host: &str, lines: &[&str]) -> Answer {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    client.ask(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n"))
}

#[test]
fn what_turns_out_to_vary_by_a_line_of_ours_is_nobody_elses_any_more() {
    let origin = Origin::scripted(|got, number, stream| match got.line("if-none-match") {
        Some(_) => {
            let lines = ["ETag: \"v1\"", "Cache-Control: public, max-age=100", "Vary: X-Forwarded-For"];
            write(stream, 304, &lines, "");
        }
        None => {
            let lines = ["ETag: \"v1\"", "Cache-Control: public, max-age=0"];
            write(stream, 200, &lines, &format!("body {number}"));
        }
    });
    let keel = keel(&origin, CachePolicy::default());
    let mut client = keel.client();
    for (body, count) in [("body 1", 1), ("body 1", 2), ("body 3", 3)] {
        assert_eq!(get(&mut client, "/", &[]).1, body);
        assert_eq!(origin.count(), count);
    }
}

/// An origin that says what it was asked by this line.
fn echo(line: &'static str, lines: &'static [&'static str]) -> Origin {
    Origin::scripted(move |got, _, stream| write(stream, 200, lines, got.line(line).unwrap_or("none")))
}

#[test]
fn a_line_that_connection_names_puts_nothing_into_the_variant_of_others() {
    let origin = echo("x-api-key", &["Vary: X-Api-Key", "Cache-Control: max-age=100"]);
    let keel = keel(&origin, CachePolicy::default());
    let mut client = keel.client();
    let (_, body, said) = get(&mut client, "/", &["Connection: X-Api-Key", "X-Api-Key: victim"]);
    assert_eq!((body.as_str(), said.as_str()), ("none", "evenkeel; fwd=bypass; detail=connection"));
    assert_eq!(get(&mut client, "/", &["X-Api-Key: victim"]).1, "victim");
    assert_eq!(get(&mut client, "/", &["Connection: X-Api-Key", "X-Api-Key: victim"]).1, "none");
}

#[test]
fn a_line_that_connection_names_puts_nothing_under_the_key_of_others() {
    let origin = echo("x-tenant", &["Cache-Control: max-age=100"]);
    let keel = keel(&origin, CachePolicy { headers: vec!["X-Tenant".into()], ..CachePolicy::default() });
    let mut client = keel.client();
    assert_eq!(get(&mut client, "/", &["Connection: close, x-tenant", "X-Tenant: a"]).1, "none");
    assert_eq!(get(&mut keel.client(), "/", &["X-Tenant: a"]).1, "a");
}

#[test]
fn an_error_about_one_request_is_nobody_elses() {
    for (status, line) in [
        (412, "If-Match: \"x\""),
        (416, "Range: bytes=9-"),
        (400, "Range: bytes=9-"),
        (404, "If-None-Match: \"x\""),
        (431, "X-Long: yes"),
        (417, "X-Expect: yes"),
    ] {
        let name = line.split(':').next().unwrap();
        let origin = Origin::scripted(move |got, _, stream| {
            let status = if got.line(name).is_some() { status } else { 200 };
            write(stream, status, &["Cache-Control: public, max-age=100"], "said");
        });
        let keel = keel(&origin, CachePolicy::default());
        let mut client = keel.client();
        assert_eq!(get(&mut client, "/", &[line]).0, status, "{line}");
        assert_eq!(get(&mut client, "/", &[]).0, 200, "{line}");
    }
}

#[test]
fn hosts_that_backends_can_tell_apart_are_not_one() {
    let origin = echo("host", &["Cache-Control: max-age=100"]);
    let keel = keel(&origin, CachePolicy::default());
    let mut client = keel.client();
    for _ in 0..2 {
        for host in ["a.example", "A.Example", "a.example.", "a.example:80"] {
            assert_eq!(at(&mut client, host, &[]).text(), host);
        }
    }
    assert_eq!(origin.count(), 4);
    // A change is one of all of them.
    assert_eq!(client.ask("DELETE / HTTP/1.1\r\nHost: A.EXAMPLE.\r\n\r\n").status, 200);
    assert_eq!(at(&mut client, "a.example", &[]).text(), "a.example");
    assert_eq!(origin.count(), 6);
}

#[test]
fn what_a_trusted_proxy_says_of_the_host_is_a_part_of_the_key() {
    for name in ["X-Forwarded-Host: ", "Forwarded: for=1.2.3.4;host="] {
        let line = name.split(':').next().unwrap();
        let origin = echo(line, &["Cache-Control: max-age=100"]);
        let keel = keel_with(&origin, CachePolicy::default(), |config| {
            config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        });
        let mut client = keel.client();
        for host in ["one.example", "two.example", "one.example"] {
            let body = get(&mut client, "/", &[&format!("{name}{host}")]).1;
            assert!(body.contains(host), "{host}: {body}");
        }
        assert_eq!(origin.count(), 2, "{name}");
    }
}

#[test]
fn who_overrides_that_an_answer_is_stale_at_once_does_not_share_it_among_users() {
    let origin = echo("cookie", &["Cache-Control: max-age=0"]);
    let policy = CachePolicy {
        ttl: None,
        ttl_override: Some(std::time::Duration::from_secs(100)),
        ..CachePolicy::default()
    };
    let keel = keel(&origin, policy);
    let mut client = keel.client();
    assert_eq!(get(&mut client, "/", &[]).1, "none");
    assert_eq!(get(&mut client, "/", &["Cookie: user=1"]).1, "user=1");
    assert_eq!(get(&mut client, "/", &["Cookie: user=2"]).1, "user=2");
    assert_eq!(get(&mut client, "/", &[]).1, "none");
    assert_eq!(origin.count(), 3);
}

#[test]
fn a_304_says_what_the_compressed_answer_would() {
    let origin = Origin::scripted(|got, _, stream| {
        let status = if got.line("if-none-match").is_some() { 304 } else { 200 };
        write(stream, status, &["ETag: \"v1\"", "Content-Type: text/plain"], &"text ".repeat(1000));
    });
    let keel = keel_with(&origin, CachePolicy::default(), |config| {
        for route in &mut config.listeners[0].routes {
            let mut changed = (**route).clone();
            (changed.cache, changed.compress) = (None, Some(std::sync::Arc::new(CompressPolicy::default())));
            *route = std::sync::Arc::new(changed);
        }
    });
    let mut client = keel.client();
    let coded = at(&mut client, "a.example", &["Accept-Encoding: gzip"]);
    assert_eq!(
        (coded.status, coded.header("etag"), coded.header("vary")),
        (200, Some("W/\"v1\""), Some("Accept-Encoding"))
    );
    let again = at(&mut client, "a.example", &["Accept-Encoding: gzip", "If-None-Match: W/\"v1\""]);
    assert_eq!(
        (again.status, again.header("etag"), again.header("vary")),
        (304, Some("W/\"v1\""), Some("Accept-Encoding"))
    );
    let plain = at(&mut client, "a.example", &["If-None-Match: \"v1\""]);
    assert_eq!((plain.status, plain.header("etag")), (304, Some("\"v1\"")));
}
