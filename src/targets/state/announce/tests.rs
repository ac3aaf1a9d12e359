use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::config::model::{self, Resilience};
use crate::targets::fixtures::{target, unprobed};
use crate::targets::{Ask, Chance, Heard, Lease, Outcome, Pick, Tried};

fn at(millis: u64) -> Tick {
    Tick((1_000_000 + millis) * 1_000_000)
}

/// The messages of events.
#[derive(Clone, Default)]
struct Messages(Arc<Mutex<Vec<String>>>);

impl tracing::field::Visit for Messages {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().expect("no panic").push(format!("{value:?}"));
        }
    }
}

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Messages {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        event.record(&mut self.clone());
    }
}

/// What is told inside.
fn told(work: impl FnOnce()) -> Vec<String> {
    use tracing_subscriber::layer::SubscriberExt as _;
    let messages = Messages::default();
    let subscriber = tracing_subscriber::registry().with(messages.clone());
    tracing::subscriber::with_default(subscriber, work);
    let said = messages.0.lock().expect("no panic");
    said.clone()
}

/// `None`: every breaker is open.
fn pick(target: &Target, now: Tick) -> Option<Lease> {
    let (tried, chance) = (Tried::new(), Chance::seeded(now.0));
    match target.pick(&Ask::new(&tried, &chance, now)) {
        Pick::Lease(lease) => Some(lease),
        _ => None,
    }
}

fn lease(target: &Target, now: Tick) -> Lease {
    pick(target, now).expect("a backend")
}

/// A second of requests, one each 50 ms; the connects to `refusing` fail. Gives what is told.
fn second(target: &Target, number: u64, refusing: &[&str]) -> Vec<String> {
    told(|| {
        for turn in 0..20 {
            let now = at(number * 1_000 + turn * 50);
            let Some(lease) = pick(target, now) else { continue };
            if refusing.contains(&&*lease.backend().name) {
                lease.finish(Outcome::ConnectFailed, now);
            } else {
                lease.note_connected();
                lease.note_answer(Heard::GOOD, now);
                lease.finish(Outcome::Success, now);
            }
            target.announce(now);
        }
        target.sweep(at(number * 1_000 + 999));
        target.announce(at(number * 1_000 + 999));
    })
}

/// Nobody probes them, and the breaker counts to more than there are trials in a minute.
#[test]
fn an_outage_that_only_requests_see_is_told_within_two_seconds() {
    let mut config = unprobed(2);
    config.backends[1].portion.priority = 1;
    let target = target(&config);
    target.announce(at(0));
    assert_eq!(second(&target, 0, &[]), [""; 0]);
    let outage: Vec<String> = (1..4).flat_map(|number| second(&target, number, &["b0"])).collect();
    assert_eq!(
        outage,
        [
            "backend web/b0 is down, left out: it could not be connected to (1 of 2 left)",
            "target web: on backups (1 of 2 left)",
        ]
    );
    let both: Vec<String> = (4..8).flat_map(|number| second(&target, number, &["b0", "b1"])).collect();
    let [backup, none] = &both[..] else { panic!("{both:#?}") };
    assert!(backup.starts_with("backend web/b1 is down, ") && backup.ends_with("(0 of 2 left)"), "{backup}");
    assert_eq!(none, "target web: no backend left (0 of 2)");
    let back: Vec<String> = (8..24).flat_map(|number| second(&target, number, &[])).collect();
    assert!(back.iter().any(|line| line.starts_with("backend web/b0 is up again after ")), "{back:#?}");
    assert!(back.iter().any(|line| line.starts_with("target web: back after ")), "{back:#?}");
    assert!(back.len() <= 4, "one line for each transition: {back:#?}");
}

#[test]
fn one_refused_connect_is_not_worth_a_line() {
    let target = target(&unprobed(2));
    target.announce(at(0));
    let lines = told(|| {
        lease(&target, at(0)).finish(Outcome::ConnectFailed, at(0));
        target.announce(at(1));
    });
    assert_eq!(lines, [""; 0]);
    assert_eq!(second(&target, 1, &[]), [""; 0], "nor is its return");
}

#[test]
fn the_lines_of_a_panic_come_with_what_has_caused_it() {
    let resilience = Resilience { panic_threshold: 70, ..Resilience::default() };
    let target = target(&model::TargetConfig { resilience, ..unprobed(3) });
    target.announce(at(0));
    let fail = |nth: usize, now: Tick| {
        for _ in 0..5 {
            let backend = &target.backends[nth];
            let lease =
                Lease::take(backend, crate::targets::resilience::trial::Trial::NONE, now).expect("no limit");
            lease.finish(Outcome::Failed, now);
        }
    };
    let lines = told(|| {
        fail(0, at(10));
        target.announce(at(11));
    });
    assert_eq!(
        lines,
        [
            "backend web/b0 is down, left out: 5 errors in a row (2 of 3 left)",
            "target web: less than 70% left, so outliers get requests again (2 of 3 left)",
        ]
    );
    let lines = told(|| {
        let trial = (0..30).map(|turn| lease(&target, at(2_000 + turn))).find(Lease::is_trial);
        let trial = trial.expect("its time is up");
        trial.note_answer(Heard::GOOD, at(2_050));
        trial.finish(Outcome::Success, at(2_051));
        target.announce(at(2_052));
    });
    assert_eq!(
        lines,
        [
            "backend web/b0 is up again after 2s: its trial went well (3 of 3 up)",
            "target web: enough are left, so outliers are left out again after 2s (3 of 3 left)",
        ]
    );
}

/// Control looks whenever it likes, also between the two parts of a change.
#[test]
fn a_state_is_never_told_with_the_reason_of_another() {
    let breaker = Some(model::resilience::BreakerConfig {
        failures: 1,
        open: Duration::ZERO,
        ..model::resilience::BreakerConfig::default()
    });
    let resilience = Resilience { breaker, ..Resilience::default() };
    let target = target(&model::TargetConfig { resilience, ..unprobed(1) });
    let backend = Arc::clone(&target.backends[0]);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let BackendFacts { inputs, circuit, .. } = facts(&backend);
                let reason = &*inputs.fuse.reason;
                let is_out = circuit != Circuit::Closed;
                let fits = if is_out { reason.contains("failed") } else { !reason.contains("failed") };
                assert!(fits, "{circuit:?}: {reason}");
            }
        });
        for turn in 0..20_000 {
            let now = at(turn * 2);
            lease(&target, now).finish(Outcome::Failed, now);
            let trial = lease(&target, now.after(Duration::from_millis(1)));
            trial.note_answer(Heard::GOOD, now);
            trial.finish(Outcome::Success, now);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
