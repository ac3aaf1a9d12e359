//! What copies for a slow shadow leave behind in memory: nothing.

use std::time::Duration;

use evenkeel::message::Cause;
use evenkeel::proxy::http::mirror::room::{UNDER_WAY, WAITING};
use fake_backend::Behaviour;

use super::mirror_lab::{ALL, config, copies};
use super::reload_memory::{ALLOCATOR, leaves_nothing_behind, went_alone};
use super::support::{Client, Keel, eventually, fakes};

/// Copies beyond all that may be under way and wait, in each row.
const DROPPED: u64 = 500;
/// Of every other request's body: as many as may wait are less than the bytes that copies may take.
const BODY: usize = 16 * 1024;

#[test]
fn copies_for_a_slow_shadow_leave_no_byte_behind() {
    if went_alone("mirror_memory::copies_for_a_slow_shadow_leave_no_byte_behind") {
        return;
    }
    let both = fakes(2);
    let [web, shadow] = [&both[0], &both[1]];
    shadow.behave(Behaviour::default().latency(Duration::from_millis(500)));
    let keel = Keel::start(&config(web.addr(), shadow.addr(), ALL, "", ""));
    let body = vec![b'x'; BODY];
    let ask = |client: &mut Client| {
        assert_eq!(client.get("/").status, 200);
        assert_eq!(client.post("/", &body).status, 200);
    };
    let dropped = || copies(&keel).ended_with(Cause::MirrorFull);
    let row = || {
        let (mut client, before) = (keel.client(), dropped());
        eventually("more copies are made than there is room for", || {
            ask(&mut client);
            dropped() >= before + DROPPED
        });
        // Every bounded store is full now.
        let full = ALLOCATOR.allocated();
        drop(client);
        eventually("all copies have ended", || copies(&keel).ended() == copies(&keel).chosen);
        eventually("all clients are gone", || keel.server.connections() == 0);
        assert_eq!(keel.server.targets()[1].status()[0].in_flight, 0);
        // A body takes no connection that has rested: how many of those there are, up to the limits of the pool, depends on the rows.
        eventually("none of its connections is kept", || {
            // One whose answer has just gone out waits for its next request a moment later.
            shadow.close_idle();
            shadow.open_connections() == 0
        });
        full
    };
    // Fills whatever is bounded.
    let full = row();
    let before = ALLOCATOR.allocated();
    // The bodies of those that waited were there, or nothing was looked at.
    assert!(full > before + WAITING / 2 * BODY, "{full} {before}");
    let seen = copies(&keel);
    assert!(seen.answered() >= (UNDER_WAY + WAITING) as u64, "{seen:?}");
    leaves_nothing_behind(|| {
        row();
    });
}
