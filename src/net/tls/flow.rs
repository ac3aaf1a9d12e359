use std::io::{Read as _, Write as _};

use super::fixture::{Far, once, pair, read_now, settle, strangers};
use super::*;

/// What the far end's socket holds, as it came.
fn raw(far: &mut Far) -> Vec<u8> {
    let mut bytes = Vec::new();
    match far.socket.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
    }
    bytes
}

/// The lengths of the records in there.
fn records(mut bytes: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = bytes {
        let length = usize::from(*high) << 8 | usize::from(*low);
        lengths.push(length);
        bytes = &rest[length..];
    }
    lengths
}

/// What the far end reads in these records.
fn content(far: &mut Far, mut bytes: &[u8]) -> Vec<u8> {
    let mut came = Vec::new();
    while !bytes.is_empty() {
        far.session.read_tls(&mut bytes).expect("from memory");
        far.session.process_new_packets().expect("sound records");
        came.extend(far.read().0);
    }
    came
}

async fn write_now(near: &mut Tls, parts: &[&[u8]]) -> usize {
    let parts: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
    match once(|cx| near.poll_write(cx, &parts)).await {
        Poll::Ready(count) => count.expect("an open socket"),
        Poll::Pending => panic!("there is room"),
    }
}

#[tokio::test]
async fn what_is_written_at_once_leaves_in_as_few_records_as_can_be() {
    let body: Vec<u8> = (0..65_536u32).map(|at| (at % 251) as u8).collect();
    for (lengths, full, last) in [
        (&[300, 1_000, 7][..], 0, 1_307),
        (&[300, 65_000, 7], 3, 65_307 - 3 * 16_384),
        (&[16_384], 1, 0),
        (&[65_536], 4, 0),
        (&[300, 65_536], 4, 300),
        (&[16_383, 2, 16_383], 2, 0),
        (&[0, 5, 0], 0, 5),
    ] {
        let (mut near, mut far) = pair().await;
        raw(&mut far);
        let parts: Vec<_> = lengths.iter().map(|&length| &body[..length]).collect();
        assert_eq!(write_now(&mut near, &parts).await, lengths.iter().sum::<usize>());
        let bytes = raw(&mut far);
        // A byte for the kind and 16 for the tag come to the content (RFC 8446 §5.2).
        let mut expected = vec![16_384 + 17; full];
        expected.extend((last > 0).then_some(last + 17));
        assert_eq!(records(&bytes), expected, "{lengths:?}");
        assert!(content(&mut far, &bytes) == parts.concat(), "{lengths:?}");
    }
}

#[tokio::test]
async fn more_than_can_be_encrypted_at_once_is_taken_in_part() {
    let (mut near, mut far) = pair().await;
    raw(&mut far);
    let body: Vec<u8> = (0..60_000u32).map(|at| (at % 251) as u8).collect();
    assert_eq!(write_now(&mut near, &[&body, &body]).await, 5 * 16_384);
    let bytes = raw(&mut far);
    assert!(content(&mut far, &bytes) == [&body[..], &body].concat()[..5 * 16_384]);
}

#[tokio::test]
async fn whatever_space_the_reader_has_every_byte_comes_once_and_in_order() {
    let sent: Vec<u8> = (0..50_000u32).map(|at| (at % 251) as u8).collect();
    for most in [1_000, 4_096, 20_000, 65_536] {
        let (mut near, mut far) = pair().await;
        let mut came = Vec::new();
        for piece in sent.chunks(25_000) {
            far.write(piece);
            settle().await;
            while let Poll::Ready(read) = read_now(&mut near, most) {
                came.extend(read.expect("sound records"));
            }
        }
        assert!(came == sent, "{} bytes by {most}", came.len());
        assert!(!near.has_leftover() && near.is_silent());
    }
}

#[tokio::test]
async fn what_came_before_a_bad_record_is_read_before_the_fault() {
    let (mut near, mut far) = pair().await;
    far.session.writer().write_all(b"good").expect("taken");
    let mut bytes = Vec::new();
    far.session.write_tls(&mut bytes).expect("into memory");
    far.session.writer().write_all(b"bad").expect("taken");
    far.session.write_tls(&mut bytes).expect("into memory");
    *bytes.last_mut().expect("records") ^= 1;
    far.socket.write_all(&bytes).expect("room");
    settle().await;
    assert!(matches!(read_now(&mut near, 100), Poll::Ready(Ok(came)) if came == b"good"));
    for _ in 0..2 {
        let Poll::Ready(Err(error)) = read_now(&mut near, 100) else { panic!("then it fails") };
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
    let written = once(|cx| near.poll_write(cx, &[IoSlice::new(b"x")])).await;
    assert!(matches!(written, Poll::Ready(Err(_))), "and stays broken");
}

#[tokio::test]
async fn a_session_that_waits_owns_no_buffer() {
    let (mut near, mut far) = pair().await;
    far.write(&[b'x'; 20_000]);
    settle().await;
    let mut came = 0;
    while let Poll::Ready(read) = read_now(&mut near, 3_000) {
        came += read.expect("sound records").len();
    }
    write_now(&mut near, &[&[b'y'; 20_000]]).await;
    let owned = near.held.capacity() + near.content.capacity() + near.out.capacity();
    assert_eq!((came, owned), (20_000, 0));
}

#[tokio::test]
async fn tickets_go_out_at_once_also_when_something_was_asked_already() {
    for request in [&b""[..], b"ping"] {
        let (mut near, mut far) = strangers();
        far.send();
        settle().await;
        assert!(once(|cx| near.poll_handshake(cx)).await.is_pending(), "the client has not answered");
        far.take_in().expect("a sound server");
        far.session.writer().write_all(request).expect("taken");
        far.send();
        settle().await;
        assert!(matches!(once(|cx| near.poll_handshake(cx)).await, Poll::Ready(Ok(()))));
        assert!(!raw(&mut far).is_empty(), "by Nagle's rule a client may wait for them before it asks on");
        assert_eq!(near.has_leftover(), !request.is_empty());
        if !request.is_empty() {
            assert!(matches!(read_now(&mut near, 100), Poll::Ready(Ok(came)) if came == request));
        }
    }
}
