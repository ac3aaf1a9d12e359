//! Backends that behave, or misbehave, on request: for tests and demos of load balancers.
//!
//! A [`Fake`] is started in process and gives a [`Running`], which knows its address, counts what it sees, can
//! be told to [`behave`](Running::behave) otherwise at any time, and stops when it is dropped. A thousand of
//! them fit in one process.
//!
//! It is no general web server: it speaks just enough HTTP/1.1, over its own few lines of code, to be able to
//! break every rule byte by byte, and it judges what it receives (see [`Stats::malformed`]).
//!
//! # What an HTTP fake answers
//!
//! `200`, `Content-Type: text/plain`, `X-Backend: <id>` and the body `Hello from <id>`, to every method and
//! path but these:
//!
//! | path | answer |
//! |---|---|
//! | `/health`, `/ping` | 200, or 503 while health is down; counted as probes, not as requests |
//! | `/echo` | the request's body while it arrives, framed as it came, trailers included |
//! | `/count` | how many bytes the request's body had |
//! | `/head` | the request's head, as received |
//! | `/login` | a login that holds for the connection: `Authorization: NTLM hello-NAME`, then `NTLM proof-NAME`, or `Negotiate NAME` alone |
//! | `/bytes/N` | N bytes of [`pattern`] with `Content-Length` |
//! | `/chunked/N` | N bytes in chunks; `?trailer=1` adds the trailer `X-Trailer: <id>` |
//! | `/close/N` | N bytes that end with the connection |
//! | `/status/NNN` | this status, 200-999 |
//! | `/delay/MS` | the usual answer after so many milliseconds |
//! | `/early-hints` | `103 Early Hints`, then the usual answer |
//! | `/upgrade` | with `Upgrade: X`: `101`, then every byte back; without: 426 |
//!
//! `/bytes`, `/chunked` and `/close` take `?piece=BYTES&every=MILLISECONDS` for a slow body. On every path
//! `Upgrade: websocket` gets its `101`, and then each WebSocket message back.
//!
//! # TLS
//!
//! [`Fake::tls`] puts TLS 1.2 and 1.3 in front of either kind. The certificate is made at the start by an
//! [`Authority`], which tests may also use on their own; handshakes are counted and, with [`Fake::record`],
//! told in detail. [`TlsFault`]s spoil them.
//!
//! # Control by request
//!
//! Where it is allowed ([`Fake::control`]; off by default), `POST /_fake?status=500&times=3` changes the
//! behaviour; the keys are [`SETTINGS`] and also `reset` (back to the default first), `health=up|down`,
//! `close-idle` and `refuse` (no more connections are accepted). `GET /_fake` tells the counters. Such requests
//! are neither counted nor recorded, and no behaviour applies to them.

mod behaviour;
mod control;
mod door;
mod fake;
mod gate;
mod http;
mod limit;
mod login;
mod pattern;
mod record;
mod running;
mod setting;
mod socket;
mod spread;
mod state;
mod stream;
mod tcp;
mod tls;
mod udp;
mod wire;
mod work;

pub use behaviour::{Behaviour, Ending, FAULTS, Fault, Pace, Stall, TLS_FAULTS, TcpMode, TlsFault};
pub use fake::Fake;
pub use limit::raise_descriptor_limit;
pub use pattern::{pattern, pattern_byte};
pub use record::Recorded;
pub use running::{Running, TooLate};
pub use setting::{SETTINGS, SettingError};
pub use spread::{Spread, SpreadError};
pub use state::{Protocol, Stats};
pub use tls::{Authority, Handshake, Issued, Leaf, TlsFacts, TlsOptions, TlsVersion};
