//! HTTP/2 as RFC 9113 has it: a raw client, and the cases of h2spec (each named as there: what it sends and what it
//! accepts), over prior knowledge and over TLS; and connections that were made for another host.

mod case;
mod expect;
mod fields;
mod frames;
mod h2spec_framing;
mod h2spec_generic;
mod h2spec_hpack;
mod h2spec_kinds;
mod h2spec_messages;
mod h2spec_settings;
mod h2spec_streams;
mod names;
mod peer;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use evenkeel::config::model::{ClientTimeouts, Config, Http2, Protocol};
use fake_backend::Running;

use super::support::tls::Secure;
use super::support::{Keel, fakes};
use case::{H2Case, failures};

pub use fields::integer;
pub use frames::{Frame, flag, kind};
pub use peer::{Came, Door, Peer};

/// Nothing is to end because of a deadline instead of what was sent.
const HOUR: Duration = Duration::from_secs(3600);

/// A server, for as long as it is held.
struct Served {
    door: Door,
    _keel: Keel,
    _backends: Vec<Running>,
}

/// The server under test: with TLS, or with prior knowledge on a plain port.
fn served(tls: bool) -> Served {
    let backends = fakes(1);
    let change = |config: &mut Config| {
        let times = ClientTimeouts { head: HOUR, keep_alive: HOUR, idle: HOUR, ..ClientTimeouts::default() };
        config.listeners[0].client_timeouts = times;
        config.listeners[0].http2 = Some(Http2::default());
    };
    let (keel, client) = if tls {
        let secure = Secure::with(Protocol::Http, &[&backends[0]], "", change);
        let mut client = (*secure.client).clone();
        client.alpn_protocols = vec![b"h2".to_vec()];
        (secure.keel, Some(Arc::new(client)))
    } else {
        (Keel::with(&[&backends[0]], change), None)
    };
    Served { door: Door { address: keel.address(), tls: client }, _keel: keel, _backends: backends }
}

/// Runs these cases; all that fail are told at once.
fn hold(cases: &[H2Case], tls: bool) {
    let served = served(tls);
    let failures = failures(cases, &served.door);
    assert!(failures.is_empty(), "{} of {} failed\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// The tests of a table.
macro_rules! both {
    ($table:ident, $plain:ident, $tls:ident) => {
        #[test]
        fn $plain() {
            hold($table::CASES, false);
        }

        #[test]
        fn $tls() {
            hold($table::CASES, true);
        }
    };
}

both!(h2spec_generic, what_every_server_takes_is_taken, what_every_server_takes_is_taken_over_tls);
both!(h2spec_hpack, header_blocks_are_read_or_refused, header_blocks_are_read_or_refused_over_tls);
both!(h2spec_framing, frames_and_errors_are_kept_apart, frames_and_errors_are_kept_apart_over_tls);
both!(h2spec_streams, streams_have_their_states, streams_have_their_states_over_tls);
both!(
    h2spec_kinds,
    frames_of_streams_are_held_to_their_rules,
    frames_of_streams_are_held_to_their_rules_over_tls
);
both!(h2spec_settings, settings_and_windows_are_kept_to, settings_and_windows_are_kept_to_over_tls);
both!(h2spec_messages, malformed_requests_are_refused, malformed_requests_are_refused_over_tls);

#[test]
fn a_request_gets_the_answer_of_its_backend() {
    for tls in [false, true] {
        let served = served(tls);
        let mut peer = Peer::connect(&served.door).unwrap();
        peer.shake().unwrap();
        peer.get(1);
        let (mut status, mut body) = (None, Vec::new());
        while let Came::Frame(frame) = peer.next() {
            match frame.kind {
                kind::HEADERS => status = frame.status(),
                kind::DATA => body.extend_from_slice(&frame.payload),
                _ => continue,
            }
            if frame.ends_stream() {
                break;
            }
        }
        assert_eq!((status, &body[..]), (Some(200), &b"Hello from fake-1"[..]), "{:?}", peer.log);
    }
}

#[test]
fn the_cases_are_those_of_h2spec() {
    let tables = [
        h2spec_generic::CASES,
        h2spec_hpack::CASES,
        h2spec_framing::CASES,
        h2spec_streams::CASES,
        h2spec_kinds::CASES,
        h2spec_settings::CASES,
        h2spec_messages::CASES,
    ];
    let ids: BTreeSet<_> = tables.iter().flat_map(|table| table.iter()).map(|case| case.id).collect();
    let count = |suite: &str| ids.iter().filter(|id| id.starts_with(suite)).count();
    assert_eq!(ids.len(), tables.iter().map(|table| table.len()).sum::<usize>(), "none is there twice");
    // Of version 2.6.0, `--strict` included.
    assert_eq!((count("generic/"), count("http2/"), count("hpack/")), (44, 95, 8));
}
