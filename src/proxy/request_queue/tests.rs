use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use proptest::prelude::*;

use super::*;

/// Counts how often it was woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// Who wants to pass, one after the other, and which of them have.
struct Crowd {
    request_queue: RequestQueue,
    tickets: Vec<RequestTicket>,
    bell: Arc<Bell>,
}

impl Crowd {
    fn new(count: usize) -> Crowd {
        let tickets = (0..count).map(|_| RequestTicket::default()).collect();
        Crowd { request_queue: RequestQueue::default(), tickets, bell: Arc::default() }
    }

    /// The places of those who pass when everybody asks once.
    fn pass(&mut self, inside: usize) -> Vec<usize> {
        let waker = Waker::from(Arc::clone(&self.bell));
        let cx = Context::from_waker(&waker);
        let asked = self.tickets.iter_mut().enumerate();
        asked
            .filter_map(|(place, ticket)| {
                self.request_queue
                    .poll_pass(&cx, ticket, &LastInLine::default(), || inside)
                    .is_ready()
                    .then_some(place)
            })
            .collect()
    }

    fn woken(&self) -> usize {
        self.bell.0.swap(0, Ordering::AcqRel)
    }
}

#[test]
fn while_few_are_inside_everybody_passes() {
    let mut crowd = Crowd::new(1000);
    assert_eq!(crowd.pass(FREE - 1).len(), 1000);
    assert_eq!(crowd.request_queue.open(), 0, "nobody was counted");
}

#[test]
fn a_round_is_a_lot_in_the_order_in_which_they_came() {
    let mut crowd = Crowd::new(2 * LOT + 10);
    assert!(crowd.pass(FREE).into_iter().eq(0..LOT));
    crowd.tickets.drain(..LOT);
    assert!(crowd.pass(FREE).is_empty(), "the round is over");
    assert_eq!((crowd.request_queue.open(), crowd.woken()), (2 * LOT, LOT));
    let mut late = Crowd { request_queue: std::mem::take(&mut crowd.request_queue), ..Crowd::new(1) };
    assert!(late.pass(0).is_empty(), "who comes now does not overtake, however few are inside");
    crowd.request_queue = late.request_queue;
    assert!(crowd.pass(FREE).into_iter().eq(0..LOT));
    crowd.tickets.drain(..LOT);
    assert_eq!(
        (crowd.request_queue.open(), crowd.woken()),
        (LOT + 11, 10),
        "the last one has a bell of its own"
    );
    assert!(crowd.pass(FREE).into_iter().eq(0..10));
}

#[test]
fn a_round_without_anybody_is_the_last_until_somebody_comes() {
    let mut crowd = Crowd::new(1);
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let poll = |request_queue: &RequestQueue| {
        let mut rounds = std::pin::pin!(request_queue.let_in());
        assert!(rounds.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        bell.0.swap(0, Ordering::AcqRel)
    };
    assert_eq!(poll(&crowd.request_queue), 0, "nobody is let in");
    assert_eq!(crowd.pass(FREE), [0]);
    assert_eq!(bell.0.swap(0, Ordering::AcqRel), 1, "and is called");
    assert_eq!(crowd.pass(FREE), [0]);
    assert_eq!(bell.0.load(Ordering::Acquire), 0, "once");
    assert_eq!(poll(&crowd.request_queue), 1, "two have passed");
    assert_eq!(poll(&crowd.request_queue), 0, "nobody has");
}
/// Requests of some connections, each with the place that it has among those of its own.
#[derive(Default)]
struct Connections {
    request_queue: RequestQueue,
    lasts: Vec<LastInLine>,
    /// Of each connection, those that wait, in their order.
    waiting: Vec<VecDeque<RequestTicket>>,
    bell: Arc<Bell>,
}

impl Connections {
    fn new(count: usize) -> Connections {
        let lasts = (0..count).map(|_| LastInLine::default()).collect();
        let waiting = (0..count).map(|_| VecDeque::new()).collect();
        Connections { lasts, waiting, ..Connections::default() }
    }

    /// A request comes. True: it begins at once.
    fn come(&mut self, connection: usize) -> bool {
        let waker = Waker::from(Arc::clone(&self.bell));
        let ticket = self.request_queue.enter(&waker, &self.lasts[connection], FREE);
        let begins = ticket == RequestTicket::Passed;
        if !begins {
            self.waiting[connection].push_back(ticket);
        }
        begins
    }

    /// A round is over. How many of each connection have passed.
    fn round(&mut self) -> Vec<usize> {
        self.request_queue.open();
        let waker = Waker::from(Arc::new(Bell::default()));
        let cx = Context::from_waker(&waker);
        let (request_queue, lasts) = (&self.request_queue, &self.lasts);
        let lines = self.waiting.iter_mut().zip(lasts);
        lines
            .map(|(line, last)| {
                let passes: Vec<bool> = line
                    .iter_mut()
                    .map(|ticket| request_queue.poll_pass(&cx, ticket, last, || FREE).is_ready())
                    .collect();
                let passed = passes.iter().filter(|passes| **passes).count();
                assert!(passes[..passed].iter().all(|passes| *passes), "in the order in which they came");
                line.drain(..passed);
                passed
            })
            .collect()
    }
}

#[test]
fn a_connection_that_asks_for_much_stands_in_its_own_way() {
    let mut connections = Connections::new(3);
    while connections.come(0) {}
    for _ in 0..1000 {
        assert!(!connections.come(0));
        assert!(!connections.come(1));
    }
    for _ in 0..SHORT {
        assert!(!connections.come(2));
    }
    assert_eq!(connections.round(), [16, 16, 32], "a short line at once");
    assert_eq!(connections.round(), [32, 32, 0]);
}

#[test]
fn lines_that_a_crowd_has_left_are_given_back_and_nobody_is_lost() {
    let mut connections = Connections::new(KEPT + LOT);
    while connections.come(0) {}
    for connection in 0..KEPT + LOT {
        assert!(!connections.come(connection));
    }
    // The last ones are let in when the memory is given back, before they look.
    while connections.request_queue.open() > 0 {}
    assert!(connections.request_queue.crowd.borrow().lines.is_empty());
    while connections.come(0) {}
    assert_eq!(connections.waiting[0].len(), 3);
    let passed = connections.round();
    assert_eq!(passed[0], 3);
    assert!(passed[1..].iter().all(|passed| *passed == 1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever comes when: each is woken once and passes, in the order of its connection, and within as many rounds as the lines before it need.
    #[test]
    fn everybody_passes_in_turn(steps in prop::collection::vec(prop::option::weighted(0.97, 0usize..6), 1..2000)) {
        let mut connections = Connections::new(6);
        let (mut come, mut begun) = (0, 0);
        // Rounds in which nobody of a line has passed, one after the other.
        let mut missed = [0; 6];
        for step in steps {
            match step {
                Some(connection) => {
                    come += 1;
                    begun += usize::from(connections.come(connection * connection / 6));
                }
                None => {
                    let before: Vec<usize> = connections.waiting.iter().map(VecDeque::len).collect();
                    let passed = connections.round();
                    prop_assert_eq!(passed.iter().sum::<usize>(), before.iter().sum::<usize>().min(LOT));
                    // Five lines at the most.
                    for (passed, before) in passed.iter().zip(before) {
                        missed[0] = if *passed == 0 && before > 0 { missed[0] + 1 } else { 0 };
                        prop_assert!(missed[0] <= 5 * SHORT / LOT, "{missed:?}");
                        missed.rotate_left(1);
                    }
                    begun += passed.iter().sum::<usize>();
                }
            }
        }
        for _ in 0..2000 / LOT + 1 {
            begun += connections.round().iter().sum::<usize>();
        }
        prop_assert_eq!(begun, come);
        prop_assert_eq!(connections.bell.0.load(Ordering::Acquire), come);
        let request_queue = &connections.request_queue;
        let crowd = request_queue.crowd.borrow();
        prop_assert!(crowd.turns.is_empty());
        prop_assert_eq!(crowd.free.len(), crowd.lines.len());
        prop_assert!(request_queue.is_open(FREE - 1));
    }
}
