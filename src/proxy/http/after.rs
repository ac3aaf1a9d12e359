//! What becomes of a client's connection once a request is answered.

/// What becomes of the client's connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// It may carry the next request.
    KeepOpen,
    /// It goes on with HTTP/2, whose first bytes are held.
    SpeaksHttp2,
    /// It is closed once what the client still sends was read, within bounds: closing on unread bytes would
    /// reset the answer away.
    Linger,
    /// It is closed: the client has said that nothing comes behind this request, and all of that was read.
    Close,
    /// It is closed at once, and so that the client sees an abort: the answer is not complete.
    Abort,
}
