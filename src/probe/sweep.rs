//! Has the backends of a target compared with each other, and tells what became of them, as long as it is there.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::targets::{Backend, SWEEP, Target};
use crate::tick::Tick;

/// Takes backends that leave without another config, after their words have changed: workers are to look at them.
pub type Departures = mpsc::UnboundedSender<Vec<Arc<Backend>>>;

/// Sweeps the target for ever, as the `newest` config has it, and announces what turns.
pub(super) async fn sweep<C: Fn() -> Tick>(
    newest: &mut watch::Receiver<Arc<Target>>,
    clock: &C,
    departures: &Departures,
) {
    let mut turns = interval(SWEEP);
    // After a stall the next sweep sees all that came in between; a second one right behind it would see nothing.
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let target = Arc::clone(&newest.borrow_and_update());
        let left = target.state.stand_in(clock());
        let departed = target.state.take_departed();
        if !departed.is_empty() {
            // An error: the process ends.
            let _ = departures.send(departed);
        }
        tokio::select! {
            _ = turns.tick() => {
                target.sweep(clock());
            }
            () = target.turned() => target.announce(clock()),
            // The next look ends it.
            () = sleep(left.unwrap_or_default()), if left.is_some() => {}
            // An error: nobody brings another one, and this is about to end.
            Ok(()) = newest.changed() => {}
        }
    }
}
