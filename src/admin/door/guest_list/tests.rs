use proptest::prelude::*;

use super::*;

fn list(most: usize) -> (Arc<GuestList>, Vec<GuestPlace>) {
    let list = GuestList::new(most);
    let places = (0..most).map(|_| list.admit().expect("there is room")).collect();
    (list, places)
}

fn has_left(places: &[GuestPlace]) -> Vec<bool> {
    places.iter().map(|place| place.leaves.is_cancelled()).collect()
}

/// A request without a body.
fn answered(place: &GuestPlace) -> Working {
    let (working, arriving) = place.ask();
    drop(arriving);
    working
}

#[test]
fn whoever_has_been_idle_for_longest_makes_room_and_nobody_who_is_answered_does() {
    let (list, places) = list(3);
    let first = answered(&places[0]);
    for place in &places[1..] {
        drop(answered(place));
        place.has_taken();
    }
    let fourth = list.admit().expect("the second is idle");
    assert_eq!(has_left(&places), [false, true, false]);
    drop(first);
    places[0].has_taken();
    let fifth = list.admit().expect("the third is idle for longer than the first");
    assert_eq!(has_left(&places), [false, true, true]);
    let working = [answered(&places[0]), answered(&fourth), answered(&fifth)];
    assert!(list.admit().is_none(), "all are being answered");
    drop(fourth);
    let sixth = list.admit().expect("one is gone");
    drop(working);
    drop((places, fifth, sixth));
    assert!(list.guests().all.is_empty());
}

#[test]
fn half_sent_requests_keep_nobody_out_and_a_trickle_of_bytes_makes_none_younger() {
    let (list, places) = list(4);
    // Heads, and a body behind its head.
    places.iter().for_each(GuestPlace::hears);
    let body = places[1].ask();
    for _ in 0..9 {
        places.iter().for_each(GuestPlace::hears);
    }
    let fifth = list.admit().expect("the first sends for longest");
    assert_eq!(has_left(&places), [true, false, false, false]);
    fifth.hears();
    let sixth = list.admit().expect("its head is there, but not its body");
    assert_eq!(has_left(&places), [true, true, false, false]);
    drop(body);
    let whole = places[2].ask();
    drop(whole.1);
    let seventh = list.admit().expect("the third is being answered, the fourth still sends");
    assert_eq!(has_left(&places), [true, true, false, true]);
    drop((fifth, sixth, seventh, whole.0));
}

#[test]
fn who_comes_into_a_crowd_of_half_sent_requests_has_time_to_say_something() {
    let (list, places) = list(16);
    places.iter().for_each(GuestPlace::hears);
    let newcomer = list.admit().expect("the first sends for longest");
    let more: Vec<GuestPlace> = (0..4).map(|_| list.admit().expect("another one sends")).collect();
    assert!(!newcomer.leaves.is_cancelled());
    assert_eq!(has_left(&places).iter().filter(|left| **left).count(), 5);
    more.iter().for_each(GuestPlace::hears);
    let last = list.admit().expect("it has said nothing for long enough");
    assert!(newcomer.leaves.is_cancelled());
    drop((places, more, last));
}

#[test]
fn streams_and_answers_that_nobody_takes_make_room_after_those_who_are_idle_or_send() {
    let (list, places) = list(4);
    let streams: Vec<Working> = places[..2].iter().map(answered).collect();
    streams.iter().rev().for_each(Working::streams);
    // It has been given its answer and takes nothing of it.
    drop(answered(&places[2]));
    places[3].hears();
    let fifth = list.admit().expect("the fourth sends");
    assert_eq!(has_left(&places), [false, false, false, true]);
    let working = answered(&fifth);
    let sixth = list.admit().expect("the second has had its stream for longest");
    assert_eq!(has_left(&places), [false, true, false, true]);
    let more = answered(&sixth);
    let seventh = list.admit().expect("the first has had its stream for longer than the third its answer");
    assert_eq!(has_left(&places), [true, true, false, true]);
    let most = answered(&seventh);
    let eighth = list.admit().expect("the third takes nothing");
    assert_eq!(has_left(&places), [true, true, true, true]);
    drop((streams, working, more, most, eighth));
}

#[test]
fn what_is_left_of_an_earlier_request_changes_nothing() {
    let (list, places) = list(1);
    let (earlier, arriving) = places[0].ask();
    let later = answered(&places[0]);
    drop((arriving, earlier));
    assert!(list.admit().is_none(), "the later one is worked on");
    drop(later);
    assert!(list.admit().is_some());
}

/// One step of what guests and the list do; the number chooses the guest.
#[derive(Clone, Copy, Debug)]
enum Step {
    Admit,
    Hear(usize),
    Ask(usize),
    Arrive(usize),
    Stream(usize),
    Make(usize),
    Take(usize),
    Leave(usize),
}

/// A guest, with all that has happened to it in this order, and when.
struct Known {
    place: Option<GuestPlace>,
    /// With how many were admitted before.
    admission: usize,
    happened: Vec<(usize, Step)>,
    asked: Option<(Option<Working>, Option<Arriving>)>,
}

impl Known {
    fn is_there(&self) -> bool {
        self.place.as_ref().is_some_and(|place| !place.leaves.is_cancelled())
    }

    /// What it does, told from all that has happened: its place in the order in which room is made, and since when.
    fn rank(&self, admissions: usize, grace: usize) -> Option<(u8, usize)> {
        let last = |wanted: fn(&Step) -> bool| {
            self.happened.iter().rposition(|(_, step)| wanted(step)).unwrap_or(usize::MAX)
        };
        let at = |place: usize| self.happened[place].0;
        let asked = last(|step| matches!(step, Step::Ask(_)));
        if asked == usize::MAX {
            let heard = self.happened.iter().find(|(_, step)| matches!(step, Step::Hear(_)));
            return Some(match heard {
                Some((when, _)) => (1, *when),
                None if self.admission + grace < admissions => (0, at(0)),
                None => (1, at(0)),
            });
        }
        let behind = &self.happened[asked..];
        let when =
            |wanted: fn(&Step) -> bool| behind.iter().find(|(_, step)| wanted(step)).map(|step| step.0);
        let arrived = when(|step| matches!(step, Step::Arrive(_)));
        let streams = when(|step| matches!(step, Step::Stream(_)));
        let made = when(|step| matches!(step, Step::Make(_)));
        let Some(made) = made else {
            return match (streams, arrived) {
                (Some(streams), _) => Some((2, streams)),
                (None, Some(_)) => None,
                // The first byte that came behind the answer before.
                (None, None) => Some((1, self.began(asked))),
            };
        };
        let mut later = behind.iter().filter(|(when, _)| *when > made);
        let Some((taken, _)) = later.find(|(_, step)| matches!(step, Step::Take(_))) else {
            return Some((2, made));
        };
        let heard = later.find(|(_, step)| matches!(step, Step::Hear(_)));
        Some(heard.map_or((0, *taken), |(when, _)| (1, *when)))
    }

    /// When the request whose head came with step `asked` began to come.
    fn began(&self, asked: usize) -> usize {
        let before = &self.happened[..asked];
        let answer = before.iter().rposition(|(_, step)| matches!(step, Step::Make(_)));
        // Until the answer before was taken, what comes is left unread.
        let from = answer.map_or(Some(0), |made| {
            before[made..]
                .iter()
                .position(|(_, step)| matches!(step, Step::Take(_)))
                .map(|taken| made + taken)
        });
        let heard =
            from.and_then(|from| before[from..].iter().find(|(_, step)| matches!(step, Step::Hear(_))));
        heard.map_or(self.happened[asked].0, |(when, _)| *when)
    }
}

/// Does `steps`, and compares who makes room with what is told from all that has happened.
fn explore(most: usize, steps: &[Step]) {
    let list = GuestList::new(most);
    let mut all: Vec<Known> = Vec::new();
    let mut admissions = 0;
    for (now, &step) in steps.iter().enumerate() {
        if let Step::Admit = step {
            let there = || all.iter().enumerate().filter(|(_, known)| known.is_there());
            let first = there()
                .filter_map(|(at, known)| Some((known.rank(admissions, most / 4)?, at)))
                .min()
                .map(|(_, at)| at);
            let (is_full, before) = (there().count() == most, there().count());
            let place = list.admit();
            assert_eq!(place.is_some(), !is_full || first.is_some(), "step {now}");
            let Some(place) = place else { continue };
            if is_full {
                let first = first.expect("somebody made room");
                assert!(!all[first].is_there(), "step {now}: guest {first} makes room");
            }
            assert_eq!(all.iter().filter(|known| known.is_there()).count(), before - usize::from(is_full));
            let happened = vec![(now, step)];
            all.push(Known { place: Some(place), admission: admissions, happened, asked: None });
            admissions += 1;
            continue;
        }
        let (Step::Hear(which)
        | Step::Ask(which)
        | Step::Arrive(which)
        | Step::Stream(which)
        | Step::Make(which)
        | Step::Take(which)
        | Step::Leave(which)) = step
        else {
            continue;
        };
        let mut there: Vec<&mut Known> = all.iter_mut().filter(|known| known.place.is_some()).collect();
        if there.is_empty() {
            continue;
        }
        let at = which % there.len();
        let known = &mut *there[at];
        let Some(place) = &known.place else { continue };
        match (step, &mut known.asked) {
            (Step::Hear(_), _) => place.hears(),
            (Step::Take(_), _) => place.has_taken(),
            (Step::Ask(_), asked @ None) => {
                let (working, arriving) = place.ask();
                *asked = Some((Some(working), Some(arriving)));
            }
            (Step::Arrive(_), Some((_, arriving @ Some(_)))) => *arriving = None,
            (Step::Stream(_), Some((Some(working), None))) => working.streams(),
            (Step::Make(_), asked @ Some(_)) => {
                // An answer may be made before all has come.
                if let Some((working, arriving)) = asked.take() {
                    drop(arriving);
                    drop(working);
                }
            }
            (Step::Leave(_), _) => {
                (known.asked, known.place) = (None, None);
                continue;
            }
            _ => continue,
        }
        known.happened.push((now, step));
    }
    drop(all);
    assert!(list.guests().all.is_empty());
}

fn some_step() -> impl Strategy<Value = Step> {
    let who = 0..8_usize;
    prop_oneof![
        4 => Just(Step::Admit),
        3 => who.clone().prop_map(Step::Hear),
        3 => who.clone().prop_map(Step::Ask),
        3 => who.clone().prop_map(Step::Arrive),
        1 => who.clone().prop_map(Step::Stream),
        2 => who.clone().prop_map(Step::Make),
        3 => who.clone().prop_map(Step::Take),
        1 => who.prop_map(Step::Leave),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn in_any_order_of_steps_the_one_makes_room_that_the_order_says(
        most in 1..9_usize,
        steps in prop::collection::vec(some_step(), 1..120),
    ) {
        explore(most, &steps);
    }
}
