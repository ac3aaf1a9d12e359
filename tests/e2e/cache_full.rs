//! A cache without room: everybody is answered whole, and is told why nothing was stored.

use std::io::Write as _;
use std::sync::{Arc, Barrier};
use std::thread;

use evenkeel::config::model::cache::{CachePolicy, CacheStoreConfig};

use super::cache_lab::{Origin, get, keel_with, write};
use super::support::{Client, Keel};

const OBJECT: usize = 100_000;
const CLIENTS: usize = 24;

/// A store of 1 MiB, for objects of 128 KiB.
fn small(origin: &Origin) -> Keel {
    keel_with(origin, CachePolicy { ttl: None, ..CachePolicy::default() }, |config| {
        config.cache_store = CacheStoreConfig { memory: 1 << 20, object: 1 << 17 };
    })
}

/// So many bytes that belong to a path.
fn body(path: &str, length: usize) -> String {
    path.repeat(length / path.len() + 1)[..length].to_owned()
}

/// An origin whose answers come in two parts; the second one when `go` is passed.
fn halting(framing: &'static str, go: &Arc<Barrier>) -> Origin {
    let go = Arc::clone(go);
    Origin::scripted(move |got, _, stream| {
        let body = body(&got.path, OBJECT);
        let (first, rest) = body.split_at(70_000);
        let chunk = |bytes: &str| format!("{:x}\r\n{bytes}\r\n", bytes.len());
        let (line, first, rest) = match framing {
            "length" => (format!("Content-Length: {OBJECT}"), first.to_owned(), rest.to_owned()),
            "chunked" => ("Transfer-Encoding: chunked".to_owned(), chunk(first), chunk(rest) + "0\r\n\r\n"),
            _ => ("Connection: close".to_owned(), first.to_owned(), rest.to_owned()),
        };
        let head = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=100\r\n{line}\r\n\r\n");
        let _ = stream.write_all(format!("{head}{first}").as_bytes());
        go.wait();
        let _ = stream.write_all(rest.as_bytes());
        if framing == "until closed" {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    })
}

#[test]
fn a_store_that_is_full_of_what_is_coming_answers_everybody_whole() {
    let go = Arc::new(Barrier::new(CLIENTS + 2));
    let origin = halting("length", &go);
    let keel = small(&origin);
    let begin = |path: &str| {
        let mut client = keel.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n"));
        let head = client.take_until("\r\n\r\n");
        (client, path.to_owned(), head)
    };
    let mut clients: Vec<_> = (0..CLIENTS).map(|number| begin(&format!("/{number}/"))).collect();
    let stored = |head: &str| head.contains("; stored");
    let is_stored: Vec<bool> = clients.iter().map(|(_, _, head)| stored(head)).collect();
    assert_eq!(is_stored, [[true; 10].as_slice(), &[false; CLIENTS - 10]].concat(), "1 MiB has room for ten");
    clients.push(begin("/23/"));
    assert!(clients[CLIENTS].2.contains("; detail=no_room"), "it is wanted twice: {}", clients[CLIENTS].2);
    go.wait();
    for (client, path, head) in &mut clients {
        assert!(client.take(OBJECT) == body(path, OBJECT).as_bytes(), "{path}: {head}");
    }
    let hits = (0..10).map(|number| get(&mut keel.client(), &format!("/{number}/"), &[]));
    assert!(hits.into_iter().all(|(_, _, said)| said.starts_with("evenkeel; hit")));
}

#[test]
fn bodies_of_unknown_length_that_fill_the_store_are_whole_for_everybody() {
    for framing in ["chunked", "until closed"] {
        let go = Arc::new(Barrier::new(CLIENTS));
        let origin = halting(framing, &go);
        let keel = small(&origin);
        let address = keel.address();
        let ask = |number: usize| {
            move || {
                let path = format!("/{number}/");
                let (status, text, said) = get(&mut Client::connect(address), &path, &[]);
                assert!(
                    status == 200 && text == body(&path, OBJECT),
                    "{status}: {} bytes: {said}",
                    text.len()
                );
            }
        };
        let clients: Vec<_> = (0..CLIENTS).map(|number| thread::spawn(ask(number))).collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
    }
}

#[test]
fn what_is_large_and_wanted_once_is_not_stored_where_there_is_no_room() {
    let origin = Origin::scripted(|got, _, stream| {
        let length = if got.path.starts_with("/small") { 10_000 } else { OBJECT };
        write(stream, 200, &["Cache-Control: max-age=100"], &body(&got.path, length));
    });
    let keel = small(&origin);
    let mut client = keel.client();
    let mut ask = |path: &str, length| {
        let (status, text, said) = get(&mut client, path, &[]);
        assert!(status == 200 && text == body(path, length), "{status}: {} bytes", text.len());
        // Whether a second has passed meanwhile is nobody's business here.
        said.split("; ").filter(|said| !said.starts_with("ttl=")).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(ask("/first", OBJECT), "evenkeel; fwd=uri-miss; stored");
    for number in 0..200 {
        ask(&format!("/small/{number}"), 10_000);
    }
    for number in 0..20 {
        let said = ask(&format!("/large/{number}"), OBJECT);
        assert_eq!(said, "evenkeel; fwd=uri-miss; detail=wanted_once");
    }
    assert_eq!(ask("/small/199", 10_000), "evenkeel; hit");
    assert_eq!(ask("/large/19", OBJECT), "evenkeel; fwd=uri-miss; stored");
    assert_eq!(ask("/large/19", OBJECT), "evenkeel; hit");
}
