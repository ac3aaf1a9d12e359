//! A second reader of HTTP/1.1 messages, written from the grammar of RFC 9112, 9110 and 3986, byte by byte.
//!
//! It shares no code with evenkeel and none with httparse, refuses whatever the grammar does not derive, and is
//! made to be compared with, not to be fast. Where it is milder than the grammar, the place says so and why the
//! reading of the message can't depend on it.

mod body;
mod cursor;
mod grammar;
mod head;

pub use body::{Body, body};
pub use head::{Answer, Form, Length, Request, answer, request};

/// Why there is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The message may go on behind the input.
    Incomplete,
    /// The grammar does not derive it; the rule that failed.
    Refused(&'static str),
}

/// Name and value of a field, the value without blanks around it.
pub type Field = (Vec<u8>, Vec<u8>);
