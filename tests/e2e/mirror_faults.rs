//! A shadow that is dead, slow, endless or odd: the client notices nothing, and nothing piles up.

use std::time::Duration;

use evenkeel::message::Cause;
use evenkeel::proxy::http::mirror::room::{UNDER_WAY, WAITING};
use fake_backend::{Behaviour, Ending, Fault, Recorded};

use super::life_lab::{Watch, end};
use super::mirror_lab::{ALL, Scene, config, copies};
use super::support::{Keel, eventually, fakes};

/// Requests and their answers, one after the other, none of which may take long.
fn ask(scene: &Scene, count: usize) {
    let mut client = scene.client();
    for _ in 0..count {
        let asked = Watch::start();
        assert_eq!(client.get("/").text(), "Hello from web");
        assert!(asked.elapsed() < Duration::from_secs(5), "it waited for its copy");
    }
}

#[test]
fn a_shadow_that_does_odd_things_harms_nobody_and_each_end_has_its_cause() {
    let raw = |bytes: &[u8]| Fault::Raw { bytes: bytes.into(), ending: Ending::Close };
    for (fault, cause) in [
        (Fault::CloseOnAccept, Cause::BackendClosed),
        (Fault::CloseUnanswered, Cause::BackendClosed),
        (Fault::ResetMidHead, Cause::BackendClosed),
        (Fault::CloseMidBody, Cause::AnswerCut),
        (Fault::ResetMidBody, Cause::AnswerCut),
        (Fault::LengthTooLong, Cause::AnswerCut),
        (Fault::BadChunk, Cause::BadAnswerBody),
        (Fault::Garbage, Cause::BadAnswer),
        (Fault::InformationalFlood, Cause::BadAnswer),
        (Fault::EndlessHead, Cause::BadAnswer),
        (Fault::UnsolicitedUpgrade, Cause::BadUpgrade),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n"), Cause::MirrorCut),
    ] {
        let scene = Scene::with(ALL, "", "outlier: off,");
        scene.shadow.behave(Behaviour::fault(fault.clone()));
        ask(&scene, 5);
        let copies = scene.ended(5);
        assert_eq!(copies.ended_with(cause), 5, "{fault:?}: {copies:?}");
        eventually("none of its connections is kept", || scene.shadow.open_connections() == 0);
    }
}

#[test]
fn what_comes_behind_an_answer_is_never_given_to_another_copy() {
    let scene = Scene::with(ALL, "", "outlier: off,");
    scene.shadow.behave(Behaviour::fault(Fault::ExtraBytes));
    ask(&scene, 5);
    assert_eq!(scene.ended(5).answered(), 5);
    eventually("none of its connections is kept", || scene.shadow.open_connections() == 0);
}

#[test]
fn a_shadow_that_refuses_connections_is_passed_over_like_any_backend() {
    let web = fakes(1);
    let reserved = super::support::port::Reserved::new();
    let nobody = std::net::SocketAddr::from(([127, 0, 0, 1], reserved.number()));
    let keel = Keel::start(&config(web[0].addr(), nobody, ALL, "", ""));
    let mut client = keel.client();
    for _ in 0..50 {
        assert_eq!(client.get("/").status, 200);
    }
    eventually("all copies have ended", || copies(&keel).ended() == 50);
    let copies = copies(&keel);
    let refused = copies.ended_with(Cause::ConnectFailed);
    // Its breaker, or its being ejected, spares the others the try.
    let passed = copies.ended_with(Cause::BreakerOpen) + copies.ended_with(Cause::NoBackend);
    assert!(refused > 0 && refused + passed == 50, "{copies:?}");
    // Of that the route's own target hears nothing.
    assert!(keel.server.targets()[0].status().iter().all(|backend| backend.ejected_until.is_none()));
    assert_eq!(keel.server.readings().errors().count(), 0);
}

#[test]
fn of_a_shadow_that_never_answers_so_many_copies_are_under_way_so_many_wait_and_the_rest_is_dropped() {
    let scene = Scene::new();
    scene.shadow.behave(Behaviour::hang());
    let (under_way, waiting) = (UNDER_WAY as u64, WAITING as u64);
    ask(&scene, UNDER_WAY + WAITING + 100);
    eventually("they are under way", || scene.shadow.open_connections() == under_way);
    let held = scene.copies();
    assert_eq!((held.chosen, held.ended()), (under_way + waiting + 100, 100), "{held:?}");
    assert_eq!(held.ended_with(Cause::MirrorFull), 100);
    let [web, shadow] = [0, 1].map(|place| scene.keel.server.targets()[place].status()[0].in_flight);
    assert_eq!((web, u64::from(shadow)), (0, under_way));
    // One that leaves makes room for one that waits.
    ask(&scene, 50);
    assert_eq!(scene.shadow.open_connections(), under_way);
    assert_eq!(scene.ended_with(Cause::MirrorFull), 150);
}

#[test]
fn copies_that_wait_are_sent_when_there_is_room() {
    let scene = Scene::new();
    scene.shadow.behave(Behaviour::default().latency(Duration::from_millis(200)));
    ask(&scene, UNDER_WAY + 100);
    let copies = scene.answered((UNDER_WAY + 100) as u64);
    assert_eq!(copies.len(), UNDER_WAY + 100);
    assert!(scene.shadow.connections() <= (UNDER_WAY + 1) as u64, "{}", scene.shadow.connections());
}

#[test]
fn an_answer_without_end_is_read_for_a_while_and_not_for_ever() {
    let scene = Scene::new();
    scene.shadow.behave(Behaviour::default().size(64 * 1024 * 1024));
    ask(&scene, 3);
    let copies = scene.ended(3);
    assert_eq!(copies.ended_with(Cause::MirrorCut), 3, "{copies:?}");
    eventually("its connections are closed", || scene.shadow.open_connections() == 0);
    // A shadow that answers is a good one, also if nobody reads to the end.
    let state = scene.keel.server.targets()[1].status();
    assert!(state.iter().all(|backend| backend.ejected_until.is_none() && backend.in_flight == 0));
}

#[test]
fn a_full_shadow_is_not_queued_for() {
    let scene = Scene::with(ALL, "", "max_in_flight: 1, queue: {size: 100},");
    scene.shadow.behave(Behaviour::hang());
    ask(&scene, 1);
    eventually("one is under way", || scene.shadow.open_connections() == 1);
    ask(&scene, 9);
    assert_eq!(scene.copies().ended_with(Cause::QueueFull), 9);
}

#[test]
fn a_body_that_does_not_come_to_its_end_is_not_copied() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    eventually("it is under way", || scene.copies().chosen == 1);
    drop(client);
    let copies = scene.ended(1);
    assert_eq!(copies.ended_with(Cause::MirrorUnfinished), 1, "{copies:?}");
    // A body over the limit is none of its business.
    assert_eq!(scene.shadow.requests(), 0);
}

#[test]
fn a_copy_goes_on_when_its_client_has_left() {
    let scene = Scene::new();
    scene.web.behave(Behaviour::hang());
    scene.shadow.behave(Behaviour::default().latency(Duration::from_millis(100)));
    let mut client = scene.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("the copy is under way", || scene.shadow.open_connections() == 1);
    drop(client);
    scene.answered(1);
}

#[test]
fn the_end_of_the_process_waits_for_no_copy_and_counts_none_as_cut() {
    let scene = Scene::new();
    scene.shadow.behave(Behaviour::hang());
    ask(&scene, UNDER_WAY + 10);
    eventually("they are under way", || scene.shadow.open_connections() == UNDER_WAY as u64);
    let begun = Watch::start();
    assert_eq!(end(scene.keel).cut, 0);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    eventually("its connections are closed", || scene.shadow.open_connections() == 0);
}

#[test]
fn a_reload_that_takes_the_mirror_away_lets_copies_end() {
    let scene = Scene::new();
    scene.shadow.behave(Behaviour::default().latency(Duration::from_millis(300)));
    ask(&scene, UNDER_WAY + 20);
    let without = config(scene.web.addr(), scene.shadow.addr(), "mirror: off", "", "");
    scene.keel.reload(&without).unwrap();
    ask(&scene, 10);
    let copies = scene.answered((UNDER_WAY + 20) as u64);
    assert!(copies.iter().all(|copy: &Recorded| copy.complete));
    // The target goes as well, with what its copies hold.
    scene.keel.reload(&config(scene.web.addr(), scene.shadow.addr(), ALL, "", "")).unwrap();
    ask(&scene, 5);
    let mut gone = without;
    gone.targets.truncate(1);
    scene.keel.reload(&gone).unwrap();
    ask(&scene, 5);
    eventually("its connections are closed", || scene.shadow.open_connections() == 0);
    assert_eq!(scene.shadow.requests() as usize, UNDER_WAY + 25);
    eventually("nothing of the configs before is left", || {
        scene.keel.server.reloader().snapshots.alive() == 1
    });
}
