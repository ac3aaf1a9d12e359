//! What addresses leave behind that come and go: nothing, in memory and in metrics.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use evenkeel::discover::{Discovery, HeardAddress, NameAnswer, NameAsker};
use evenkeel::net::now;
use evenkeel::reload::begun::Begun;
use evenkeel::reload::running::{Loader, RunningConfig};
use evenkeel::server::{Options, Server};

use super::plan_lab::read;
use super::reload_memory::{ALLOCATOR, SAME, went_alone};
use super::support::eventually;

/// Addresses of one answer.
const AT_ONCE: u32 = 250;

/// How many different addresses come and go in a row of answers.
fn addresses() -> u32 {
    std::env::var("EVENKEEL_ADDRESSES").ok().and_then(|text| text.parse().ok()).unwrap_or(4_000)
}

#[test]
fn addresses_that_come_and_go_leave_no_byte_and_no_series_behind() {
    if went_alone("discovery_memory::addresses_that_come_and_go_leave_no_byte_and_no_series_behind") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "recorder: off\nresolver: {ttl_min: 10ms, ttl_max: 500ms, hold: 0s}\ntargets: {web: {protocol: http, listener: 127.0.0.1:0, \
                health_check: off, drain_timeout: 0s, backends: [{dns: app.internal, port: 80}]}}";
    let loaded = read(text, folder.path()).unwrap();
    let server = Server::start(&loaded.config, Options::default()).unwrap();
    let turn = Arc::new(AtomicU32::new(0));
    let (turns, resting) = (Arc::clone(&turn), Arc::new(AtomicBool::new(false)));
    let rests = Arc::clone(&resting);
    // The answer changes when the test says so.
    let given = move |_: &_| {
        let first = turns.load(Ordering::Relaxed) * AT_ONCE;
        let ttl = if rests.load(Ordering::Relaxed) { Duration::from_millis(500) } else { Duration::ZERO };
        let address = |number: u32| IpAddr::from((0x7f01_0000 + first + number).to_be_bytes());
        let heard = |number| HeardAddress {
            address: (address(number), 0).into(),
            host: "app.internal".into(),
            priority: 0,
            weight: 0,
        };
        Ok(NameAnswer { heard: (0..AT_ONCE).map(heard).collect(), unheard: Vec::new(), omitted: 0, ttl })
    };
    let discovery = Discovery::with(now, NameAsker::Given(Arc::new(given)), Path::new("/nowhere"));
    let folder_of = folder.path().to_owned();
    let loader: Loader = Arc::new(move || read(text, &folder_of));
    let running = RunningConfig::new(server.reloader(), loader, Arc::new(|_, _| ()), Begun::bare(loaded));
    let running = Arc::new(running.with_discovery(Arc::new(discovery)));
    let following = Arc::clone(&running);
    server.control().unwrap().spawn(async move { following.follow_names().await });
    let names = || -> Vec<String> {
        let snapshot = server.reloader().snapshots.current().unwrap();
        snapshot.targets[0].backends.iter().map(|backend| backend.name.to_string()).collect()
    };
    let row = || {
        for _ in 0..addresses() / AT_ONCE {
            let next = turn.fetch_add(1, Ordering::Relaxed) + 1;
            let first = IpAddr::from((0x7f01_0000 + next * AT_ONCE).to_be_bytes());
            let wanted = format!("app.internal/{first}:80");
            eventually("the next ones are there, and no others", || {
                let names = names();
                names.len() == AT_ONCE as usize && names[0] == wanted
            });
        }
        eventually("nobody holds what was", || {
            let snapshots = &server.reloader().snapshots;
            snapshots.alive() == 1 && snapshots.leaving().is_empty()
        });
    };
    row();
    // The name is asked for all the time, if less often now: what an answer takes while it is looked at does not count.
    let at_rest = || {
        resting.store(true, Ordering::Relaxed);
        let (mut least, mut looks) = (usize::MAX, 0);
        eventually("three hundred looks", || {
            (least, looks) = (least.min(ALLOCATOR.allocated()), looks + 1);
            looks == 300
        });
        resting.store(false, Ordering::Relaxed);
        least
    };
    // At a rest more may be held than at another, until something happens again: the less of two is what there has to be.
    let before = [(); 2].map(|()| {
        row();
        at_rest()
    });
    let before = before.into_iter().min().unwrap();
    let numbers = || {
        let snapshot = server.reloader().snapshots.current().unwrap();
        snapshot.targets[0].backends.iter().map(|backend| backend.id.0).max().unwrap()
    };
    // Whatever a rest holds, something happens before the next one.
    let after: Vec<usize> = (0..3)
        .map(|_| {
            row();
            assert!(
                numbers() < 3 * AT_ONCE,
                "numbers, and with them cells and series, are given again: {}",
                numbers()
            );
            at_rest()
        })
        .collect();
    let least = after.iter().min().unwrap();
    assert!(*least <= before + SAME, "no more bytes are live than before: {before}, then {after:?}");
}
