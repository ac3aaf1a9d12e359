//! Who rests believes the others, and looks for himself where there is a reason.

use std::collections::HashMap;

use super::traffic::request;
use super::*;
use crate::probe::desk::{ProbeOrder, ProbeOrders};
use crate::targets::{Outcome, ProbeWord};

fn ordered(identity: &Arc<str>, duty: ProbeDuty, word: Option<bool>) -> ProbeOrders {
    let word = word.map(|is_good| ProbeWord { is_good, reason: "node b says so".into() });
    ProbeOrders(HashMap::from([(Arc::clone(identity), ProbeOrder { duty, word })]))
}

/// How often `target` was probed.
fn probes(target: &Target) -> u64 {
    let (passed, failed) = target.state.tally().probes();
    passed + failed
}

#[tokio::test(start_paused = true)]
async fn who_rests_probes_nothing_until_it_is_its_turn_or_requests_fail() {
    let folder = tempfile::tempdir().expect("a folder");
    // Nobody listens there: each probe of its own fails.
    let target = target(Some(health(2 * SECOND, SECOND)), vec![unix(&folder.path().join("app.sock"))], None);
    let (desk, backend) = (Arc::new(ProbeDesk::default()), &target.backends[0]);
    desk.share();
    let order = |duty, word| desk.order(ordered(&backend.identity, duty, word));
    order(ProbeDuty::Rest, Some(true));
    let clock = clock();
    let (subject, rules) = (subject(&target, clock.clone()), rules(health(2 * SECOND, SECOND)));
    let at = Arc::clone(&desk);
    let _probing = tokio::spawn(async move { watch(&subject, &rules, None, &at).await });
    until(&target, 0, Health::Up).await;
    sleep(60 * SECOND).await;
    assert_eq!((probes(&target), backend.health()), (0, Health::Up));
    // What others have settled holds at once.
    order(ProbeDuty::Rest, Some(false));
    until(&target, 0, Health::Down).await;
    order(ProbeDuty::Rest, Some(true));
    until(&target, 0, Health::Up).await;
    assert_eq!((probes(&target), desk.found().len()), (0, 0));
    // Its own requests fail: it finds out, and holds to that while the others say otherwise.
    request(&target, Outcome::Failed, clock());
    until(&target, 0, Health::Down).await;
    assert!(probes(&target) >= 1);
    order(ProbeDuty::Rest, Some(true));
    sleep(10 * SECOND).await;
    assert_eq!((backend.health(), desk.found().len()), (Health::Down, 0));
    // It is its turn: what it finds it tells.
    order(ProbeDuty::Own, Some(true));
    sleep(10 * SECOND).await;
    assert!(!desk.found()[&backend.identity].is_good);
}

#[tokio::test(start_paused = true)]
async fn who_is_told_nothing_looks_for_himself() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.sock");
    let _listener = tokio::net::UnixListener::bind(&path).expect("listens");
    let target = target(Some(health(2 * SECOND, SECOND)), vec![unix(&path)], None);
    let desk = Arc::new(ProbeDesk::default());
    desk.order(ordered(&target.backends[0].identity, ProbeDuty::Rest, None));
    let (subject, rules) = (subject(&target, clock()), rules(health(2 * SECOND, SECOND)));
    let at = Arc::clone(&desk);
    let _probing = tokio::spawn(async move { watch(&subject, &rules, None, &at).await });
    assert!(until(&target, 0, Health::Up).await >= PATIENCE);
    desk.order(ordered(&target.backends[0].identity, ProbeDuty::Rest, Some(false)));
    until(&target, 0, Health::Down).await;
}
