//! What comes of asking a client who it is.

use crate::message::Head;

use super::Denial;

/// A client that has shown who it is.
#[derive(Debug, Default)]
pub struct Authenticated {
    /// Its name, for the log and for texts.
    pub user: Option<String>,
    /// Lines by which its backend is told: names and values.
    pub lines: Vec<(String, Vec<u8>)>,
    /// Values of `Set-Cookie` that it gets with its answer.
    pub cookies: Vec<Vec<u8>>,
}

/// A client that is not let in.
#[derive(Debug)]
pub enum AuthRefusal {
    /// It is told so.
    Denial(Denial),
    /// It gets what the service that was asked has answered.
    Answer(Box<GivenAnswer>),
}

/// An answer that was read whole.
#[derive(Debug)]
pub struct GivenAnswer {
    /// Its head, with the length of its body.
    pub head: Head,
    /// Its body.
    pub body: Vec<u8>,
}
