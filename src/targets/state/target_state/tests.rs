use super::*;
use crate::targets::Target;
use crate::targets::fixtures::{host, probed, target, unprobed};

fn bad(reason: &str) -> Verdict {
    Verdict::Bad(reason.into())
}

fn live(target: &Target) -> Vec<String> {
    target.state.live.load().backends().map(|backend| backend.name.to_string()).collect()
}

#[test]
fn the_live_set_follows_the_verdicts_in_config_order() {
    let target = target(&probed(3));
    let [a, b, c] = &target.backends[..] else { panic!("three backends") };
    let report = |backend, verdict, now| target.state.report(backend, verdict, Tick(now));
    assert!(live(&target).is_empty());
    let transition = report(c, Verdict::Good, 1).expect("first verdict");
    assert_eq!((transition.from, transition.to), (Health::Unknown, Health::Up));
    assert_eq!(&*transition.reason, "the first probe passed");
    report(b, bad("connection refused"), 2).expect("first verdict");
    report(a, Verdict::Good, 3).expect("first verdict");
    assert_eq!(live(&target), ["b0", "b2"]);
    assert_eq!(target.state.live.load().unknown, 0);

    // rise 2, fall 3
    assert_eq!(report(b, Verdict::Good, 4), None);
    assert_eq!(report(b, Verdict::Good, 5).map(|t| t.reason.to_string()).as_deref(), Some("2 probes passed"));
    assert_eq!(live(&target), ["b0", "b1", "b2"]);
    let generation = a.generation();
    assert_eq!(report(a, bad("status 500"), 6), None);
    assert_eq!(report(a, bad("status 500"), 7), None);
    assert_eq!(a.generation(), generation);
    assert_eq!(
        report(a, bad("timeout after 1s"), 8).map(|t| t.reason.to_string()).as_deref(),
        Some("timeout after 1s")
    );
    assert_eq!(a.generation(), generation + 1);
    assert_eq!(live(&target), ["b1", "b2"]);
}

#[test]
fn a_report_that_changes_nothing_swaps_nothing() {
    let target = target(&probed(1));
    target.state.report(&target.backends[0], Verdict::Good, Tick(1));
    let before = target.state.live.load_full();
    target.state.report(&target.backends[0], Verdict::Good, Tick(2));
    target.state.report(&target.backends[0], bad("x"), Tick(3));
    assert!(Arc::ptr_eq(&before, &target.state.live.load_full()));
}

#[test]
fn a_name_is_down_until_it_resolves_and_keeps_its_last_addresses() {
    let mut config = unprobed(1);
    config.backends[0].address = host("app.internal", 80);
    let target = target(&config);
    let backend = &target.backends[0];
    let lookup = |found, now| target.state.resolve(backend, found, Tick(now));
    let ip = [IpAddr::from([10, 0, 0, 1])];

    let failed = lookup(Err("name does not resolve: nothing there".into()), 1).expect("a transition");
    assert_eq!((failed.to, &*failed.reason), (Health::Down, "name does not resolve: nothing there"));
    assert_eq!(lookup(Ok(&[]), 2), None);
    let generation = backend.generation();
    assert_eq!(lookup(Ok(&ip), 3).map(|t| t.to), Some(Health::Up));
    assert_eq!(live(&target), ["b0"]);
    assert_eq!(backend.generation(), generation, "first addresses: there is nothing to retire");

    assert_eq!(lookup(Err("name does not resolve: gone".into()), 4), None);
    assert_eq!(lookup(Ok(&[]), 5), None);
    assert_eq!(lookup(Ok(&ip), 6), None);
    assert_eq!((backend.endpoints().len(), backend.generation()), (1, generation));
    assert_eq!(lookup(Ok(&[IpAddr::from([10, 0, 0, 2])]), 7), None);
    assert_eq!(backend.generation(), generation + 1, "other addresses retire connections");
}

fn says(target: &Target, number: usize, line: &str, now: u64) -> Option<(Health, Health)> {
    let report = AgentReport::read(line.as_bytes());
    let heard = target.state.hear(&target.backends[number], &report, Tick(now));
    heard.map(|transition| (transition.from, transition.to))
}

fn weights(target: &Target) -> Vec<u16> {
    target.state.live.load().tiers.iter().flat_map(|tier| tier.weights.clone()).collect()
}

#[test]
fn what_the_agent_says_weighs_and_drains_and_comes_back() {
    let mut config = probed(3);
    config.health.iter_mut().for_each(|health| health.agent = Some(9));
    config.backends[0].portion.weight = 40;
    let target = target(&config);
    for (number, backend) in target.backends.iter().enumerate() {
        assert_eq!(says(&target, number, "up ready 100%", 1), None, "nothing new");
        target.state.report(backend, Verdict::Good, Tick(1));
    }
    let before = target.state.live.load_full();
    assert_eq!(says(&target, 0, "75%", 2), None);
    assert_eq!((weights(&target), live(&target).len()), (vec![30, 1, 1], 3));
    assert_eq!(says(&target, 1, "10%", 3), None);
    assert_eq!(weights(&target), [30, 1, 1], "never less than 1");
    let unchanged = target.state.live.load_full();
    assert!(!Arc::ptr_eq(&before, &unchanged));
    assert_eq!(says(&target, 0, "75% up", 4), None);
    assert!(Arc::ptr_eq(&unchanged, &target.state.live.load_full()), "the same words change nothing");

    let generation = target.backends[0].generation();
    assert_eq!(says(&target, 0, "drain", 5), Some((Health::Up, Health::Draining)));
    assert_eq!(live(&target), ["b1", "b2"]);
    assert_eq!(target.backends[0].generation(), generation, "its connections serve those who stay");
    assert_eq!(says(&target, 1, "0%", 6), Some((Health::Up, Health::Draining)));
    assert_eq!(says(&target, 2, "maint", 7), Some((Health::Up, Health::Down)));
    assert!(live(&target).is_empty());
    assert_eq!(says(&target, 0, "ready", 8), Some((Health::Draining, Health::Up)));
    assert_eq!(weights(&target), [30], "the weight is what it was");
    assert_eq!(says(&target, 1, "200%", 9), Some((Health::Draining, Health::Up)));
    assert_eq!(weights(&target), [30, 2]);
    assert_eq!(says(&target, 2, "ready", 10), Some((Health::Down, Health::Up)));
    assert_eq!(target.backends[2].detail().decision.back_since, Some(Tick(10)), "it was away");
    assert_eq!(target.backends[0].detail().decision.back_since, None);
    assert_eq!(target.status()[0].share, 75);
}

#[test]
fn a_drained_backend_serves_only_those_whose_cookie_names_it() {
    use crate::targets::{Ask, Chance, Pick, Tried};
    let mut config = probed(2);
    config.health.iter_mut().for_each(|health| health.agent = Some(9));
    let target = target(&config);
    target.backends.iter().for_each(|backend| {
        target.state.report(backend, Verdict::Good, Tick(1));
    });
    let (tried, chance) = (Tried::new(), Chance::seeded(1));
    let picked = |pin: Option<usize>| {
        let pin = pin.map(|number| &target.backends[number]);
        match target.pick(&Ask { pin, ..Ask::new(&tried, &chance, Tick(3)) }) {
            Pick::Lease(lease) => Some(lease.backend().name.to_string()),
            Pick::Unknown | Pick::Full | Pick::None(_) => None,
        }
    };
    for word in ["drain", "ready 0%"] {
        says(&target, 0, word, 2);
        assert_eq!(picked(Some(0)).as_deref(), Some("b0"), "{word}");
        for _ in 0..4 {
            assert_eq!(picked(None).as_deref(), Some("b1"), "{word}");
        }
    }
    for word in ["maint", "ready down"] {
        says(&target, 0, word, 2);
        assert_eq!(picked(Some(0)).as_deref(), Some("b1"), "{word}");
    }
    says(&target, 0, "drain", 3);
    says(&target, 1, "drain", 3);
    assert_eq!(picked(None), None);
}

#[tokio::test]
async fn a_change_before_the_first_poll_is_not_missed() {
    let target = target(&probed(1));
    let changed = target.state.changed();
    target.state.report(&target.backends[0], Verdict::Good, Tick(1));
    tokio::time::timeout(Duration::from_secs(5), changed).await.expect("notified");
}
