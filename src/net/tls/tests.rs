use std::future::poll_fn;
use std::io::Write as _;

use rustls::AlertDescription;

use super::fixture::{Far, acquainted, once, pair, read_now, settle, strangers, strangers_who_offer};
use super::*;

/// Writes until the peer's socket is full, and gives what was reported as written and what is on its way.
async fn fill(near: &mut Tls) -> (Vec<u8>, Vec<u8>) {
    let mut written = Vec::new();
    for round in 0.. {
        let piece: Vec<u8> = (0..9_000u32).map(|at| (at ^ round) as u8).collect();
        match once(|cx| near.poll_write(cx, &[IoSlice::new(&piece)])).await {
            Poll::Ready(count) => written.extend_from_slice(&piece[..count.expect("an open socket")]),
            Poll::Pending => return (written, piece),
        }
    }
    unreachable!("no socket holds everything")
}

fn readable(near: &Tls) -> bool {
    near.poll_readable(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn a_blocked_write_goes_on_with_the_same_bytes_and_sends_each_once() {
    let (mut near, mut far) = pair().await;
    assert!(!near.is_writing());
    let (mut expected, piece) = fill(&mut near).await;
    assert!(near.is_writing(), "its records are not all out");
    assert!(once(|cx| near.poll_write(cx, &[IoSlice::new(&piece)])).await.is_pending(), "nobody has read");
    let mut came = Vec::new();
    let count = loop {
        came.extend(far.read().0);
        settle().await;
        match once(|cx| near.poll_write(cx, &[IoSlice::new(&piece)])).await {
            Poll::Ready(count) => break count.expect("an open socket"),
            Poll::Pending => {}
        }
    };
    assert!(!near.is_writing());
    expected.extend_from_slice(&piece[..count]);
    came.extend(far.read().0);
    assert!(came == expected, "{} bytes of {}", came.len(), expected.len());
}

#[tokio::test]
async fn a_session_is_http_2_where_both_sides_have_agreed_on_it() {
    for (ours, theirs, is_http2) in [
        (&["h2", "http/1.1"][..], &["http/1.1", "h2"][..], true),
        (&["http/1.1", "h2"], &["h2", "http/1.1"], false),
        (&["h2", "http/1.1"], &["http/1.1"], false),
        (&["h2", "http/1.1"], &[], false),
        (&[], &["h2"], false),
    ] {
        let strangers = strangers_who_offer([ours, theirs]);
        assert!(!strangers.0.is_http2(), "nothing is agreed on before");
        let (near, _far) = acquainted(strangers).await;
        assert_eq!(near.is_http2(), is_http2, "{ours:?} {theirs:?}");
    }
}

#[tokio::test]
async fn dropping_ends_the_session_cleanly() {
    let (near, mut far) = pair().await;
    drop(near);
    assert_eq!(far.read(), (Vec::new(), None), "close_notify");
}

#[tokio::test]
async fn an_abort_does_not_look_like_an_end() {
    let (near, mut far) = pair().await;
    near.reset_on_close();
    drop(near);
    assert_eq!(far.read().1, Some(io::ErrorKind::UnexpectedEof));
}

#[tokio::test]
async fn a_panic_does_not_look_like_an_end() {
    let (near, mut far) = pair().await;
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _near = near;
        panic!("this panic is wanted");
    }));
    assert!(panicked.is_err());
    assert_eq!(far.read().1, Some(io::ErrorKind::UnexpectedEof));
}

#[tokio::test]
async fn a_write_that_is_cut_in_the_middle_does_not_look_like_an_end() {
    let (mut near, mut far) = pair().await;
    let (written, piece) = fill(&mut near).await;
    drop(near);
    let (came, end) = far.read();
    assert_eq!(end, Some(io::ErrorKind::UnexpectedEof));
    assert!(came.len() < written.len() + piece.len());
}

#[tokio::test]
async fn the_end_waits_for_room_like_any_other_bytes() {
    let (mut near, mut far) = pair().await;
    let (written, piece) = fill(&mut near).await;
    assert!(once(|cx| near.poll_close_notify(cx)).await.is_pending());
    let mut came = Vec::new();
    while once(|cx| near.poll_close_notify(cx)).await.is_pending() {
        came.extend(far.read().0);
        settle().await;
    }
    let (rest, end) = far.read();
    came.extend(rest);
    assert_eq!((came.len(), end), (written.len() + piece.len(), None));
}

#[tokio::test]
async fn a_peer_that_ends_without_close_notify_has_cut_the_connection() {
    let (mut near, mut far) = pair().await;
    far.write(b"half of it");
    drop(far);
    settle().await;
    let Poll::Ready(Ok(came)) = read_now(&mut near, 100) else { panic!("what came before it can be read") };
    assert_eq!(came, b"half of it");
    let Poll::Ready(Err(error)) = read_now(&mut near, 100) else { panic!("then it fails") };
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);

    let (mut near, mut far) = pair().await;
    far.session.send_close_notify();
    far.send();
    drop(far);
    settle().await;
    assert!(matches!(read_now(&mut near, 100), Poll::Ready(Ok(came)) if came.is_empty()), "this is an end");
    assert!(readable(&near) && !near.is_silent());
}

#[tokio::test]
async fn decrypted_bytes_that_nobody_has_read_are_no_silence() {
    let (mut near, mut far) = pair().await;
    assert!(near.is_silent());
    far.write(b"0123456789");
    assert!(!near.is_silent(), "the kernel has them");
    settle().await;
    assert!(matches!(read_now(&mut near, 3), Poll::Ready(Ok(came)) if came == b"012"));
    assert!(readable(&near) && !near.is_silent(), "the session has the rest");
    assert!(matches!(read_now(&mut near, 100), Poll::Ready(Ok(came)) if came == b"3456789"));
    assert!(read_now(&mut near, 100).is_pending() && near.is_silent());
}

#[tokio::test]
async fn a_part_of_a_record_gives_no_byte_and_no_end() {
    let (mut near, mut far) = pair().await;
    far.session.writer().write_all(b"whole").expect("taken");
    let mut record = Vec::new();
    far.session.write_tls(&mut record).expect("into memory");
    far.socket.write_all(&record[..9]).expect("room");
    settle().await;
    assert!(read_now(&mut near, 100).is_pending());
    settle().await;
    assert!(!readable(&near), "a reader who waits is not woken again and again");
    far.socket.write_all(&record[9..]).expect("room");
    settle().await;
    assert!(matches!(read_now(&mut near, 100), Poll::Ready(Ok(came)) if came == b"whole"));
}

/// The alert that the far end reads.
fn alert(far: &mut Far) -> Option<AlertDescription> {
    match far.take_in() {
        Err(rustls::Error::AlertReceived(alert)) => Some(alert),
        _ => None,
    }
}

#[tokio::test]
async fn a_record_that_was_tampered_with_is_an_error_and_the_peer_is_told() {
    let (mut near, mut far) = pair().await;
    far.session.writer().write_all(b"whole").expect("taken");
    let mut record = Vec::new();
    far.session.write_tls(&mut record).expect("into memory");
    *record.last_mut().expect("a record") ^= 1;
    far.socket.write_all(&record).expect("room");
    settle().await;
    let Poll::Ready(Err(error)) = read_now(&mut near, 100) else { panic!("it fails") };
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert_eq!(alert(&mut far), Some(AlertDescription::BadRecordMac));
}

/// What a handshake comes to that starts with these bytes and ends there, or not.
async fn handshake(bytes: &[u8]) -> TlsBroken {
    let (mut near, mut far) = strangers();
    let mut rest = bytes;
    loop {
        match far.socket.write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        settle().await;
        match once(|cx| near.poll_handshake(cx)).await {
            Poll::Ready(outcome) => return outcome.expect_err("no handshake"),
            Poll::Pending => assert!(!rest.is_empty(), "it waits for more than there is"),
        }
    }
}

#[tokio::test]
async fn a_message_that_is_too_long_is_the_peers_fault_and_not_the_sockets() {
    // A ClientHello of 65,500 bytes in records of 16,000: no session holds so much, and none needs it.
    let mut message = vec![1, 0, 0xff, 0xdc];
    message.resize(65_504, 0);
    let records: Vec<u8> = message
        .chunks(16_000)
        .flat_map(|chunk| {
            let mut record = vec![22, 3, 1];
            record.extend_from_slice(&u16::try_from(chunk.len()).expect("short").to_be_bytes());
            record.extend_from_slice(chunk);
            record
        })
        .collect();
    assert!(matches!(handshake(&records).await, TlsBroken::Protocol(_)));
}

#[tokio::test]
async fn a_handshake_that_the_peer_leaves_is_told_from_one_that_went_wrong() {
    let (mut near, mut far) = strangers();
    far.session.write_tls(&mut far.socket).expect("room");
    let Far { socket, .. } = far;
    drop(socket);
    let outcome = poll_fn(|cx| near.poll_handshake(cx)).await;
    assert!(matches!(outcome, Err(TlsBroken::Closed(_))), "{outcome:?}");
    assert!(matches!(handshake(b"GET / HTTP/1.1\r\n\r\n").await, TlsBroken::Protocol(_)));
}
