//! What stands around a hostile exchange, and must come out of it unharmed: a connection to the backend in the
//! pool, a stranger's request that is under way meanwhile, and the requests that come after.

use fake_backend::{Recorded, Running};

use super::{Client, Keel, eventually};

/// What the stranger sends before the exchange, and what behind it.
const HALVES: [&str; 2] = ["this half before, ", "and this one after"];

/// One exchange's surroundings. The server has one worker and one backend, which records.
pub struct Around<'a> {
    keel: &'a Keel,
    backend: &'a Running,
    name: &'a str,
    stranger: Client,
    /// The connection to the backend that waits in the pool for the hostile exchange.
    pub pooled: u64,
}

impl<'a> Around<'a> {
    /// Puts a stranger's upload on its way and a connection into the pool; the record starts afresh.
    pub fn begin(keel: &'a Keel, backend: &'a Running, name: &'a str) -> Around<'a> {
        let mut stranger = keel.client();
        let length = HALVES.concat().len();
        stranger
            .send(format!("POST /echo?{name} HTTP/1.1\r\nHost: other\r\nContent-Length: {length}\r\n\r\n"));
        stranger.send(HALVES[0]);
        eventually("the stranger's request is under way", || {
            backend.last_requests().last().is_some_and(|seen| seen.body == HALVES[0].as_bytes())
        });
        let _ = backend.take_requests();
        let pooled = intact(&mut keel.client(), backend, &format!("before-{name}"));
        Around { keel, backend, name, stranger, pooled }
    }

    /// A request of another client comes through intact, then the stranger's. Gives the connection to the backend that
    /// the first of them took out of the pool.
    pub fn end(mut self) -> u64 {
        let _ = self.backend.take_requests();
        let mut next = self.keel.client();
        let connection = intact(&mut next, self.backend, &format!("next-{}", self.name));
        intact(&mut next, self.backend, &format!("again-{}", self.name));
        let answer = self.stranger.send(HALVES[1]).answer();
        assert_eq!(
            (answer.status, answer.text(), answer.cut),
            (200, HALVES.concat(), false),
            "the stranger's answer around {}",
            self.name
        );
        assert!(answer.trailers.is_empty(), "{}", self.name);
        connection
    }
}

/// Sends a request of which there is only one. The backend must see exactly that, and the client exactly its answer:
/// the head as the backend got it. Gives the connection to the backend that it came on.
pub fn intact(client: &mut Client, backend: &Running, tag: &str) -> u64 {
    let line = format!("GET /head?{tag} HTTP/1.1\r\nHost: {tag}\r\n");
    let answer = client.ask(&format!("{line}\r\n"));
    assert_eq!((answer.status, answer.cut), (200, false), "{tag}: {}{}", answer.head, answer.text());
    assert!(answer.trailers.is_empty(), "{tag}");
    // A request that was cut before may only now be read by the backend, as far as it came, on a connection of its own.
    let (seen, cut): (Vec<_>, Vec<_>) = backend.take_requests().into_iter().partition(|seen| seen.complete);
    let [Recorded { head, body, trailers, connection, .. }] = &seen[..] else {
        panic!(
            "{tag}: not one whole request: {:?}",
            seen.iter().map(Recorded::head_text).collect::<Vec<_>>()
        );
    };
    assert!(cut.iter().all(|cut| cut.connection != *connection), "{tag}: {cut:?}");
    assert!(body.is_empty() && trailers.is_empty(), "{tag}: {seen:?}");
    assert_eq!(answer.text().as_bytes(), head, "{tag}: somebody else's answer");
    assert!(head.starts_with(line.as_bytes()), "{tag}: {}", answer.text());
    *connection
}
