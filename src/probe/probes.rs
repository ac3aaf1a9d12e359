//! The probes of the config in force: those of a target that did not change keep their schedule over a reload.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Resolver, start_with};
use crate::targets::Target;
use crate::tick::Tick;

/// What runs for one target; its tasks end when it is dropped.
struct Running {
    target: Arc<Target>,
    _tasks: JoinSet<()>,
}

/// The probes, lookups and comparisons of all targets in force.
pub struct Probes<C> {
    resolver: Resolver,
    clock: C,
    cancel: CancellationToken,
    running: HashMap<Arc<str>, Running>,
}

impl<C: Fn() -> Tick + Clone + Send + Sync + 'static> Probes<C> {
    /// None yet. They end when `cancel` is cancelled or this is dropped.
    #[must_use]
    pub fn new(resolver: Resolver, clock: C, cancel: &CancellationToken) -> Probes<C> {
        Probes { resolver, clock, cancel: cancel.clone(), running: HashMap::new() }
    }

    /// Follows `targets` and no others. Must be called inside a tokio runtime with timers and I/O.
    pub fn follow(&mut self, targets: &[Arc<Target>]) {
        let wanted: HashMap<&str, &Arc<Target>> =
            targets.iter().map(|target| (&*target.name, target)).collect();
        self.running
            .retain(|name, running| wanted.get(&**name).is_some_and(|now| Arc::ptr_eq(now, &running.target)));
        for target in targets {
            if !self.running.contains_key(&target.name) {
                let tasks = start_with(
                    std::slice::from_ref(target),
                    &self.resolver,
                    self.clock.clone(),
                    &self.cancel,
                );
                let running = Running { target: Arc::clone(target), _tasks: tasks };
                self.running.insert(Arc::clone(&target.name), running);
            }
        }
    }
}
