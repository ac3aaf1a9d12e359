//! Connections that were told whose they are.

use proptest::prelude::*;

use super::*;

impl Worker {
    /// Puts back a connection that was told of `owner`, and gives its far end.
    fn put_passed(&self, owner: PassedOwner, backend: &Arc<Backend>, now: Tick) -> UnixStream {
        let (near, far) = UnixStream::pair().expect("a pair of sockets");
        let used = Used { stream: near.into(), keep_for: None, generation: backend.generation() };
        self.pool.put_passed(&self.cells, owner, backend, used, now);
        far
    }

    fn takes_passed(&self, owner: PassedOwner, backend: &Backend, need: Need, now: Tick) -> bool {
        self.pool.take_passed(&self.cells, (owner, backend), need, now).is_some()
    }
}

#[tokio::test]
async fn only_requests_of_its_client_get_it_and_none_once_that_has_gone() {
    let (_registry, backends) = backends(2);
    let worker = Worker::new(&shared());
    let (alice, bob) = (worker.pool.new_passed_owner(), worker.pool.new_passed_owner());
    let _far = worker.put_passed(alice, &backends[0], at(1));
    assert!(worker.pool.take(&worker.cells, &backends[0], Need::Repeatable, at(1)).is_none());
    assert!(!worker.takes_passed(bob, &backends[0], Need::Repeatable, at(1)));
    assert!(!worker.takes_passed(alice, &backends[1], Need::Repeatable, at(1)));
    assert!(worker.takes_passed(alice, &backends[0], Need::Repeatable, at(1)));
    assert!(!worker.takes_passed(alice, &backends[0], Need::Repeatable, at(1)), "once");
    let _far = worker.put_passed(alice, &backends[0], at(1));
    worker.pool.release_passed(&worker.cells, alice);
    assert_eq!((worker.pool.is_live(alice), worker.pool.is_live(bob)), (false, true));
    // What was under way when its client left comes too late to be kept.
    let _late = worker.put_passed(alice, &backends[0], at(1));
    assert!(!worker.takes_passed(alice, &backends[0], Need::Repeatable, at(1)));
    assert_eq!((worker.pool.len(), worker.closed()), (0, (2, 0)));
}

#[tokio::test]
async fn what_cannot_be_repeated_goes_on_none_that_has_rested() {
    let (_registry, backends) = backends(1);
    let worker = Worker::new(&shared());
    let alice = worker.pool.new_passed_owner();
    let _far = worker.put_passed(alice, &backends[0], millis(1_000));
    assert!(!worker.takes_passed(alice, &backends[0], Need::Once, millis(1_500)));
    assert!(worker.takes_passed(alice, &backends[0], Need::Repeatable, millis(1_500)), "it was left");
    let _far = worker.put_passed(alice, &backends[0], millis(2_000));
    assert!(worker.takes_passed(alice, &backends[0], Need::Once, millis(2_010)), "just used");
    drop(worker.put_passed(alice, &backends[0], millis(3_000)));
    assert!(
        !worker.takes_passed(alice, &backends[0], Need::Once, millis(3_001)),
        "its end is known to the kernel"
    );
}

#[tokio::test]
async fn what_rests_beyond_the_limit_of_the_process_is_closed_and_the_rest_too_when_descriptors_are_short() {
    let (_registry, backends) = backends(1);
    let (total, before) = (shared(), TOTAL as usize - 2);
    let worker = Worker::new(&total);
    // Another worker has nearly all that may rest.
    total.fetch_add(before as u32, Ordering::AcqRel);
    let owners: Vec<_> = (0..6).map(|_| worker.pool.new_passed_owner()).collect();
    let _far: Vec<_> = owners.iter().map(|owner| worker.put_passed(*owner, &backends[0], at(1))).collect();
    worker.pool.sweep(&worker.cells, at(1));
    assert_eq!(worker.pool.len(), 6, "they don't rest yet");
    worker.pool.sweep(&worker.cells, at(10));
    assert_eq!((worker.pool.len(), worker.closed()), (2, (4, 0)));
    worker.pool.clear(&worker.cells);
    assert_eq!((worker.pool.len(), worker.closed()), (0, (6, 0)));
    assert_eq!(total.load(Ordering::Acquire) as usize, before, "and no credit is held");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever comes in which order: who takes gets the latest of its own to that backend, and at most five wait for each.
    #[test]
    fn owners_and_backends_are_never_mixed_up(
        steps in prop::collection::vec((0usize..3, 0usize..3, 0u8..8), 1..120),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let _inside = runtime.enter();
        let (_registry, backends) = backends(3);
        let worker = Worker::new(&shared());
        let mut owners: Vec<_> = (0..3).map(|_| worker.pool.new_passed_owner()).collect();
        let mut model: Vec<Vec<(usize, UnixStream)>> = (0..3).map(|_| Vec::new()).collect();
        for (owner, backend, what) in steps {
            match what {
                0..4 => {
                    if model[owner].len() == 5 {
                        model[owner].remove(0);
                    }
                    model[owner].push((backend, worker.put_passed(owners[owner], &backends[backend], at(1))));
                }
                4..7 => {
                    let place = model[owner].iter().rposition(|(leads, _)| *leads == backend);
                    let expected = place.map(|place| model[owner].remove(place).1);
                    let whose = (owners[owner], &*backends[backend]);
                    let taken = worker.pool.take_passed(&worker.cells, whose, Need::Repeatable, at(1));
                    prop_assert_eq!(taken.is_some(), expected.is_some());
                    if let (Some(Stream::Unix(near)), Some(far)) = (taken, expected) {
                        rustix::io::write(near.socket(), b"x").expect("an open socket");
                        prop_assert_eq!(rustix::io::read(&far, &mut [0u8; 1]), Ok(1), "another one");
                    }
                }
                _ => {
                    worker.pool.release_passed(&worker.cells, owners[owner]);
                    owners[owner] = worker.pool.new_passed_owner();
                    model[owner].clear();
                }
            }
            prop_assert_eq!(worker.pool.len(), model.iter().map(Vec::len).sum::<usize>());
        }
    }
}
