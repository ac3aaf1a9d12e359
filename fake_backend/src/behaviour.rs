//! What a fake does with the next request or connection. A `Behaviour` is plain data: built in tests, from
//! flags (`options`) or from a control request (`setting`), and swapped whole at run time by `Running::behave`.

use std::time::Duration;

use crate::Spread;

/// How requests (HTTP) or connections (TCP) are treated. The default is a well-behaved backend.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// The status of every answer, 200-999. Paths that name their own status win while this is 200.
    pub status: u16,
    /// For how many requests this behaviour holds; afterwards the last one without a limit is back. `None`: for good.
    pub times: Option<u32>,
    /// Milliseconds between the end of the request and the first byte of the answer.
    pub latency: Option<Spread>,
    /// Some answers wait longer.
    pub stall: Option<Stall>,
    /// Bytes of the default answer's body instead of `Hello from <id>`.
    pub size: Option<Spread>,
    /// Sends the body in pieces with a pause after each.
    pub pace: Option<Pace>,
    /// What goes wrong.
    pub fault: Option<Fault>,
    /// What goes wrong below: with TLS itself. Nothing, at a fake without TLS.
    pub tls_fault: Option<TlsFault>,
    /// Each answer carries `Connection: close` and is the last one on its connection.
    pub close: bool,
    /// Advertises `Keep-Alive: timeout=N`, in seconds.
    pub keep_alive_timeout: Option<u64>,
    /// Closes a connection that was silent for so long between two requests. Zero: right after each answer, unannounced.
    pub idle_close: Option<Duration>,
    /// Whether `Expect: 100-continue` gets its `100 Continue`.
    pub sends_continue: bool,
    /// Answers when the head is read, before the body, which is then read and thrown away.
    pub answers_early: bool,
    /// Leaves the health paths alone: they answer 200 or 503, whatever else is set here.
    pub spares_health: bool,
    /// What a TCP fake does with a connection.
    pub tcp: TcpMode,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            status: 200,
            times: None,
            latency: None,
            stall: None,
            size: None,
            pace: None,
            fault: None,
            tls_fault: None,
            close: false,
            keep_alive_timeout: None,
            idle_close: None,
            sends_continue: true,
            answers_early: false,
            spares_health: false,
            tcp: TcpMode::Greet,
        }
    }
}

impl Behaviour {
    /// Answers every request, health paths too, with this status (200-999).
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// Misbehaves in this way.
    #[must_use]
    pub fn fault(fault: Fault) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }

    /// Spoils TLS in this way.
    #[must_use]
    pub fn tls_fault(fault: TlsFault) -> Self {
        Self { tls_fault: Some(fault), ..Self::default() }
    }

    /// Accepts and reads, and never answers.
    #[must_use]
    pub fn hang() -> Self {
        Self::fault(Fault::Hang)
    }

    /// A TCP fake in this mode.
    #[must_use]
    pub fn tcp(mode: TcpMode) -> Self {
        Self { tcp: mode, ..Self::default() }
    }

    /// Holds for so many requests, then the fake recovers.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times: Some(times), ..self }
    }

    /// Waits so long before each answer.
    #[must_use]
    pub fn latency(self, latency: Duration) -> Self {
        self.latency_spread(Spread::Fixed(latency.as_secs_f64() * 1_000.0))
    }

    /// Draws each answer's latency, in milliseconds.
    #[must_use]
    pub fn latency_spread(self, latency: Spread) -> Self {
        Self { latency: Some(latency), ..self }
    }

    /// Waits this much longer before a `share` (0 to 1) of the answers, drawn anew for each.
    #[must_use]
    pub fn stall(self, share: f64, time: Duration) -> Self {
        Self { stall: Some(Stall { share, time }), ..self }
    }

    /// Answers with so many bytes.
    #[must_use]
    pub fn size(self, bytes: u64) -> Self {
        self.size_spread(Spread::Fixed(bytes as f64))
    }

    /// Draws the size of each answer, in bytes.
    #[must_use]
    pub fn size_spread(self, size: Spread) -> Self {
        Self { size: Some(size), ..self }
    }

    /// Sends bodies `bytes` at a time, with a pause of `every` after each piece.
    #[must_use]
    pub fn pace(self, bytes: u64, every: Duration) -> Self {
        Self { pace: Some(Pace { bytes, every }), ..self }
    }

    /// Ends the connection with each answer, and says so.
    #[must_use]
    pub fn closing(self) -> Self {
        Self { close: true, ..self }
    }

    /// Advertises `Keep-Alive: timeout=<seconds>`.
    #[must_use]
    pub fn keep_alive_timeout(self, seconds: u64) -> Self {
        Self { keep_alive_timeout: Some(seconds), ..self }
    }

    /// Closes connections that are silent for so long between requests.
    #[must_use]
    pub fn idle_close(self, after: Duration) -> Self {
        Self { idle_close: Some(after), ..self }
    }

    /// Never sends `100 Continue`.
    #[must_use]
    pub fn without_continue(self) -> Self {
        Self { sends_continue: false, ..self }
    }

    /// Answers before it reads the request's body.
    #[must_use]
    pub fn answering_early(self) -> Self {
        Self { answers_early: true, ..self }
    }

    /// Leaves the health paths alone.
    #[must_use]
    pub fn sparing_health(self) -> Self {
        Self { spares_health: true, ..self }
    }
}

/// A backend that is stuck now and then: in a pause of its garbage collector, behind a lock, on a slow disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// The share of answers that it holds up, 0 to 1.
    pub share: f64,
    /// For how long, beside the latency.
    pub time: Duration,
}

/// The speed of a slow body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Bytes per piece; 0 counts as 1.
    pub bytes: u64,
    /// The pause after each piece.
    pub every: Duration,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Not at all: it stays open and silent until the peer closes it.
    KeepOpen,
    /// In order: FIN, then whatever the peer still sends is read for up to one second.
    Close,
    /// RST at once (SO_LINGER 0). A Unix socket just closes.
    Reset,
    /// Not at all: an HTTP fake serves the next request on it. Elsewhere the same as `KeepOpen`.
    Serve,
}

/// What a TCP fake does with each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpMode {
    /// Sends `Hello from <id>` at once and closes, as gruglb's does: `nc host port` shows it.
    Greet,
    /// Sends `Hello from <id>` at once, then echoes.
    GreetAndEcho,
    /// Sends back what comes; after the client's FIN the rest, then its own FIN.
    Echo,
    /// Reads and counts until the client's FIN, then closes without a word.
    Sink,
    /// Sends so many bytes of the pattern, then closes.
    Source(u64),
    /// Reads until the client's FIN, and only then sends `Hello from <id>` and closes.
    GreetAtEnd,
}

/// One way to misbehave. HTTP fakes know them all; TCP fakes only those marked so, and ignore the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Accepts and closes, not a byte read (TCP too).
    CloseOnAccept,
    /// Accepts and resets, not a byte read (TCP too).
    ResetOnAccept,
    /// Reads the request, never answers, leaves when the client does (TCP too).
    Hang,
    /// Does not even read: the client's data piles up in the kernel (TCP too).
    HangUnread,
    /// Reads the whole request, then closes without an answer.
    CloseUnanswered,
    /// Reads the whole request, then resets.
    ResetUnanswered,
    /// FIN in the middle of the head.
    CloseMidHead,
    /// RST in the middle of the head.
    ResetMidHead,
    /// FIN after half of the body, whatever its framing (TCP sources too).
    CloseMidBody,
    /// RST after half of the body (TCP sources too).
    ResetMidBody,
    /// The head comes one byte at a time, 10 ms apart.
    SlowHead,
    /// `Content-Length` promises ten bytes more than come before the FIN.
    LengthTooLong,
    /// `Content-Length` promises three bytes less than are sent; the connection stays open.
    LengthTooShort,
    /// Both `Transfer-Encoding: chunked` and `Content-Length` (RFC 9112 §6.3).
    LengthAndChunked,
    /// Two `Content-Length` lines that differ.
    TwoLengths,
    /// A chunk size that is no hexadecimal number.
    BadChunk,
    /// Lines of the head end with LF alone.
    BareLineFeeds,
    /// Bytes that are no HTTP at all.
    Garbage,
    /// A head that never ends (it is cut at 64 MiB).
    EndlessHead,
    /// A second, unasked answer directly behind a correct one.
    ExtraBytes,
    /// `101 Switching Protocols` that nobody asked for.
    UnsolicitedUpgrade,
    /// Ten thousand `103 Early Hints`, then a correct answer.
    InformationalFlood,
    /// A NUL byte in a header's value.
    NulInHeader,
    /// Exactly these bytes, at the behaviour's pace if it has one, then this ending.
    Raw {
        /// What is sent instead of an answer.
        bytes: Vec<u8>,
        /// What happens to the connection then.
        ending: Ending,
    },
}

/// One way to spoil TLS. All but the last show before any request, so each uses up one of `times` with a
/// connection, and `/_fake` cannot be reached meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// Sends an answer in clear before it has seen a byte, then goes on with the handshake.
    TalkFirst,
    /// Reads, never answers the ClientHello, leaves when the client does.
    Hang,
    /// Sends a ServerHello's first half, then nothing.
    Half,
    /// Closes when the ClientHello comes.
    Close,
    /// Speaks in clear, like a server without TLS.
    Plain,
    /// Ends connections with a FIN alone, so that nobody can tell the end from a cut (RFC 8446 §6.1). It holds
    /// for every connection that ends while this is the behaviour.
    NoCloseNotify,
}

/// Every [`TlsFault`] with its name in flags and control requests.
pub const TLS_FAULTS: &[(&str, TlsFault)] = &[
    ("talk-first", TlsFault::TalkFirst),
    ("hang", TlsFault::Hang),
    ("half", TlsFault::Half),
    ("close", TlsFault::Close),
    ("plain", TlsFault::Plain),
    ("no-close-notify", TlsFault::NoCloseNotify),
];

impl Fault {
    /// Whether the answer begins as it should and breaks in its body.
    pub(crate) fn is_mid_body(&self) -> bool {
        matches!(self, Self::CloseMidBody | Self::ResetMidBody)
    }
}

/// Every fault that has no parameters, with its name in flags and control requests.
pub const FAULTS: &[(&str, Fault)] = &[
    ("close-on-accept", Fault::CloseOnAccept),
    ("reset-on-accept", Fault::ResetOnAccept),
    ("hang", Fault::Hang),
    ("hang-unread", Fault::HangUnread),
    ("close-unanswered", Fault::CloseUnanswered),
    ("reset-unanswered", Fault::ResetUnanswered),
    ("close-mid-head", Fault::CloseMidHead),
    ("reset-mid-head", Fault::ResetMidHead),
    ("close-mid-body", Fault::CloseMidBody),
    ("reset-mid-body", Fault::ResetMidBody),
    ("slow-head", Fault::SlowHead),
    ("length-too-long", Fault::LengthTooLong),
    ("length-too-short", Fault::LengthTooShort),
    ("length-and-chunked", Fault::LengthAndChunked),
    ("two-lengths", Fault::TwoLengths),
    ("bad-chunk", Fault::BadChunk),
    ("bare-line-feeds", Fault::BareLineFeeds),
    ("garbage", Fault::Garbage),
    ("endless-head", Fault::EndlessHead),
    ("extra-bytes", Fault::ExtraBytes),
    ("unsolicited-upgrade", Fault::UnsolicitedUpgrade),
    ("informational-flood", Fault::InformationalFlood),
    ("nul-in-header", Fault::NulInHeader),
];
