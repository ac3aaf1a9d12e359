//! Other configs while probes and lookups go on, in simulated time.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use super::*;
use crate::config::model::Balance;

/// A registry, its probes, and sockets that accept.
struct Lab<C: Fn() -> Tick> {
    registry: Registry,
    probes: Probes<C>,
    folder: tempfile::TempDir,
}

impl<C: Fn() -> Tick + Clone + Send + Sync + 'static> Lab<C> {
    fn new(clock: C, resolver: Resolver) -> Lab<C> {
        let folder = tempfile::tempdir().expect("a folder");
        let probes = Probes::new(resolver, clock, nobody(), Arc::default(), &CancellationToken::new());
        Lab { registry: Registry::new(), probes, folder }
    }

    fn listen(&self, name: &str) -> (PathBuf, UnixListener) {
        let path = self.folder.path().join(name);
        let listener = UnixListener::bind(&path).expect("bind");
        listener.set_nonblocking(true).expect("a listener");
        (path, listener)
    }

    fn apply(&mut self, configs: &[model::TargetConfig]) -> Vec<Arc<Target>> {
        let targets = self.registry.apply(configs);
        self.probes.follow(&targets);
        targets
    }
}

/// Connections since the last look.
fn probes_of(listener: &UnixListener) -> usize {
    std::iter::from_fn(|| listener.accept().ok()).count()
}

#[tokio::test(start_paused = true)]
async fn whose_rules_stay_keeps_its_schedule_whatever_else_changes_in_its_target() {
    let mut lab = Lab::new(clock(), Resolver::System);
    let [(one, at_one), (two, at_two)] = ["one", "two"].map(|name| lab.listen(name));
    let mut config = config(Some(health(10 * SECOND, SECOND)), vec![unix(&one), unix(&two)], None);
    let target = lab.apply(std::slice::from_ref(&config)).remove(0);
    until(&target, 0, Health::Up).await;
    until(&target, 1, Health::Up).await;
    assert_eq!((probes_of(&at_one), probes_of(&at_two)), (1, 1));
    for turn in 1..=60 {
        // A policy, a weight, and a backend that comes and goes.
        config.balance.algorithm = if turn % 2 == 0 { Balance::RoundRobin } else { Balance::Random };
        config.backends[0].portion.weight = turn;
        config.backends[1].portion.weight = 2 * turn;
        config.backends.truncate(2);
        if turn % 3 == 0 {
            let mut third = config.backends[0].clone();
            third.name = "third".into();
            config.backends.push(third);
        }
        lab.apply(std::slice::from_ref(&config));
        sleep(SECOND).await;
    }
    // Each ten seconds, ± 10 %, and not each second.
    let count = probes_of(&at_two);
    assert!((5..=7).contains(&count), "{count}");
}

#[tokio::test(start_paused = true)]
async fn another_check_begins_at_once_and_its_first_answer_decides() {
    let mut lab = Lab::new(clock(), Resolver::System);
    let (path, listener) = lab.listen("app");
    let mut config = config(Some(health(10 * SECOND, SECOND)), vec![unix(&path)], None);
    let target = lab.apply(std::slice::from_ref(&config)).remove(0);
    until(&target, 0, Health::Up).await;
    // Nobody answers: connecting is enough for the one, and not for the other.
    config.backends[0].probe_path = Some("/ready".into());
    let after = lab.apply(std::slice::from_ref(&config)).remove(0);
    assert!(Arc::ptr_eq(&target.backends[0], &after.backends[0]));
    assert_eq!(target.backends[0].health(), Health::Up);
    assert_eq!(until(&target, 0, Health::Down).await, SECOND, "its timeout, and no row of them");
    config.backends[0].probe_path = None;
    lab.apply(std::slice::from_ref(&config));
    assert_eq!(until(&target, 0, Health::Up).await, Duration::ZERO);
    config.health = None;
    lab.apply(std::slice::from_ref(&config));
    probes_of(&listener);
    sleep(60 * SECOND).await;
    assert_eq!(probes_of(&listener), 0, "it is off");
    config.health = Some(health(10 * SECOND, SECOND));
    drop(listener);
    lab.apply(std::slice::from_ref(&config));
    assert_eq!(target.backends[0].health(), Health::Up, "until it is known");
    until(&target, 0, Health::Down).await;
}

#[tokio::test(start_paused = true)]
async fn a_name_is_looked_up_once_for_all_targets_and_not_anew_for_a_reload() {
    let (book, resolver) = resolver();
    book.lock().expect("no panic").addresses = ips(&[1]);
    let mut lab = Lab::new(clock(), resolver);
    let mut configs = vec![config(None, vec![host("app.internal", 81)], None)];
    let first = lab.apply(&configs).remove(0);
    until(&first, 0, Health::Up).await;
    for number in 0..20 {
        let mut other = config(None, vec![host("app.internal", 82), host("127.0.0.1", 83 + number)], None);
        other.name = format!("other-{}", number % 3);
        configs.truncate(1);
        configs.push(other);
        let targets = lab.apply(&configs);
        assert_eq!(targets[1].backends[0].health(), Health::Up, "it is known already");
        assert_eq!(targets[1].backends[0].endpoints()[0].to_string(), "127.0.0.1:82");
        assert!(Arc::ptr_eq(&first, &targets[0]));
    }
    assert_eq!(book.lock().expect("no panic").calls, 1);
    sleep(11 * SECOND).await;
    assert_eq!(book.lock().expect("no panic").calls, 2, "one for all of them");
    book.lock().expect("no panic").addresses = ips(&[2]);
    sleep(10 * SECOND).await;
    assert_eq!(first.backends[0].endpoints()[0].to_string(), "127.0.0.2:81", "all are told");
    // Nobody is written with it: it is not looked up any more.
    lab.apply(&[]);
    let calls = book.lock().expect("no panic").calls;
    sleep(100 * SECOND).await;
    assert_eq!(book.lock().expect("no panic").calls, calls);
    // And anew for who comes then.
    let again = lab.apply(&configs[..1]).remove(0);
    until(&again, 0, Health::Up).await;
    assert_eq!(book.lock().expect("no panic").calls, calls + 1);
}

#[tokio::test(start_paused = true)]
async fn probes_hold_no_config_and_nobody_who_is_gone() {
    let mut lab = Lab::new(clock(), Resolver::System);
    let (path, _listener) = lab.listen("app");
    let mut config = config(Some(health(SECOND, SECOND)), vec![unix(&path), host("localhost", 1)], None);
    let mut gone = Vec::new();
    for turn in 0..5 {
        config.backends[1].name = format!("b{turn}");
        let target = lab.apply(std::slice::from_ref(&config)).remove(0);
        gone.push((Arc::downgrade(&target), Arc::downgrade(&target.backends[1])));
        sleep(SECOND).await;
    }
    let last = gone.pop().expect("five");
    // The tasks that were told to end have their turn.
    sleep(SECOND).await;
    assert!(gone.iter().all(|(target, backend)| target.upgrade().is_none() && backend.upgrade().is_none()));
    assert!(last.0.upgrade().is_some() && last.1.upgrade().is_some());
}
