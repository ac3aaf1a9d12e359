//! What was received, kept byte for byte for tests that ask what a proxy really sent. Filled by `http` while a
//! request arrives, so that a test sees half a body when half has come; off unless `Fake::record` was called.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::tls::{Handshake, TlsFacts};

/// At most so many requests and so many handshakes are kept; the oldest go first.
const KEPT: usize = 16_384;
/// At most so many bytes of one body are kept.
const KEPT_BODY: usize = 4 * 1024 * 1024;

/// One request as it came off the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The head with its line ends, including the empty line.
    pub head: Vec<u8>,
    /// The body without its framing; the first 4 MiB of it.
    pub body: Vec<u8>,
    /// The trailer lines of a chunked body, each with its line end.
    pub trailers: Vec<u8>,
    /// Whether the request came to its end.
    pub complete: bool,
    /// Which connection it came on: 1 for the first one accepted.
    pub connection: u64,
    /// What that connection's TLS handshake agreed upon.
    pub tls: Option<Arc<TlsFacts>>,
}

impl Recorded {
    /// The head as text.
    #[must_use]
    pub fn head_text(&self) -> String {
        String::from_utf8_lossy(&self.head).into_owned()
    }

    /// The values of every header line with this name, in order, without surrounding blanks.
    #[must_use]
    pub fn header(&self, name: &str) -> Vec<String> {
        self.head_text()
            .split("\r\n")
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
            .collect()
    }
}

/// All that was recorded by one fake.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The number of the request at the front of the queue.
    first: u64,
    requests: VecDeque<Recorded>,
    handshakes: VecDeque<Handshake>,
}

impl Recorder {
    /// Starts a request; the number names it in the other calls.
    pub(crate) fn begin(&self, head: &[u8], connection: u64, tls: Option<Arc<TlsFacts>>) -> u64 {
        let mut kept = self.lock();
        if kept.requests.len() == KEPT {
            kept.requests.pop_front();
            kept.first += 1;
        }
        kept.requests.push_back(Recorded { head: head.to_vec(), connection, tls, ..Recorded::default() });
        kept.first + kept.requests.len() as u64 - 1
    }

    /// Adds bytes of the body.
    pub(crate) fn extend(&self, number: u64, bytes: &[u8]) {
        self.change(number, |request| {
            let room = KEPT_BODY - request.body.len().min(KEPT_BODY);
            request.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        });
    }

    /// Marks the request as complete.
    pub(crate) fn finish(&self, number: u64, trailers: &[u8]) {
        self.change(number, |request| {
            request.trailers = trailers.to_vec();
            request.complete = true;
        });
    }

    /// Keeps a handshake.
    pub(crate) fn shook(&self, handshake: Handshake) {
        let mut kept = self.lock();
        if kept.handshakes.len() == KEPT {
            kept.handshakes.pop_front();
        }
        kept.handshakes.push_back(handshake);
    }

    /// A copy of every handshake kept.
    pub(crate) fn handshakes(&self) -> Vec<Handshake> {
        self.lock().handshakes.iter().cloned().collect()
    }

    /// A copy of every request kept.
    pub(crate) fn copy(&self) -> Vec<Recorded> {
        self.lock().requests.iter().cloned().collect()
    }

    /// Every request kept; the record of them starts afresh.
    pub(crate) fn take(&self) -> Vec<Recorded> {
        let mut kept = self.lock();
        kept.first += kept.requests.len() as u64;
        kept.requests.drain(..).collect()
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Recorded)) {
        let mut kept = self.lock();
        let position = number.checked_sub(kept.first).and_then(|position| usize::try_from(position).ok());
        if let Some(request) = position.and_then(|position| kept.requests.get_mut(position)) {
            change(request);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
