use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const FACTOR: u32 = 3;
/// Where none of the clients is.
const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1));

fn client(number: u16) -> FlowClient {
    FlowClient { address: SocketAddr::from(([192, 0, 2, 1], 1000 + number)), to: None }
}

fn at(millis: u64) -> Tick {
    Tick(1 + millis * 1_000_000)
}

#[test]
fn who_has_sent_once_without_an_answer_makes_way_first_and_who_is_proven_never() {
    let mut flows = Flows::default();
    let [first, second, third] = [0, 1, 2].map(|number| flows.begin(client(number), 10, false, at(0), ()));
    assert_eq!(flows.makes_way(OTHER, false, at(1)), Some(first));
    assert!(flows.may_receive(first, 10, Some(FACTOR), at(1)));
    assert_eq!(flows.makes_way(OTHER, false, at(1)), Some(second), "the first was answered");
    flows.note_sent(second, 10, at(2));
    assert_eq!(flows.makes_way(OTHER, false, at(2)), Some(third), "the second has sent more than once");
    flows.end(third);
    assert_eq!(flows.makes_way(OTHER, false, at(2)), None, "none of the two has been silent for long");
    assert_eq!(flows.makes_way(OTHER, true, at(2)), Some(first), "but for one that comes back they make way");
    assert_eq!(flows.makes_way(OTHER, false, at(51)), Some(first));
    flows.note_sent(first, 1, at(51));
    assert_eq!(flows.makes_way(OTHER, false, at(300)), Some(second), "the first is proven");
    assert!(flows.may_receive(second, 10, Some(FACTOR), at(300)));
    flows.note_sent(second, 1, at(301));
    assert_eq!(flows.makes_way(OTHER, true, at(9999)), None);
    let own = client(0).address.ip();
    assert_eq!(flows.makes_way(own, false, at(250)), None, "neither has been silent for long");
    assert_eq!(flows.makes_way(own, false, at(251)), Some(first), "it makes way for its own address");
}

#[test]
fn one_that_comes_back_is_not_among_those_who_make_way_at_once() {
    let mut flows = Flows::default();
    flows.begin(client(0), 10, true, at(0), ());
    assert_eq!(flows.makes_way(OTHER, false, at(10)), None);
    assert_eq!(flows.makes_way(OTHER, false, at(50)), Some(0));
}

#[test]
fn replies_are_so_many_times_what_was_sent_until_the_client_has_sent_behind_one() {
    let mut flows = Flows::default();
    let place = flows.begin(client(0), 10, false, at(0), ());
    assert!(flows.may_receive(place, 20, Some(FACTOR), at(1)));
    assert!(!flows.may_receive(place, 11, Some(FACTOR), at(1)));
    assert!(flows.may_receive(place, 10, Some(FACTOR), at(1)), "what was refused does not count");
    assert!(!flows.may_receive(place, 1, Some(FACTOR), at(1)));
    assert!(flows.may_receive(place, 9999, None, at(1)), "no limit, no refusal");
    flows.note_sent(place, 1, at(2));
    assert!(flows.may_receive(place, 99_999, Some(FACTOR), at(3)));
}

#[test]
fn what_comes_before_the_first_answer_proves_nothing() {
    let mut flows = Flows::default();
    let place = flows.begin(client(0), 10, false, at(0), ());
    flows.note_sent(place, 10, at(1));
    assert!(flows.may_receive(place, 60, Some(FACTOR), at(2)), "both count");
    assert!(!flows.may_receive(place, 1, Some(FACTOR), at(2)));
    let empty = flows.begin(client(1), 0, false, at(0), ());
    assert!(flows.may_receive(empty, 3, Some(FACTOR), at(2)), "an empty one may have an answer");
    assert!(!flows.may_receive(empty, 1, Some(FACTOR), at(2)));
}

#[test]
fn silence_in_both_directions_ends_a_flow() {
    let mut flows = Flows::default();
    let timeout = Duration::from_millis(100);
    let [first, second] = [0, 1].map(|number| flows.begin(client(number), 1, false, at(0), ()));
    assert_eq!((flows.expired(timeout, at(99)), flows.next_expiry(timeout)), (None, Some(at(100))));
    assert!(flows.may_receive(first, 1, None, at(50)));
    assert_eq!(flows.expired(timeout, at(100)), Some(second));
    flows.end(second);
    assert_eq!((flows.expired(timeout, at(149)), flows.next_expiry(timeout)), (None, Some(at(150))));
    assert_eq!(flows.expired(timeout, at(150)), Some(first));
    flows.end(first);
    assert_eq!((flows.next_expiry(timeout), flows.len()), (None, 0));
}

#[derive(Clone, Debug)]
enum Step {
    Send(u16, usize),
    Reply(u16, usize),
    MakeWay(bool),
    Expire,
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..8u16, 0..40usize).prop_map(|(who, bytes)| Step::Send(who, bytes)),
        4 => (0..8u16, 0..90usize).prop_map(|(who, bytes)| Step::Reply(who, bytes)),
        1 => any::<bool>().prop_map(Step::MakeWay),
        1 => Just(Step::Expire),
        2 => (0..200u64).prop_map(Step::Pass),
    ];
    proptest::collection::vec(step, 1..120)
}

/// What is known of a flow, told in the plainest way.
#[derive(Clone, Copy, Debug, Default)]
struct Plain {
    sends: u32,
    answered: bool,
    proven: bool,
    sent: u64,
    received: u64,
    last: u64,
}

impl Plain {
    fn standing(&self) -> FlowStanding {
        match (self.proven, self.answered || self.sends > 1) {
            (true, _) => FlowStanding::Proven,
            (false, true) => FlowStanding::Open,
            (false, false) => FlowStanding::Asked,
        }
    }
}

proptest! {
    /// Whatever happens in whatever order, the table says what a plain list of the same flows says.
    #[test]
    fn no_history_breaks_the_table(steps in steps()) {
        let timeout = Duration::from_millis(600);
        let mut flows = Flows::default();
        let mut plain: HashMap<u16, Plain> = HashMap::new();
        let mut time = 0;
        for step in steps {
            match step {
                Step::Send(who, bytes) => {
                    let entry = plain.entry(who).or_default();
                    match flows.find(&client(who)) {
                        None => {
                            prop_assert_eq!(entry.sends, 0);
                            flows.begin(client(who), bytes, false, at(time), who);
                        }
                        Some(place) => flows.note_sent(place, bytes, at(time)),
                    }
                    entry.proven |= entry.answered;
                    entry.sends += 1;
                    entry.sent += bytes.max(1) as u64;
                    entry.last = time;
                }
                Step::Reply(who, bytes) => {
                    let Some(place) = flows.find(&client(who)) else { continue };
                    let entry = plain.get_mut(&who).expect("it is there");
                    let may = entry.proven || entry.received + bytes as u64 <= entry.sent * u64::from(FACTOR);
                    prop_assert_eq!(flows.may_receive(place, bytes, Some(FACTOR), at(time)), may);
                    if may {
                        (entry.received, entry.answered, entry.last) =
                            (entry.received + bytes as u64, true, time);
                    }
                }
                Step::MakeWay(returns) => {
                    let fresh = |last: u64| time - last < 100;
                    let oldest = |standing: FlowStanding| {
                        let of = plain.values().filter(|one| one.standing() == standing);
                        of.map(|one| one.last).min()
                    };
                    let quiet = |last: &u64| returns || time - last >= 50;
                    let asked = oldest(FlowStanding::Asked).map(|last| (FlowStanding::Asked, last));
                    let open = oldest(FlowStanding::Open).filter(quiet).map(|last| (FlowStanding::Open, last));
                    let expected = asked.filter(|(_, last)| !fresh(*last)).or(open).or(asked);
                    let found = flows.makes_way(OTHER, returns, at(time));
                    prop_assert_eq!(found.is_some(), expected.is_some());
                    if let (Some(place), Some((standing, last))) = (found, expected) {
                        let who = *flows.get(place).expect("it is there");
                        prop_assert_eq!((plain[&who].standing(), plain[&who].last), (standing, last));
                        let (_, who, answered) = flows.end(place).expect("it is there");
                        let gone = plain.remove(&who).expect("it was there");
                        prop_assert_eq!(gone.answered, answered);
                    }
                }
                Step::Expire => {
                    while let Some(place) = flows.expired(timeout, at(time)) {
                        let (_, who, _) = flows.end(place).expect("it is there");
                        let gone = plain.remove(&who).expect("it was there");
                        prop_assert!(time - gone.last >= 600);
                    }
                    prop_assert!(plain.values().all(|one| time - one.last < 600));
                }
                Step::Pass(millis) => time += millis,
            }
            prop_assert_eq!(flows.len(), plain.len());
            let next = plain.values().map(|one| at(one.last + 600)).min();
            prop_assert_eq!(flows.next_expiry(timeout), next);
            for (place, owner, who) in flows.iter() {
                prop_assert_eq!(*owner, client(*who));
                prop_assert_eq!(flows.find(owner), Some(place));
            }
        }
    }
}

#[test]
fn flows_stand_in_another_table_as_they_stood_in_the_first() {
    let (mut first, mut second) = (Flows::default(), Flows::default());
    let asked = first.begin(client(1), 10, false, at(1), ());
    let open = first.begin(client(2), 10, false, at(2), ());
    assert!(first.may_receive(open, 500, None, at(3)));
    let proven = first.begin(client(3), 10, false, at(4), ());
    assert!(first.may_receive(proven, 20, None, at(5)));
    first.note_sent(proven, 7, at(6));
    let mut all: Vec<_> = [asked, open, proven].map(|place| (first.client(place), first.state(place))).into();
    all.sort_by_key(|(_, state)| state.unwrap().last());
    for (client, state) in all {
        let state = state.unwrap();
        let told: FlowState = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
        let place = second.go_on(client.unwrap(), told, ());
        assert_eq!(second.state(place), Some(state));
    }
    // Who makes way, who may have how much and who is silent is the same for both.
    let (now, newcomer) = (at(1_000), client(9).address.ip());
    let way = |flows: &Flows<()>| flows.makes_way(newcomer, false, now).and_then(|place| flows.client(place));
    assert_eq!(way(&first), Some(client(1)));
    assert_eq!(way(&first), way(&second));
    let second_open = second.find(&client(2)).unwrap();
    assert_eq!(second.left(second_open, Some(100)), first.left(open, Some(100)));
    assert!(second.find(&client(3)).is_some_and(|place| second.waits(place)));
    assert_eq!(second.next_expiry(QUIET), first.next_expiry(QUIET));
}
