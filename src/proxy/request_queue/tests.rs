use std::rc::Rc;
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

/// What a connection's streams were begun as, in that order.
type Begun = Rc<RefCell<Vec<u32>>>;

fn note(StreamJob { session, id }: StreamJob) {
    session.downcast_ref::<RefCell<Vec<u32>>>().expect("it is one").borrow_mut().push(id);
}

/// Streams of some connections.
#[derive(Default)]
struct Connections {
    request_queue: RequestQueue,
    lasts: Vec<LastInLine>,
    begun: Vec<Begun>,
    /// Those of each connection that have come.
    come: Vec<u32>,
}

impl Connections {
    fn new(count: usize) -> Connections {
        let lasts = (0..count).map(|_| LastInLine::default()).collect();
        let begun = (0..count).map(|_| Begun::default()).collect();
        Connections { lasts, begun, come: vec![0; count], ..Connections::default() }
    }

    fn waiting(&self, connection: usize) -> usize {
        self.come[connection] as usize - self.begun[connection].borrow().len()
    }

    /// A request comes. True: it begins at once.
    fn come(&mut self, connection: usize) -> bool {
        let (id, begun) = (self.come[connection], &self.begun[connection]);
        self.come[connection] += 1;
        let job = StreamJob { session: Rc::<RefCell<Vec<u32>>>::clone(begun), id };
        self.request_queue.begin(job, note, &self.lasts[connection], FREE);
        begun.borrow().last() == Some(&id)
    }

    /// A round is over. How many of each connection have passed.
    fn round(&mut self) -> Vec<usize> {
        let before: Vec<usize> = self.begun.iter().map(|begun| begun.borrow().len()).collect();
        self.request_queue.open();
        let passed = self.begun.iter().zip(before).map(|(begun, before)| {
            let begun = begun.borrow();
            assert!(
                begun.iter().enumerate().all(|(place, id)| place as u32 == *id),
                "in the order in which they came"
            );
            begun.len() - before
        });
        passed.collect()
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
    // One in a task of its own, which is let in when the memory is given back, before it looks.
    let (cx, mut ticket) = (Context::from_waker(Waker::noop()), RequestTicket::default());
    let last = LastInLine::default();
    assert!(connections.request_queue.poll_pass(&cx, &mut ticket, &last, || FREE).is_pending());
    while connections.request_queue.open() > 0 {}
    assert!(connections.request_queue.crowd.borrow().lines.is_empty());
    assert!((0..KEPT + LOT).all(|connection| connections.waiting(connection) == 0));
    while connections.come(0) {}
    assert!(connections.request_queue.poll_pass(&cx, &mut ticket, &last, || FREE).is_ready());
    assert_eq!((connections.waiting(0), connections.round()[0]), (1, 1));
}

#[test]
fn when_no_more_rounds_are_opened_nobody_is_held() {
    let mut connections = Connections::new(1);
    while connections.come(0) {}
    assert_eq!(Rc::strong_count(&connections.begun[0]), 2);
    // Whether it was ever asked or not.
    drop(connections.request_queue.let_in());
    assert_eq!((Rc::strong_count(&connections.begun[0]), connections.waiting(0)), (1, 1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever comes when: each begins once, in the order of its connection, and within as many rounds as the lines before it need.
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
                    let before: Vec<usize> = (0..6).map(|connection| connections.waiting(connection)).collect();
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
        let request_queue = &connections.request_queue;
        let crowd = request_queue.crowd.borrow();
        prop_assert!(crowd.turns.is_empty());
        prop_assert_eq!(crowd.free.len(), crowd.lines.len());
        prop_assert!(request_queue.is_open(FREE - 1));
    }
}
