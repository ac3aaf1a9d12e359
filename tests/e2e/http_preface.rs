//! A client that speaks HTTP/2 to a plain port: it is told so in frames of its own protocol.

use evenkeel::message::{Cause, ListenerId};
use evenkeel::telemetry::cells::StatusClass;

use super::support::{Keel, eventually, recording};

/// The preface with an empty SETTINGS frame, and the beginning of a request that must not be served.
const PREFACE: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00GET / HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn an_http_2_client_got_an_answer_of_http_1_that_it_could_not_read() {
    let backend = recording();
    let keel = Keel::http(&[&backend]);
    for size in [PREFACE.len(), 1] {
        let mut client = keel.client();
        for piece in PREFACE.chunks(size) {
            client.send(piece);
        }
        let came = client.rest();
        let (settings, goaway) = came.split_at(9);
        assert_eq!(settings, [0, 0, 0, 4, 0, 0, 0, 0, 0], "{came:?}");
        assert_eq!(goaway[..3], [0, 0, u8::try_from(came.len() - 18).unwrap()], "one frame and no more");
        assert_eq!(goaway[3..17], [7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 13]);
        let words = String::from_utf8_lossy(&goaway[17..]);
        assert!(words.contains("Use HTTP/1.1. cause: http2_preface request: "), "{words}");
    }
    assert_eq!(backend.requests(), 0);
    eventually("they are written down", || keel.server.readings().ended_with(Cause::Http2Preface) == 2);
    let readings = keel.server.readings();
    assert_eq!(readings.listener(ListenerId(0)).unwrap().with(StatusClass::ServerError), 2);
    assert_eq!(keel.client().get("/").text(), "Hello from fake-1");
}
