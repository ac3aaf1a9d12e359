//! Frames in pieces of any size, and what is no frame.

use proptest::prelude::*;

use super::*;

/// A frame with a payload of zeros, in the shortest form.
fn frame(sender: FrameSender, first: u8, length: usize) -> Vec<u8> {
    let mask = if sender == FrameSender::Client { 0x80 } else { 0 };
    let mut bytes = vec![first];
    match length {
        0..=125 => bytes.push(mask | length as u8),
        126..=65_535 => {
            bytes.push(mask | 126);
            bytes.extend((length as u16).to_be_bytes());
        }
        _ => {
            bytes.push(mask | 127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    if sender == FrameSender::Client {
        bytes.extend([1, 2, 3, 4]);
    }
    bytes.resize(bytes.len() + length, 0);
    bytes
}

fn after(sender: FrameSender, bytes: &[u8]) -> State {
    let mut frames = Frames::of(sender);
    frames.see(bytes);
    frames.state
}

#[test]
fn the_examples_of_the_rfc_are_frames() {
    // RFC 6455 §5.7.
    let unmasked: &[&[u8]] = &[
        b"\x81\x05Hello",
        b"\x01\x03Hel",
        b"\x80\x02lo",
        b"\x89\x05Hello",
        &frame(FrameSender::Backend, 0x82, 256),
        &frame(FrameSender::Backend, 0x82, 65_536),
    ];
    for bytes in unmasked {
        assert_eq!(after(FrameSender::Backend, bytes), State::Head(0), "{:?}", &bytes[..2]);
        assert_eq!(after(FrameSender::Client, bytes), State::Lost, "a client masks: {:?}", &bytes[..2]);
    }
    let masked = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
    assert_eq!(after(FrameSender::Client, masked), State::Head(0));
    assert_eq!(after(FrameSender::Backend, masked), State::Lost);
}

#[test]
fn what_is_no_frame_ends_the_following_for_good() {
    for (bytes, what) in [
        (&b"\x88\x7e\x00\x7e"[..], "a control frame of 126 bytes"),
        (b"\x09\x00", "a fragment of a control frame"),
        (b"\x82\x7e\x00\x7d", "125 in 16 bits"),
        (b"\x82\x7f\0\0\0\0\0\0\xff\xff", "65535 in 64 bits"),
        (b"\x82\x7f\x80\0\0\0\0\0\0\0", "a length with the first bit"),
    ] {
        let mut frames = Frames::of(FrameSender::Backend);
        frames.see(bytes);
        assert!(frames.is_lost(), "{what}");
        frames.see(b"\x81\x00");
        assert!(frames.is_lost() && !frames.is_over() && frames.gap(b"\x81\x00").is_none(), "{what}");
    }
}

#[test]
fn reserved_bits_and_opcodes_are_the_business_of_extensions() {
    for first in [0xc1, 0xf2, 0x73, 0x87, 0xcb] {
        assert_eq!(
            after(FrameSender::Backend, &frame(FrameSender::Backend, first, 7)),
            State::Head(0),
            "{first:x}"
        );
    }
}

#[test]
fn a_close_is_the_last_frame() {
    for (sender, length) in [
        (FrameSender::Client, 0),
        (FrameSender::Client, 2),
        (FrameSender::Backend, 0),
        (FrameSender::Backend, 125),
    ] {
        let bytes = frame(sender, 0x88, length);
        let mut frames = Frames::of(sender);
        frames.see(&bytes[..bytes.len() - 1]);
        assert!(!frames.is_over() && frames.gap(&[]).is_none());
        frames.see(&bytes[bytes.len() - 1..]);
        assert!(frames.is_over());
        frames.see(b"anything");
        assert!(frames.is_over() && frames.gap(&[]).is_none(), "nothing is between what follows");
    }
}

#[test]
fn a_gap_is_where_the_frame_that_has_begun_ends() {
    let mut frames = Frames::of(FrameSender::Backend);
    assert_eq!(frames.gap(b"\x81\x01"), Some(0), "none has begun");
    frames.see(b"\x81");
    assert_eq!(frames.gap(b""), None);
    assert_eq!(frames.gap(b"\x03abc\x81\x00"), Some(4));
    assert_eq!(frames.gap(b"\x03ab"), None);
    assert_eq!(frames.gap(b"\x00\x81\x00"), Some(1));
    frames.see(b"\x7e\x01\x00x");
    assert_eq!(frames.unseen(), 255);
    frames.skip(254);
    assert_eq!((frames.unseen(), frames.gap(b"y\x81\x00")), (1, Some(1)));
    frames.skip(1);
    assert_eq!((frames.unseen(), frames.gap(b"")), (0, Some(0)));
}

fn sender() -> impl Strategy<Value = FrameSender> {
    prop_oneof![Just(FrameSender::Client), Just(FrameSender::Backend)]
}

proptest! {
    /// Whatever the pieces: after each of them it is known where the next frame begins, and of payloads nothing was read.
    #[test]
    fn frames_in_any_pieces_are_followed(
        sender in sender(),
        frames in proptest::collection::vec(
            (prop_oneof![Just(0x81u8), Just(0x02), Just(0x80), Just(0x89), Just(0xc1)],
             prop_oneof![0usize..130, 65_530usize..65_540]), 1..6),
        cuts in proptest::collection::vec(1usize..70_000, 1..20),
        skips in any::<bool>(),
    ) {
        let mut bytes = Vec::new();
        let mut ends = vec![0];
        for (first, length) in frames {
            let length = if first == 0x89 { length.min(125) } else { length };
            bytes.extend(frame(sender, first, length));
            ends.push(bytes.len());
        }
        let mut follower = Frames::of(sender);
        let (mut at, mut cut) = (0, cuts.iter().cycle());
        while at < bytes.len() {
            let next = *ends.iter().find(|end| **end >= at).expect("the last one");
            prop_assert_eq!(follower.gap(&bytes[at..]), Some(next - at));
            prop_assert_eq!(follower.gap(&bytes[at..next]), Some(next - at));
            let size = (*cut.next().expect("a cycle")).min(bytes.len() - at);
            let unseen = follower.unseen().min(size);
            if skips && unseen > 0 {
                follower.skip(unseen);
                at += unseen;
            } else {
                follower.see(&bytes[at..at + size]);
                at += size;
            }
        }
        prop_assert_eq!(follower.state, State::Head(0));
    }

    #[test]
    fn any_bytes_are_read_alike_in_any_pieces(
        sender in sender(),
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        size in 1usize..20,
    ) {
        let mut pieces = Frames::of(sender);
        bytes.chunks(size).for_each(|piece| pieces.see(piece));
        prop_assert_eq!(pieces.state, after(sender, &bytes));
        if let Some(at) = pieces.gap(&bytes) {
            pieces.see(&bytes[..at]);
            prop_assert_eq!(pieces.state, State::Head(0));
        }
    }
}
