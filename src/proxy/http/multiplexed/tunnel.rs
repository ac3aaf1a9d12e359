//! A WebSocket on a stream of HTTP/2 (RFC 8441): what its client asks for as HTTP/1.1 has it, and the stream as a stream of bytes.

use std::cell::RefMut;
use std::rc::Rc;

use crate::message::{Head, HeaderField};
use crate::proxy::http::h2::engine::Engine;
use crate::proxy::http::h2::engine::to_client::ToClient;
use crate::proxy::http::h2::session::Http2Session;
use crate::proxy::http::h2::stream_bytes::OnStream;
use crate::proxy::http::websocket::handshake;
use crate::targets::Chance;

/// Makes the head of an extended CONNECT, which asks for a change of protocol by then, whole: with a key. What a backend has to answer to
/// that; `None`: it is no such head.
pub(super) fn complete(head: &mut Head, chance: &Chance) -> Option<String> {
    if !head.has(HeaderField::Upgrade) {
        return None;
    }
    let key = handshake::key([chance.bits(), chance.bits()]);
    head.push(handshake::KEY.as_bytes(), key.as_bytes());
    Some(handshake::accept(key.as_bytes()))
}

/// The answer to it, from the 101 of a backend; `None`: the backend has not understood.
pub(super) fn accepted(head: &Head, expected: &str) -> Option<Head> {
    if head.named(handshake::ACCEPT) != Some(expected.as_bytes()) {
        return None;
    }
    // A length says nothing about what follows (RFC 9110 §9.3.6).
    let is_left_out = |name: &[u8]| {
        [handshake::ACCEPT.as_bytes(), b"content-length"].iter().any(|other| name.eq_ignore_ascii_case(other))
    };
    let mut answer = head.without(is_left_out);
    answer.status = 200;
    Some(answer)
}

/// A stream of a client. Whoever serves it resets it.
pub(super) struct ClientStream {
    /// Its connection.
    pub(super) session: Rc<Http2Session>,
    /// Its number.
    pub(super) id: u32,
}

impl OnStream for ClientStream {
    type Side = ToClient;

    fn id(&self) -> u32 {
        self.id
    }

    fn engine(&self) -> RefMut<'_, Engine<ToClient>> {
        self.session.engine()
    }

    fn stir(&self) {
        self.session.stir();
    }
}
