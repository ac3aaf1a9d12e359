//! What goes through unchanged: methods, statuses, headers, trailers, 1xx, targets, and what may not have a body.

use std::io::{Read, Write};

use fake_backend::{Behaviour, Ending, Fault, pattern};

use super::support::{Client, Keel, chunked, fakes, recording};

#[test]
fn every_method_arrives_as_it_was_sent() {
    let backend = recording();
    let keel = Keel::http(&[&backend]);
    let mut client = keel.client();
    let methods = "GET POST PUT PATCH DELETE OPTIONS TRACE PROPFIND MKCOL M-SEARCH get X";
    for method in methods.split(' ') {
        let answer = client.ask(&format!("{method} /a HTTP/1.1\r\nHost: test\r\n\r\n"));
        assert_eq!((answer.status, answer.text().as_str()), (200, "Hello from fake-1"), "{method}");
        let seen = backend.take_requests().pop().unwrap();
        assert!(seen.head_text().starts_with(&format!("{method} /a HTTP/1.1\r\n")), "{}", seen.head_text());
    }
}

#[test]
fn every_status_comes_back_with_its_reason_and_body() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    for status in (200..=999).filter(|status| ![204, 304].contains(status)).step_by(3) {
        let answer = client.get(&format!("/status/{status}"));
        assert_eq!((answer.status, answer.text().as_str()), (status, "Hello from fake-1"));
    }
    assert!(client.get("/status/418").head.starts_with("HTTP/1.1 418 I'm a teapot\r\n"));
    for status in [204, 304] {
        assert_eq!(client.get(&format!("/status/{status}")).status, status);
    }
    assert_eq!(client.get("/").text(), "Hello from fake-1");
    assert_eq!(backends[0].connections(), 1);
}

#[test]
fn redirects_of_the_backend_are_not_rewritten() {
    let backend = recording();
    let keel = Keel::http(&[&backend]);
    let bytes = b"HTTP/1.1 302 Found\r\nLocation: http://inside:1/b?c\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nContent-Length: 0\r\n\r\n";
    backend.behave(Behaviour::fault(Fault::Raw { bytes: bytes.to_vec(), ending: Ending::KeepOpen }));
    let answer = keel.client().get("/");
    assert_eq!((answer.status, answer.header("location")), (302, Some("http://inside:1/b?c")));
    let cookies = "Set-Cookie: a=b\r\nSet-Cookie: c=d\r\n";
    assert!(answer.head.contains(cookies), "repeated fields keep their order: {}", answer.head);
    assert!(answer.header("date").is_some(), "{}", answer.head);
}

#[test]
fn headers_of_the_request_keep_bytes_order_and_spelling() {
    let backend = recording();
    let keel = Keel::http(&[&backend]);
    let lines = "Host: Test.Example:80\r\nACCEPT: */*\r\nx-A:  two  blanks \r\nCookie: a=b\r\nCookie: c=d\r\nEmpty:\r\n";
    assert_eq!(keel.client().ask(&format!("GET /p//q/../r?x=%2F&y HTTP/1.1\r\n{lines}\r\n")).status, 200);
    let head = backend.take_requests().pop().unwrap().head_text();
    assert!(head.starts_with(&format!("GET /p//q/../r?x=%2F&y HTTP/1.1\r\n{lines}")), "{head}");
}

#[test]
fn trailers_go_both_ways() {
    let backend = recording();
    let keel = Keel::http(&[&backend]);
    let mut client = keel.client();
    let body = pattern(70_000);
    let head = "POST /echo HTTP/1.1\r\nHost: test\r\nTE: trailers\r\nConnection: TE\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n";
    client.send(head).send(chunked(&body, &[1, 1000, 30_000], "X-Sum: 42\r\nX-More: 1\r\n"));
    let answer = client.answer();
    assert_eq!(answer.trailers, "X-Sum: 42\r\nX-More: 1\r\n");
    assert!(answer.body == body && !answer.cut);
    let seen = backend.take_requests().pop().unwrap();
    assert_eq!(String::from_utf8_lossy(&seen.trailers), "X-Sum: 42\r\nX-More: 1\r\n");
    assert!(seen.body == body);
    assert_eq!((seen.header("te"), seen.header("trailer")), (vec!["trailers".into()], vec!["X-Sum".into()]));
    let down = client.get("/chunked/5000?trailer=1");
    assert_eq!((down.trailers.as_str(), down.body), ("X-Trailer: fake-1\r\n", pattern(5000)));
}

#[test]
fn early_hints_come_before_the_answer_but_not_to_http_1_0() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    let hints = client.get("/early-hints");
    assert_eq!((hints.status, hints.header("link")), (103, Some("</style.css>; rel=preload")));
    assert_eq!((hints.header("date"), hints.header("content-length")), (None, None));
    assert_eq!(client.answer().text(), "Hello from fake-1");
    let mut old = keel.client();
    let answer = old.send("GET /early-hints HTTP/1.0\r\nHost: test\r\n\r\n").answer();
    assert_eq!((answer.status, answer.text().as_str()), (200, "Hello from fake-1"));
    assert!(old.is_closed());
}

#[test]
fn head_has_the_head_of_get_and_no_body() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    for path in ["/bytes/70000", "/chunked/70000", "/"] {
        client.send(format!("HEAD {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let head = client.answer_to_head();
        let get = client.get(path);
        let framing = |answer: &super::support::Answer| {
            ["content-length", "transfer-encoding"].map(|name| answer.header(name).map(str::to_owned))
        };
        assert_eq!((head.status, framing(&head)), (200, framing(&get)), "{path}");
    }
}

#[test]
fn head_over_http_1_0_never_hears_of_chunks() {
    let backends = fakes(1);
    let bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    backends[0].behave(Behaviour::fault(Fault::Raw { bytes, ending: Ending::KeepOpen }));
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    let head = client.send("HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").answer_to_head();
    assert_eq!((head.status, head.header("transfer-encoding")), (200, None), "{}", head.head);
    assert!(client.is_closed());
}

#[test]
fn a_continue_is_passed_on_and_the_body_follows_it() {
    let backend = recording();
    let keel = Keel::http(&[&backend]);
    let mut client = keel.client();
    for body in ["hello", "again"] {
        client.send("POST / HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(client.answer().head, "HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(client.send(body).answer().status, 200);
        let seen = backend.take_requests().pop().unwrap();
        assert_eq!(
            (seen.body.as_slice(), seen.header("expect")),
            (body.as_bytes(), vec!["100-continue".into()])
        );
        // Its connection serves on; not for the next upload, where that takes none that has been idle for 20 ms.
        assert_eq!(client.get("/").status, 200);
        assert_eq!(backend.take_requests().pop().unwrap().connection, seen.connection);
    }
}

#[test]
fn an_early_answer_instead_of_a_continue_ends_the_connection() {
    let backends = fakes(1);
    backends[0].behave(Behaviour { status: 417, ..Behaviour::default().answering_early() });
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    let head = "POST / HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    let answer = client.send(head).answer();
    assert_eq!((answer.status, answer.header("connection")), (417, Some("close")));
    // The body that comes after all is neither a request nor a part of anybody's.
    client.send("GET /smuggled HTTP/1.1\r\nHost: test\r\n\r\n").finish_sending();
    assert!(client.is_closed());
    backends[0].behave(Behaviour::default());
    assert_eq!(keel.client().get("/").text(), "Hello from fake-1");
    assert_eq!(backends[0].requests(), 2);
}

#[test]
fn an_early_answer_to_a_small_upload_keeps_the_connection_usable() {
    let backends = fakes(1);
    backends[0].behave(Behaviour { status: 403, ..Behaviour::default().answering_early() });
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 20\r\n\r\n");
    assert_eq!(client.answer().status, 403);
    client.send("GET /smuggled HTTP/1");
    assert_eq!(client.get("/").status, 403);
    assert_eq!(backends[0].requests(), 2, "the late body is not a request");
}

#[test]
fn an_answer_that_ends_with_the_connection_does_so_here_too() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client: Client = keel.client();
    let answer = client.get("/close/300000");
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert!(!answer.cut && answer.body == pattern(300_000));
}

#[test]
fn hints_come_while_the_body_is_still_on_its_way_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let backend = std::thread::spawn(move || {
        let mut socket = super::support::accept(&listener);
        let mut seen = Vec::new();
        let mut read_until = |socket: &mut std::net::TcpStream, end: &[u8]| {
            while !seen.ends_with(end) {
                let mut space = [0u8; 1000];
                let count = socket.read(&mut space).unwrap();
                assert!(count > 0, "cut: {}", String::from_utf8_lossy(&seen));
                seen.extend_from_slice(&space[..count]);
            }
        };
        read_until(&mut socket, b"first");
        socket.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n").unwrap();
        read_until(&mut socket, b"second");
        socket
            .write_all(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello")
            .unwrap();
        read_until(&mut socket, b"third");
        socket.write_all(b" world").unwrap();
    });
    let keel = Keel::start(&super::support::config(evenkeel::config::model::Protocol::Http, &[address]));
    let mut client = keel.client();
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 16\r\n\r\nfirst");
    assert_eq!(client.answer().header("link"), Some("</a>"));
    client.send("second");
    assert_eq!(client.answer().status, 102);
    assert_eq!(client.take(15), b"HTTP/1.1 200 OK");
    client.send("third");
    let end = "hello world";
    let rest = client.take_until(end);
    assert!(rest.ends_with(end), "{rest}");
    backend.join().unwrap();
}
