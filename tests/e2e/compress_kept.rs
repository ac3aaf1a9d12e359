//! Stored bodies that are compressed once and kept so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use evenkeel::cache::url_key;
use evenkeel::config::model::cache::{CachePolicy, Coding, CompressPolicy};
use evenkeel::config::model::{Config, Protocol, RouteConfig};

use super::cache_lab::{Origin, write};
use super::compress::decoded;
use super::support::{self, Answer, Client, Keel, eventually};

const LINES: &[&str] = &["Content-Type: text/plain", "Cache-Control: max-age=100", "ETag: \"v1\""];

fn config(origin: &Origin, compress: CompressPolicy) -> Config {
    let mut config = support::config(Protocol::Http, &[origin.address]);
    let (compress, cache) = (Some(Arc::new(compress)), Some(Arc::new(CachePolicy::default())));
    for route in &mut config.listeners[0].routes {
        *route =
            Arc::new(RouteConfig { compress: compress.clone(), cache: cache.clone(), ..(**route).clone() });
    }
    config
}

fn keel(origin: &Origin) -> Keel {
    Keel::start(&config(origin, CompressPolicy::default()))
}

/// Text of so many bytes; `seed` makes another one.
fn text(length: usize, seed: usize) -> String {
    let mut text = String::with_capacity(length + 20);
    let mut number = seed;
    while text.len() < length {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(&format!("line {} of it\n", number >> 50));
    }
    text.truncate(length);
    text
}

/// An origin of one text, for everybody.
fn of(length: usize) -> (Origin, String) {
    let text = text(length, 1);
    let sent = text.clone();
    (Origin::scripted(move |_, _, stream| write(stream, 200, LINES, &sent)), text)
}

fn ask(client: &mut Client, method: &str, lines: &[&str]) -> Answer {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    client.send(format!("{method} / HTTP/1.1\r\nHost: a.example\r\n{lines}\r\n"));
    if method == "HEAD" { client.answer_to_head() } else { client.answer() }
}

fn get(client: &mut Client, accepts: &str) -> Answer {
    ask(client, "GET", &[&format!("Accept-Encoding: {accepts}")])
}

/// How many stored bodies were compressed to be kept so.
fn made(keel: &Keel) -> u64 {
    keel.server.readings().cache.compressed
}

fn length(answer: &Answer) -> Option<usize> {
    answer.header("content-length").map(|length| length.parse().unwrap())
}

#[test]
fn a_stored_body_is_compressed_once_in_each_coding() {
    for size in [5_000, 64 * 1024, 3_000_000] {
        let (origin, text) = of(size);
        let keel = keel(&origin);
        let mut client = keel.client();
        assert_eq!(get(&mut client, "identity").text(), text);
        for (count, coding) in (1..).zip(["gzip", "br", "zstd"]) {
            let first = get(&mut client, coding);
            eventually("it is kept", || made(&keel) == count);
            for _ in 0..3 {
                // Of whichever worker.
                let again = get(&mut keel.client(), coding);
                assert_eq!(again.header("content-encoding"), Some(coding));
                assert_eq!(length(&again), Some(again.body.len()), "{coding} of {size}");
                assert!(again.body == first.body && decoded(&again) == text.as_bytes(), "{coding} of {size}");
                assert_eq!(
                    (again.header("etag"), again.header("vary")),
                    (Some("W/\"v1\""), Some("Accept-Encoding"))
                );
                assert!(again.header("cache-status").unwrap().starts_with("evenkeel; hit"));
            }
            assert_eq!(made(&keel), count, "{coding} of {size}");
        }
        assert_eq!(get(&mut client, "identity").text(), text);
        assert_eq!((origin.count(), made(&keel)), (1, 3));
    }
}

#[test]
fn many_who_want_the_same_coding_at_once_have_it_compressed_once() {
    let (origin, text) = of(4_000_000);
    let keel = keel(&origin);
    assert_eq!(get(&mut keel.client(), "identity").text(), text);
    std::thread::scope(|scope| {
        for number in 0..40 {
            let (address, text) = (keel.address(), &text);
            scope.spawn(move || {
                let answer = get(&mut Client::connect(address), ["gzip", "br"][number % 2]);
                assert!(answer.header("content-encoding").is_some() && !answer.cut);
                assert!(decoded(&answer) == text.as_bytes());
            });
        }
    });
    assert_eq!((origin.count(), made(&keel)), (1, 2));
}

#[test]
fn who_leaves_while_it_is_compressed_leaves_nothing_half() {
    let (origin, text) = of(8_000_000);
    let keel = keel(&origin);
    assert_eq!(get(&mut keel.client(), "identity").text(), text);
    let mut leaves = keel.client();
    leaves.send("GET / HTTP/1.1\r\nHost: a.example\r\nAccept-Encoding: gzip\r\n\r\n").take_until("\r\n\r\n");
    drop(leaves);
    eventually("it is kept all the same", || made(&keel) == 1);
    let answer = get(&mut keel.client(), "gzip");
    assert_eq!(length(&answer), Some(answer.body.len()));
    assert!(decoded(&answer) == text.as_bytes());
    assert_eq!(made(&keel), 1);
}

#[test]
fn an_answer_to_head_says_the_length_that_one_to_get_has() {
    let (origin, text) = of(20_000);
    let keel = keel(&origin);
    let mut client = keel.client();
    assert_eq!(length(&get(&mut client, "identity")), Some(text.len()));
    let told = ["Accept-Encoding: gzip"];
    let head = ask(&mut client, "HEAD", &told);
    assert_eq!((head.header("content-encoding"), length(&head)), (Some("gzip"), None));
    assert_eq!(made(&keel), 0, "it costs nothing to be told");
    let got = get(&mut client, "gzip");
    let head = ask(&mut client, "HEAD", &told);
    assert_eq!((head.header("content-encoding"), length(&head)), (Some("gzip"), Some(got.body.len())));
    assert_eq!(head.header("etag"), got.header("etag"));
    let plain = ask(&mut client, "HEAD", &[]);
    assert_eq!((plain.header("content-encoding"), length(&plain)), (None, Some(text.len())));
}

#[test]
fn a_part_is_one_of_the_body_as_it_is_and_conditions_hold_for_both_forms() {
    let (origin, text) = of(20_000);
    let keel = keel(&origin);
    let mut client = keel.client();
    let gzip = "Accept-Encoding: gzip";
    get(&mut client, "identity");
    let coded = get(&mut client, "gzip");
    assert_eq!((coded.header("accept-ranges"), coded.header("etag")), (None, Some("W/\"v1\"")));
    let part = ask(&mut client, "GET", &[gzip, "Range: bytes=5-9"]);
    assert_eq!((part.status, part.text()), (206, text[5..10].to_owned()));
    assert_eq!((part.header("etag"), part.header("content-encoding")), (Some("\"v1\""), None));
    assert_eq!(
        (part.header("content-range"), part.header("vary")),
        (Some("bytes 5-9/20000"), Some("Accept-Encoding"))
    );
    // A weak tag never holds here (RFC 9110 §13.1.5), so who has the compressed form gets all of it, compressed.
    let whole = ask(&mut client, "GET", &[gzip, "Range: bytes=5-9", "If-Range: W/\"v1\""]);
    assert!(whole.status == 200 && whole.body == coded.body);
    let part = ask(&mut client, "GET", &[gzip, "Range: bytes=5-9", "If-Range: \"v1\""]);
    assert_eq!((part.status, part.text()), (206, text[5..10].to_owned()));
    for (tag, said) in [("W/\"v1\"", "W/\"v1\""), ("\"v1\"", "\"v1\""), ("*", "\"v1\"")] {
        let answer = ask(&mut client, "GET", &[gzip, &format!("If-None-Match: {tag}")]);
        assert_eq!((answer.status, answer.header("etag")), (304, Some(said)), "{tag}");
    }
    let other = ask(&mut client, "GET", &[gzip, "If-None-Match: \"v2\""]);
    assert!(other.status == 200 && other.body == coded.body);
    assert_eq!((origin.count(), made(&keel)), (1, 1));
}

#[test]
fn what_is_compressed_goes_with_what_it_was_made_of() {
    let origin = Origin::scripted(|_, number, stream| write(stream, 200, LINES, &text(20_000, number)));
    let keel = keel(&origin);
    let store = keel.server.cache_store().unwrap();
    let mut client = keel.client();
    for number in 1..=2 {
        assert_eq!(get(&mut client, "identity").text(), text(20_000, number));
        let plain = store.bytes();
        let coded = get(&mut client, "gzip");
        assert!(decoded(&coded) == text(20_000, number).as_bytes());
        assert!(store.bytes() >= plain + coded.body.len() as u64, "it is weighed");
        let url = url_key(false, b"a.example", b"/", &evenkeel::cache::QueryRule::Whole);
        assert_eq!(store.purge_url(&url, evenkeel::cache::store::PurgeKind::Hard), 1);
        eventually("nobody reads it any more", || store.bytes() == 0);
    }
    assert_eq!((origin.count(), made(&keel)), (2, 2));
}

#[test]
fn what_is_compressed_outlives_a_reload_that_compresses_otherwise() {
    let (origin, text) = of(20_000);
    let keel = keel(&origin);
    let mut client = keel.client();
    get(&mut client, "identity");
    let before = get(&mut client, "gzip");
    let policy =
        |codings: &[(Coding, u32)]| CompressPolicy { codings: codings.into(), ..CompressPolicy::default() };
    keel.reload(&config(&origin, policy(&[(Coding::Gzip, 1)]))).unwrap();
    let mut client = keel.client();
    let after = get(&mut client, "gzip, br");
    assert!(after.body == before.body && made(&keel) == 1, "another level is no reason to do it again");
    keel.reload(&config(&origin, policy(&[(Coding::Brotli, 4)]))).unwrap();
    let mut client = keel.client();
    assert_eq!(get(&mut client, "gzip").header("content-encoding"), None, "it is not offered any more");
    assert!(decoded(&get(&mut client, "gzip, br")) == text.as_bytes());
    assert_eq!((origin.count(), made(&keel)), (1, 2));
}

#[test]
fn each_variant_has_its_own_forms() {
    let origin = Origin::scripted(|got, _, stream| {
        let lines = ["Content-Type: text/plain", "Cache-Control: max-age=100", "Vary: Accept-Language"];
        write(stream, 200, &lines, &got.line("accept-language").unwrap().repeat(3_000));
    });
    let keel = keel(&origin);
    let mut client = keel.client();
    for _ in 0..2 {
        for language in ["de", "en"] {
            for accepts in ["gzip", "br"] {
                let lines = [format!("Accept-Language: {language}"), format!("Accept-Encoding: {accepts}")];
                let answer = ask(&mut client, "GET", &[&lines[0], &lines[1]]);
                assert_eq!(answer.header("content-encoding"), Some(accepts));
                assert!(decoded(&answer) == language.repeat(3_000).as_bytes(), "{language} in {accepts}");
            }
        }
    }
    assert_eq!((origin.count(), made(&keel)), (2, 4));
}

#[test]
fn what_a_304_freshens_keeps_its_forms() {
    let stale = Arc::new(AtomicBool::new(true));
    let is_stale = Arc::clone(&stale);
    let origin = Origin::scripted(move |got, _, stream| {
        let fresh = if is_stale.load(Ordering::SeqCst) {
            "Cache-Control: max-age=0"
        } else {
            "Cache-Control: max-age=100"
        };
        let lines = ["Content-Type: text/plain", "ETag: \"v1\"", fresh];
        let status = if got.line("if-none-match").is_some() { 304 } else { 200 };
        write(stream, status, &lines, &text(200_000, 1));
    });
    let keel = keel(&origin);
    let mut client = keel.client();
    get(&mut client, "identity");
    let first = get(&mut client, "gzip");
    eventually("it is kept", || made(&keel) == 1);
    let second = get(&mut client, "gzip");
    assert!(second.header("cache-status").unwrap().contains("fwd-status=304"), "{}", second.head);
    assert_eq!(length(&second), Some(second.body.len()));
    stale.store(false, Ordering::SeqCst);
    for _ in 0..2 {
        let again = get(&mut client, "gzip");
        assert!(again.body == first.body && decoded(&again) == text(200_000, 1).as_bytes());
    }
    assert_eq!((origin.count(), made(&keel)), (4, 1));
}

#[test]
fn what_gets_longer_is_not_kept() {
    // No two bytes of it say anything of one another.
    let mut state = 1_u64;
    let noise: Arc<Vec<u8>> = Arc::new(
        (0..200_000)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect(),
    );
    let sent = Arc::clone(&noise);
    let origin = Origin::scripted(move |got, _, stream| {
        use std::io::Write as _;
        let body = if got.path == "/" { &sent[..] } else { &sent[..30_000] };
        let head =
            format!("HTTP/1.1 200 OK\r\n{}\r\nContent-Length: {}\r\n\r\n", LINES.join("\r\n"), body.len());
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(body);
    });
    let keel = keel(&origin);
    let store = keel.server.cache_store().unwrap();
    let mut client = keel.client();
    get(&mut client, "identity");
    let plain = store.bytes();
    for _ in 0..3 {
        let answer = get(&mut client, "gzip");
        assert!(answer.header("content-encoding") == Some("gzip") && decoded(&answer) == **noise);
    }
    eventually("nobody reads it any more", || store.bytes() == plain);
    assert_eq!((made(&keel), origin.count()), (0, 1));
    for _ in 0..3 {
        let answer = client.ask("GET /short HTTP/1.1\r\nHost: a.example\r\nAccept-Encoding: gzip\r\n\r\n");
        assert!(decoded(&answer) == noise[..30_000]);
    }
    assert_eq!((made(&keel), origin.count()), (0, 2));
}

#[test]
fn what_came_compressed_stays_as_it_came() {
    let origin = Origin::scripted(|_, _, stream| {
        let lines = [
            "Content-Type: text/plain",
            "Cache-Control: max-age=100",
            "Content-Encoding: br",
            "ETag: \"br\"",
        ];
        write(stream, 200, &lines, &"as it came ".repeat(500));
    });
    let keel = keel(&origin);
    let mut client = keel.client();
    for _ in 0..3 {
        let answer = get(&mut client, "gzip, br");
        assert_eq!((answer.header("content-encoding"), answer.header("etag")), (Some("br"), Some("\"br\"")));
        assert_eq!(answer.text(), "as it came ".repeat(500));
    }
    assert_eq!((origin.count(), made(&keel)), (1, 0));
}
