//! Bodies in pieces, bodies without an end, bodies that break off.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use super::*;

fn wants(body: &str) -> ProbeQuestion {
    ProbeQuestion {
        path: "/".into(),
        host: "app".into(),
        wire: ProbeWire::Http1,
        is_secure: false,
        expect: vec![200..=299],
        body: Some(body.into()),
    }
}

/// What is made of an answer that comes in these pieces, each read before the next one is sent. `hold`: the connection
/// stays open behind them.
async fn judged(wanted: &str, pieces: &[&[u8]], hold: bool) -> Finding {
    let (ours, mut theirs) = duplex(1);
    let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
    let server = tokio::spawn(async move {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(theirs.read_u8().await.expect("a whole head"));
        }
        for piece in pieces {
            // The probe may have seen enough.
            if theirs.write_all(&piece).await.is_err() {
                return;
            }
        }
        if hold {
            let _ = theirs.read_u8().await;
        }
    });
    let finding = wants(wanted).put(ours).await;
    server.await.expect("no panic");
    finding
}

fn good() -> Finding {
    Finding::Verdict(Verdict::Good)
}

#[tokio::test]
async fn the_text_may_stand_anywhere_in_a_body_of_any_framing() {
    for pieces in [
        &[&b"HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{\"status\": \"ok!\"}"[..]][..],
        &[b"HTTP/1.1 200 OK\r\n\r\n\"ok!"],
        &[
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"1\r\n\"\r\n1\r\no\r\n2\r\nk!\r\n0\r\n\r\n",
        ],
    ] {
        assert_eq!(judged("\"ok!", pieces, false).await, good(), "{pieces:?}");
    }
}

#[tokio::test]
async fn what_comes_behind_the_text_is_not_awaited() {
    let endless = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nall is ok, and";
    assert_eq!(judged("ok", &[endless], true).await, good());
}

#[tokio::test]
async fn a_body_without_the_text_is_told() {
    let lacks = Finding::bad("the body lacks \"ok\\n\"");
    for pieces in [
        &[&b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\no ok\r"[..]][..],
        &[b"HTTP/1.1 200 OK\r\n\r\n"],
        &[b"HTTP/1.1 204 No Content\r\n\r\n"],
        &[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nok: ok\r\n\r\n"],
    ] {
        assert_eq!(judged("ok\n", pieces, false).await, lacks, "{pieces:?}");
    }
    let long = judged(&"é".repeat(60), &[b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"], false).await;
    assert_eq!(long, Finding::bad(format!("the body lacks {:?}", format!("{}…", "é".repeat(40)))));
}

#[tokio::test]
async fn no_more_than_64_kib_are_looked_at() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n";
    let mut body = vec![b'.'; 70_000];
    body[BODY_SIZE - 2..BODY_SIZE].copy_from_slice(b"ok");
    assert_eq!(judged("ok", &[head, &body], true).await, good());
    body.rotate_right(1);
    let lacks = Finding::bad("the body's first 64 KiB lack \"ok\"");
    assert_eq!(judged("ok", &[head, &body], true).await, lacks, "it ends one byte behind them");
}

#[tokio::test]
async fn a_status_that_is_not_good_is_the_reason_whatever_the_body_says() {
    let finding = judged("ok", &[b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nok"], false).await;
    assert_eq!(finding, Finding::bad("status 500, expected 200-299"));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_told() {
    for pieces in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nno"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nno",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno\r\n",
    ] {
        let finding = judged("ok", &[pieces], false).await;
        assert_eq!(finding, Finding::bad("the answer's body broke off"), "{}", pieces.escape_ascii());
    }
}
