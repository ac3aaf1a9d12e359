//! What reloads leave behind in memory: nothing.

use std::alloc::System;
use std::process::Command;
use std::time::Duration;

use cap::Cap;
use evenkeel::config::model::{Config, Protocol};
use fake_backend::Running;

use super::support::{Client, Keel, all_to, backend, comes_within, config, eventually, fakes, quick_health};

/// Counts the live bytes of the process.
#[global_allocator]
pub static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Set in the process that runs one of these tests and nothing beside it.
const ALONE: &str = "EVENKEEL_TEST_ALONE";
/// How much live bytes may differ between two rests.
pub const SAME: usize = 64 * 1024;
/// Of a row, after which memory is looked at.
const RELOADS: usize = 600;
/// Rows, of which one leaves nothing behind.
const ROWS: usize = 3;
/// For how long memory is looked at before a row has left something behind.
const CLEAR: Duration = Duration::from_secs(5);

/// Asserts that one of some rows leaves no bytes behind. What is lost each row loses; what was held for a moment before one of them, or grows once and for all,
/// as many things do in their time, is seen in one row at most.
pub fn leaves_nothing_behind(mut row: impl FnMut()) {
    let mut left = Vec::new();
    while left.len() < ROWS && left.last().is_none_or(|&least| least > SAME) {
        let before = ALLOCATOR.allocated();
        row();
        let mut least = usize::MAX;
        // Either as many bytes are live as before soon, or it is clear that they are not.
        comes_within(CLEAR, || {
            least = least.min(ALLOCATOR.allocated().abs_diff(before));
            least <= SAME
        });
        left.push(least);
    }
    assert!(left.last().is_some_and(|&least| least <= SAME), "each row leaves something behind: {left:?}");
}

/// Runs this test in a process of its own, since other tests hold memory as well. False: this is that process.
pub fn went_alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return false;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let run = command.args(["--exact", test, "--nocapture"]).env(ALONE, "yes").output().unwrap();
    let text = [run.stdout, run.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(run.status.success() && text.contains("1 passed"), "{text}");
    true
}

/// `web` and `probed` stay; the target between them has another name, listener and backend each time, `limited` other keys.
fn nth(turn: usize, backends: &[Running]) -> Config {
    let mut whole = config(Protocol::Http, &[]);
    (whole.listeners, whole.targets) = (Vec::new(), Vec::new());
    let passing = format!("passing-{turn}");
    let names = ["web", &passing, "probed", "limited"];
    for (name, of) in names.into_iter().zip(backends) {
        let mut one = config(Protocol::Http, &[of.addr()]);
        let (mut listener, mut target) = (one.listeners.remove(0), one.targets.remove(0));
        (listener.name, target.name) = (name.into(), name.into());
        listener.routes = all_to(name);
        whole.listeners.push(listener);
        whole.targets.push(target);
    }
    whole.targets[1].backends[0].name = format!("backend-{turn}");
    // Nobody listens there; nobody asks.
    whole.targets[1].backends.push(backend(([127, 1, (turn / 250) as u8, (turn % 250) as u8 + 1], 9).into()));
    whole.targets[2].health = Some(quick_health());
    whole.listeners[3].limits.body = Some(1 + turn as u64);
    whole.targets[3].backends[0].portion.weight = 1 + (turn % 9) as u16;
    whole.max_connections = Some(1000 + turn);
    // Its memory is of a fixed size, but taken piece by piece, whenever there is something to be kept.
    whole.recorder = None;
    // A listener that is gone is held for so long.
    whole.shutdown_timeout = Duration::from_millis(50);
    whole
}

#[test]
fn six_hundred_reloads_leave_no_byte_behind() {
    if went_alone("reload_memory::six_hundred_reloads_leave_no_byte_behind") {
        return;
    }
    let backends = fakes(4);
    let keel = Keel::start(&nth(0, &backends));
    let mut turn = 0;
    let mut row = || {
        let mut kept = Client::connect(keel.addresses("web")[0]);
        for _ in 0..RELOADS {
            turn += 1;
            keel.reload(&nth(turn, &backends)).unwrap();
            assert_eq!(kept.get("/").text(), "Hello from fake-1");
            if turn % 10 == 5 {
                let mut passing = Client::connect(keel.addresses(&format!("passing-{turn}"))[0]);
                assert_eq!(passing.get("/").status, 200);
                assert_eq!(Client::connect(keel.addresses("limited")[0]).get("/").status, 200);
            }
        }
        drop(kept);
        // At rest: nobody is there, and what is gone is forgotten.
        eventually("all clients are gone", || keel.server.connections() == 0);
        eventually("pools let go of what is gone", || backends[1].open_connections() == 0);
        assert_eq!(keel.server.reloader().snapshots.alive(), 1);
    };
    // Fills whatever is bounded; some of it is only needed by what happens to come together.
    row();
    row();
    leaves_nothing_behind(&mut row);
}
