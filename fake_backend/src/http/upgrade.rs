//! Another protocol after `101 Switching Protocols`: bytes are sent back as they come, or, for WebSocket,
//! frames are (RFC 6455 §5), unmasked, with pings answered and the closing handshake. Called by `turn`.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use super::turn::{Next, Turn};
use crate::behaviour::Ending;
use crate::tcp;
use crate::wire::Wire;

/// What is appended to the client's key (RFC 6455 §1.3).
const SALT: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The largest frame that is sent back.
const LARGEST_FRAME: u64 = 64 * 1024 * 1024;
/// Bytes read at a time.
const READ: usize = 16 * 1024;

const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// Agrees to the protocol the client asked for and speaks it to its end.
pub(crate) async fn switch(turn: &mut Turn<'_>, frames: bool) -> io::Result<Next> {
    let protocol = turn.request.upgrade.clone().unwrap_or_default();
    let accept = turn.request.websocket_key.as_ref().map_or_else(String::new, |key| {
        let digest = Sha1::digest(format!("{key}{SALT}"));
        format!("Sec-WebSocket-Accept: {}\r\n", STANDARD.encode(digest))
    });
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: {protocol}\r\nConnection: upgrade\r\n{accept}X-Backend: {}\r\n\r\n",
        turn.state.id
    );
    turn.wire.send(head.as_bytes()).await?;
    if frames {
        echo_frames(turn.wire).await?;
    } else {
        tcp::echo(turn.wire).await?;
    }
    Ok(Next::End(Ending::Close))
}

async fn echo_frames(wire: &mut Wire) -> io::Result<()> {
    loop {
        while let Some((frame, used)) = read_frame(wire.pending())? {
            wire.consume(used);
            let first = match frame.first & 0x0f {
                PING => (frame.first & 0xf0) | PONG,
                PONG => continue,
                _ => frame.first,
            };
            wire.send(&write_frame(first, &frame.payload)).await?;
            if first & 0x0f == CLOSE {
                return Ok(());
            }
        }
        if wire.fill(READ).await? == 0 {
            return Ok(());
        }
    }
}

/// A frame, unmasked.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    /// FIN, reserved bits and opcode.
    first: u8,
    payload: Vec<u8>,
}

/// The frame at the start and its length on the wire, or `None` when it is not complete.
fn read_frame(input: &[u8]) -> io::Result<Option<(Frame, usize)>> {
    let [first, second, rest @ ..] = input else { return Ok(None) };
    let (length, rest) = match second & 0x7f {
        126 => match rest.split_first_chunk::<2>() {
            Some((length, rest)) => (u64::from(u16::from_be_bytes(*length)), rest),
            None => return Ok(None),
        },
        127 => match rest.split_first_chunk::<8>() {
            Some((length, rest)) => (u64::from_be_bytes(*length), rest),
            None => return Ok(None),
        },
        length => (u64::from(length), rest),
    };
    if length > LARGEST_FRAME {
        return Err(io::Error::other("a frame is too large"));
    }
    let (mask, rest) = if second & 0x80 == 0 {
        ([0; 4], rest)
    } else {
        match rest.split_first_chunk::<4>() {
            Some((mask, rest)) => (*mask, rest),
            None => return Ok(None),
        }
    };
    // At most 64 MiB, see above.
    let length = length as usize;
    if rest.len() < length {
        return Ok(None);
    }
    let payload = rest[..length].iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    let used = input.len() - rest.len() + length;
    Ok(Some((Frame { first: *first, payload }, used)))
}

fn write_frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..=125 => bytes.push(length as u8),
        length @ 126..=0xffff => {
            bytes.push(126);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_every_length_are_read_back() {
        for length in [0, 1, 125, 126, 65_535, 65_536] {
            let payload = crate::pattern(length);
            let bytes = write_frame(0x82, &payload);
            assert_eq!(read_frame(&bytes[..bytes.len() - 1]).expect("it is short, not wrong"), None);
            let (frame, used) = read_frame(&bytes).expect("it is right").expect("it is complete");
            assert_eq!((frame.first, frame.payload, used), (0x82, payload, bytes.len()));
        }
    }

    #[test]
    fn masks_are_taken_off() {
        // The masked "Hello" of RFC 6455 §5.7.
        let bytes = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        let (frame, _) = read_frame(&bytes).expect("it is right").expect("it is complete");
        assert_eq!(frame.payload, b"Hello");
    }
}
