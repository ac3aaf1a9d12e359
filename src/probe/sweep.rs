//! Has the backends of a target compared with each other, and tells what became of them, as long as it is there.

use tokio::time::{MissedTickBehavior, interval};

use crate::targets::{SWEEP, Target};
use crate::tick::Tick;

/// Sweeps `target` for ever, and announces what turns.
pub(super) async fn sweep<C: Fn() -> Tick>(target: &Target, clock: &C) {
    let mut turns = interval(SWEEP);
    // After a stall the next sweep sees all that came in between; a second one right behind it would see nothing.
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = turns.tick() => {
                target.sweep(clock());
            }
            () = target.turned() => target.announce(clock()),
        }
    }
}
