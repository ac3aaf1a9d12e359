//! Answers that are compressed on their way, end to end.

use std::io::{Read as _, Write as _};
use std::sync::{Arc, Barrier};

use evenkeel::config::model::Protocol;
use evenkeel::config::model::RouteConfig;
use evenkeel::config::model::cache::{CachePolicy, CompressPolicy};

use super::cache_lab::{Origin, write};
use super::support::{self, Answer, Client, Keel};

fn keel(origin: &Origin, cache: Option<CachePolicy>) -> Keel {
    let mut config = support::config(Protocol::Http, &[origin.address]);
    for route in &mut config.listeners[0].routes {
        let (compress, cache) = (Some(Arc::new(CompressPolicy::default())), cache.clone().map(Arc::new));
        *route = Arc::new(RouteConfig { compress, cache, ..(**route).clone() });
    }
    Keel::start(&config)
}

fn get(client: &mut Client, accepts: &str) -> Answer {
    client.ask(&format!("GET / HTTP/1.1\r\nHost: a.example\r\nAccept-Encoding: {accepts}\r\n\r\n"))
}

pub fn decoded(answer: &Answer) -> Vec<u8> {
    let (body, mut out) = (answer.body.as_slice(), Vec::new());
    match answer.header("content-encoding") {
        Some("zstd") => zstd::stream::read::Decoder::new(body).unwrap().read_to_end(&mut out).unwrap(),
        Some("br") => brotli::Decompressor::new(body, 4096).read_to_end(&mut out).unwrap(),
        Some("gzip") => flate2::read::GzDecoder::new(body).read_to_end(&mut out).unwrap(),
        _ => body.to_vec().as_slice().read_to_end(&mut out).unwrap(),
    };
    out
}

#[test]
fn a_client_gets_what_it_likes_best() {
    let text = "all work and no play ".repeat(20_000);
    let sent = text.clone();
    let origin = Origin::scripted(move |_, _, stream| {
        write(stream, 200, &["Content-Type: text/html", "ETag: \"v1\""], &sent);
    });
    let keel = keel(&origin, None);
    let mut client = keel.client();
    for (accepts, coding) in [
        ("gzip", Some("gzip")),
        ("gzip, br", Some("br")),
        ("gzip, br;q=0.5", Some("gzip")),
        ("zstd, br, gzip", Some("zstd")),
        ("identity", None),
        ("gzip;q=0", None),
        (&"gzip;q=0.1, x, ".repeat(200), Some("gzip")),
    ] {
        let answer = get(&mut client, accepts);
        assert_eq!((answer.status, answer.header("content-encoding")), (200, coding), "{accepts}");
        assert_eq!(answer.header("vary"), Some("Accept-Encoding"));
        assert!(decoded(&answer) == text.as_bytes(), "{accepts}");
        if coding.is_some() {
            assert_eq!((answer.header("etag"), answer.header("content-length")), (Some("W/\"v1\""), None));
            assert!(answer.body.len() < text.len() / 10, "{}", answer.body.len());
        }
    }
    let head = client.send("HEAD / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n").answer_to_head();
    assert_eq!((head.header("content-encoding"), head.header("content-length")), (Some("gzip"), None));
}

#[test]
fn what_is_short_coded_or_private_goes_as_it_is() {
    let long = "x".repeat(5_000);
    for (lines, body) in [
        (&["Content-Type: text/html"][..], "short"),
        (&["Content-Type: image/png"], &long),
        (&["Content-Type: text/html", "Set-Cookie: a=b"], &long),
        (&["Content-Type: text/html", "Cache-Control: no-transform"], &long),
    ] {
        let (lines, body): (&'static [&'static str], _) = (lines.to_vec().leak(), body.to_owned());
        let sent = body.clone();
        let origin = Origin::scripted(move |_, _, stream| write(stream, 200, lines, &sent));
        let keel = keel(&origin, None);
        let answer = get(&mut keel.client(), "gzip");
        assert_eq!((answer.header("content-encoding"), answer.text()), (None, body), "{lines:?}");
    }
}

#[test]
fn events_go_out_as_they_come() {
    let go = Arc::new(Barrier::new(2));
    let next = Arc::clone(&go);
    let origin = Origin::scripted(move |_, _, stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        for number in 0..3 {
            let event = format!("data: {number}\n\n");
            let _ = stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
            next.wait();
        }
        let _ = stream.write_all(b"0\r\n\r\n");
    });
    let keel = keel(&origin, None);
    let mut client = keel.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    client.take_until("\r\n\r\n");
    let mut decoder = flate2::write::GzDecoder::new(Vec::new());
    for number in 0..3 {
        let event = format!("data: {number}\n\n");
        // The origin sends the next one only when this one was read.
        while !decoder.get_ref().ends_with(event.as_bytes()) {
            let size = client.take_until("\r\n");
            let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
            let chunk = client.take(size);
            decoder.write_all(&chunk).unwrap();
            decoder.flush().unwrap();
            client.take_until("\r\n");
        }
        go.wait();
    }
}

#[test]
fn what_is_stored_is_compressed_for_those_who_like_it() {
    let text = "stored ".repeat(3_000);
    let sent = text.clone();
    let origin = Origin::scripted(move |_, _, stream| {
        write(stream, 200, &["Content-Type: text/plain", "Cache-Control: max-age=100"], &sent);
    });
    let keel = keel(&origin, Some(CachePolicy::default()));
    let mut client = keel.client();
    for accepts in ["gzip", "identity", "br", "gzip"] {
        assert!(decoded(&get(&mut client, accepts)) == text.as_bytes(), "{accepts}");
    }
    assert_eq!(origin.count(), 1);
}
