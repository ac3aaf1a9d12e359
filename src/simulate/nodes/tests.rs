use core::time::Duration;

use super::*;
use crate::simulate::Spread;

/// Web requests of an application whose workers serve one at a time, as Rap Genius measured them: half of them within 50 ms, a few for seconds.
const HEAVY: Spread = Spread { mean: 0.26, shape: 0.46 };

fn even(nodes: usize, backends: usize) -> NodesWorkload {
    NodesWorkload {
        nodes,
        backends,
        slots: 1,
        load: 0.7,
        heavy: 1.0 / nodes as f64,
        flips: Duration::ZERO,
        service: HEAVY,
        bounds: [Duration::from_millis(10), Duration::from_secs(30)],
        span: Duration::from_secs(240),
        sharing: NodeSharing::Soft { evens: true },
    }
}

/// One node gets this part of all requests, another one each minute.
fn flips(heavy: f64, of: NodesWorkload) -> NodesWorkload {
    NodesWorkload { heavy, flips: Duration::from_secs(60), ..of }
}

fn seconds(span: u64, of: NodesWorkload) -> NodesWorkload {
    NodesWorkload { span: Duration::from_secs(span), ..of }
}

/// How many times as long requests take on average as if one node knew everything.
fn beside_the_bound(of: &NodesWorkload) -> (f64, NodesReport) {
    let bound = run(&NodesWorkload { nodes: 1, ..of.clone() }, 1);
    let report = run(of, 1);
    assert_eq!((bound.errors, report.errors), (0, 0), "{report:?}");
    // Those that are under way at the end count too.
    assert!(report.requests > 1_000 && report.requests.abs_diff(bound.requests) < bound.requests / 10);
    (report.mean / bound.mean, report)
}

/// The table of `cluster.md`: with twenty backends for each node and more, nodes that share them are as good as one that knows everything, give or take a seventh.
#[test]
fn nodes_that_share_backends_are_almost_as_good_as_one_that_knows_everything() {
    let cases = [
        ("even", 1.15, even(5, 100)),
        ("two of five requests at one node", 1.15, flips(0.4, even(5, 100))),
        ("ten times as many at one as at each other", 1.15, flips(10.0 / 14.0, even(5, 100))),
        ("four places each", 1.15, flips(0.4, NodesWorkload { load: 0.8, slots: 4, ..even(5, 40) })),
        ("few backends for each of twenty nodes", 1.5, even(20, 100)),
        ("2,500 of nine nodes", 1.15, flips(0.4, seconds(15, even(9, 2_500)))),
        ("2,500 of twenty nodes", 1.15, seconds(15, even(20, 2_500))),
        ("5,000 of nine nodes", 1.15, seconds(10, even(9, 5_000))),
    ];
    for (what, most, of) in cases {
        let (times, report) = beside_the_bound(&of);
        assert!(times <= most, "{what}: {times:.2} of the bound, {report:?}");
    }
}

#[test]
fn without_sharing_many_nodes_find_the_free_one_of_many_late() {
    let of = NodesWorkload { sharing: NodeSharing::Nothing, ..seconds(120, even(5, 100)) };
    let (times, report) = beside_the_bound(&of);
    assert!(times > 2.0 && report.collided > report.requests / 4, "{times:.2}, {report:?}");
}

/// Backends follow where requests come, which helps where one node gets most of them, and then rest.
#[test]
fn backends_follow_demand_and_then_rest() {
    let of = flips(10.0 / 14.0, seconds(600, even(5, 100)));
    let stay = run(&NodesWorkload { sharing: NodeSharing::Soft { evens: false }, ..of.clone() }, 1);
    let follow = run(&of, 1);
    assert_eq!((stay.moves, stay.settled), (0, Duration::ZERO));
    assert!(follow.mean < stay.mean && follow.collided < stay.collided, "{follow:?} {stay:?}");
    // Of about sixty that have to move with each of eight flips.
    assert!((350..=700).contains(&follow.moves), "{follow:?}");
    assert!(follow.settled <= Duration::from_secs(15), "{follow:?}");
    assert!(
        follow.restless <= follow.moves / 5,
        "later ones, by what chance does to seven backends each: {follow:?}"
    );
    let even = run(&seconds(600, even(5, 100)), 1);
    assert!(even.restless <= 2 * 8, "at most two a minute where nothing changes: {even:?}");
}

/// What others have said of requests that last a twelfth of the time between their words is over when it is heard: no backend stands idle for it at the node that prefers it.
#[test]
fn short_requests_are_not_believed_for_longer_than_they_last() {
    let short = NodesWorkload {
        service: Spread { mean: 0.02, shape: 20.0 },
        bounds: [Duration::from_millis(1), Duration::from_secs(1)],
        ..flips(10.0 / 14.0, seconds(130, even(5, 100)))
    };
    let (times, report) = beside_the_bound(&short);
    assert!(times <= 1.1 && report.p99 < 60.0, "{times:.3}, {report:?}");
    // Beside four nodes that have few backends each, as their part of the requests is, those of the fifth are not used more than theirs are, from second to second.
    let bound = run(&NodesWorkload { nodes: 1, ..short.clone() }, 1);
    assert!(bound.apart < 10.0 && report.apart <= 16.0, "{report:?} {bound:?}");
    let half = run(&NodesWorkload { load: 0.5, ..short.clone() }, 1);
    assert!(half.apart <= 13.0, "{half:?}");
    // Where as much comes to each node nothing has to go from one to another for it, and hardly anything does.
    let alike = run(&NodesWorkload { heavy: 0.2, flips: Duration::ZERO, ..short }, 1);
    assert!(alike.apart <= 12.0 && alike.collided < alike.requests / 12, "{alike:?}");
}
