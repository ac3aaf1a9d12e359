//! The heads of WebSocket frames: in whatever pieces bytes come, their frames begin at the same places.

use evenkeel::net::relay::Follow as _;
use evenkeel::proxy::http::websocket::frames::{FrameSender, Frames};

/// Any bytes as the frames of one direction. The first byte says whose, and how large the pieces are.
pub fn websocket(bytes: &[u8]) {
    let Some((&choice, input)) = bytes.split_first() else { return };
    let sender = if choice & 1 == 0 { FrameSender::Client } else { FrameSender::Backend };
    let starts = starts(input, sender);
    let size = 1 + usize::from(choice >> 1);
    let mut frames = Frames::of(sender);
    let mut at = 0;
    for piece in input.chunks(size) {
        let next = starts.iter().find(|start| **start >= at).map(|start| start - at);
        assert_eq!(frames.gap(&input[at..]), next, "at {at}");
        let blind = frames.unseen().min(piece.len());
        if !frames.is_over() && !frames.is_lost() {
            frames.skip(blind);
            frames.see(&piece[blind..]);
        }
        at += piece.len();
    }
    let mut whole = Frames::of(sender);
    whole.see(input);
    assert_eq!((whole.is_over(), whole.is_lost()), (frames.is_over(), frames.is_lost()));
    assert_eq!(whole.gap(&[]), frames.gap(&[]));
}

/// Where frames begin, or would, as a reader finds them that has all bytes at once.
fn starts(bytes: &[u8], sender: FrameSender) -> Vec<usize> {
    let (mut starts, mut at) = (vec![0], 0usize);
    let number = |at: usize, count: usize| {
        let digits = bytes.get(at..at.checked_add(count)?)?;
        Some(digits.iter().fold(0u64, |number, digit| number << 8 | u64::from(*digit)))
    };
    while let (Some(first), Some(second)) = (number(at, 1), number(at + 1, 1)) {
        let (count, least) = match second & 127 {
            126 => (2, 126),
            127 => (8, 65_536),
            _ => (0, 0),
        };
        let length = if count == 0 { Some(second & 127) } else { number(at + 2, count) };
        let masked = second >= 128;
        let head = 2 + count + if masked { 4 } else { 0 };
        let Some(length) = length else { break };
        let control = first & 8 != 0;
        if bytes.len() - at < head
            || masked != (sender == FrameSender::Client)
            || length < least
            || length > i64::MAX as u64
            || control && (length > 125 || first < 128)
        {
            break;
        }
        let Some(end) = usize::try_from(length).ok().and_then(|length| (at + head).checked_add(length))
        else {
            break;
        };
        if end > bytes.len() || first & 15 == 8 {
            break;
        }
        starts.push(end);
        at = end;
    }
    starts
}
