//! What the cache does, as it is seen: in the access log, in the counts and in `explain`.

use std::collections::BTreeMap;

use evenkeel::config::model::LogFormat;
use evenkeel::config::model::cache::CachePolicy;
use evenkeel::message::WhyNot;

use super::cache_lab::{Origin, get, keel_with, write};
use super::life_lab::{LogFile, end};
use super::support::eventually;

#[test]
fn the_record_of_a_request_says_what_the_cache_has_done_for_it() {
    let origin = Origin::scripted(|got, number, stream| match got.path.as_str() {
        "/private" => write(stream, 200, &["Cache-Control: private"], "for one"),
        "/again" if number > 1 && got.line("if-none-match").is_some() => {
            write(stream, 304, &["ETag: \"a\"", "Cache-Control: max-age=0"], "");
        }
        "/again" => write(stream, 200, &["ETag: \"a\"", "Cache-Control: max-age=0"], "again"),
        "/fails" if number > 7 => write(stream, 503, &[], "down"),
        "/fails" => {
            write(stream, 200, &["Cache-Control: max-age=0, stale-if-error=60", "ETag: \"f\""], "stands in");
        }
        _ => write(stream, 200, &["Cache-Control: max-age=60"], "for all"),
    });
    let mut log = None;
    let keel = keel_with(&origin, CachePolicy::default(), |config| {
        log = Some(LogFile::of(config, LogFormat::Json));
    });
    let mut client = keel.client();
    let asked = ["/a", "/a", "/private", "/again", "/again", "/fails"];
    asked.iter().for_each(|path| drop(get(&mut client, path, &[])));
    assert_eq!(get(&mut client, "/a", &["Content-Length: 0", "Upgrade: x", "Connection: upgrade"]).0, 200);
    assert_eq!(get(&mut client, "/b", &["Cookie: a=b"]).1, "for all");
    assert_eq!(get(&mut client, "/fails", &[]).1, "stands in");
    assert_eq!(client.ask("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n").status, 200);
    eventually("all are counted", || keel.server.readings().requests() == 10);
    let reading = keel.server.readings().cache;
    drop(client);
    end(keel);
    let said: Vec<_> = log
        .unwrap()
        .records()
        .iter()
        .map(|record| {
            (
                record["cache"].as_str().unwrap().to_owned(),
                record.get("cache_reason").and_then(|why| why.as_str()).unwrap_or_default().to_owned(),
            )
        })
        .collect();
    let pairs: Vec<(&str, &str)> = said.iter().map(|(kind, why)| (kind.as_str(), why.as_str())).collect();
    assert_eq!(
        pairs,
        [
            ("miss", ""),
            ("hit", ""),
            ("uncacheable", "private"),
            ("miss", ""),
            ("revalidated", ""),
            ("miss", ""),
            ("uncacheable", "body"),
            ("miss", ""),
            ("stale", ""),
            ("uncacheable", "method"),
        ]
    );
    let kinds: BTreeMap<&str, u64> = reading.kinds().filter(|(_, count)| *count > 0).collect();
    assert_eq!(
        kinds,
        BTreeMap::from([("hit", 1), ("miss", 4), ("revalidated", 1), ("stale", 1), ("uncacheable", 3)])
    );
    let why: BTreeMap<&str, u64> = reading.reasons().collect();
    assert_eq!(
        why,
        BTreeMap::from([WhyNot::Private, WhyNot::Body, WhyNot::Method].map(|why| (why.token(), 1)))
    );
}
