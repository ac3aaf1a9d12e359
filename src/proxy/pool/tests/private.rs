//! Connections that belong to one client's connection.

use super::*;

impl Worker {
    /// Keeps a connection for `owner`, and gives its far end.
    async fn keep(&self, owner: Owner, backend: &Arc<Backend>, now: Tick) -> UnixStream {
        let (stream, far) = known_silent().await;
        let used = Used { stream, keep_for: None, generation: backend.generation() };
        self.pool.put_private(&self.cells, owner, backend, used, now);
        far
    }

    fn takes(&self, owner: Owner, backend: &Backend, now: Tick) -> bool {
        self.pool.take_private(&self.cells, owner, backend, now).is_some()
    }

    fn owner(&self) -> Owner {
        self.pool.new_owner().expect("a number")
    }
}

#[tokio::test]
async fn only_its_owner_gets_it_and_only_for_its_backend() {
    let (_registry, backends) = backends(2);
    let worker = Worker::new(&shared());
    let (alice, bob) = (worker.owner(), worker.owner());
    let _far = worker.keep(alice, &backends[0], at(1)).await;
    assert_eq!(worker.pool.len(), 1);
    assert!(worker.pool.take(&worker.cells, &backends[0], Need::Repeatable, at(1)).is_none());
    assert!(!worker.takes(bob, &backends[0], at(1)));
    assert!(worker.pool.kept_for(bob).is_none());
    assert_eq!(worker.pool.kept_for(alice).map(|backend| backend.id), Some(backends[0].id));
    assert!(worker.takes(alice, &backends[0], at(60)), "however long it has rested");
    assert!(!worker.takes(alice, &backends[0], at(60)), "once");

    let _far = worker.keep(alice, &backends[0], at(60)).await;
    assert!(!worker.takes(alice, &backends[1], at(60)));
    assert!(worker.pool.is_empty(), "who goes elsewhere gives it up");
    assert_eq!((worker.cells.pool.reused.value(), worker.closed()), (1, (1, 0)));
}

#[tokio::test]
async fn one_that_is_closed_too_old_or_of_a_backend_that_failed_is_not_given() {
    let (registry, backends) = backends(1);
    let worker = Worker::new(&shared());
    let alice = worker.owner();
    drop(worker.keep(alice, &backends[0], at(1)).await);
    // The event loop has not heard of it.
    assert!(!worker.takes(alice, &backends[0], at(1)));
    let _far = worker.keep(alice, &backends[0], at(1)).await;
    assert!(!worker.takes(alice, &backends[0], at(92)));
    let _far = worker.keep(alice, &backends[0], at(1)).await;
    registry.apply(&[]);
    assert!(!worker.takes(alice, &backends[0], at(1)));
    assert!(worker.pool.is_empty());
}

#[tokio::test]
async fn the_sweep_its_owners_end_and_a_shortage_close_it() {
    let (_registry, backends) = backends(1);
    let worker = Worker::new(&shared());
    let (alice, bob) = (worker.owner(), worker.owner());
    let (_hers, _his) =
        (worker.keep(alice, &backends[0], at(1)).await, worker.keep(bob, &backends[0], at(50)).await);
    worker.pool.sweep(&worker.cells, at(91));
    assert_eq!((worker.pool.len(), worker.closed()), (2, (0, 0)));
    worker.pool.sweep(&worker.cells, at(92));
    assert_eq!((worker.pool.len(), worker.closed()), (1, (1, 0)));
    worker.pool.release(&worker.cells, bob);
    worker.pool.release(&worker.cells, bob);
    assert_eq!((worker.pool.len(), worker.closed()), (0, (2, 0)));
    let _far = worker.keep(bob, &backends[0], at(92)).await;
    worker.pool.clear(&worker.cells);
    assert_eq!((worker.pool.len(), worker.closed()), (0, (3, 0)));
}
