//! The latest frame, made when somebody asks for one and the one before is a second old.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::frame::{Frame, Rows};
use crate::net::now;
use crate::telemetry::cells::Readings;
use crate::tick::Tick;

/// From one frame to the next.
pub(super) const STEP: Duration = Duration::from_secs(1);
/// How often what was counted is kept for later: what is said about times is about the last one to two of these.
const WINDOW: Duration = Duration::from_secs(10);

/// What is seen when somebody looks.
pub(super) struct DashboardLook {
    /// The time, as milliseconds since 1970.
    pub(super) unix_ms: u64,
    pub(super) rows: Rows,
    /// What was counted by then.
    pub(super) readings: Readings,
}

/// The latest frame. There is one for all who look.
///
/// Invariant: frames are made one at a time and no sooner than a second after one another, however many look; each is made from the
/// one before, so whoever has that one needs its changes only.
pub struct FrameKeeper {
    born: u32,
    kept: Mutex<Option<Kept>>,
}

struct Kept {
    frame: Arc<Frame>,
    /// What was counted a while ago, the older one first.
    counted: [(Tick, Arc<Readings>); 2],
}

impl FrameKeeper {
    /// Of a process with this number.
    pub(in crate::admin) fn new(born: u32) -> FrameKeeper {
        FrameKeeper { born, kept: Mutex::default() }
    }

    /// The number of its process.
    pub(super) fn born(&self) -> u32 {
        self.born
    }

    /// The frame of this second, of what `look` sees, who is told what was counted a while ago; `None`: it sees nothing.
    pub(super) async fn latest<L>(&self, look: L) -> Option<Arc<Frame>>
    where
        L: FnOnce(Option<&Readings>) -> Option<DashboardLook> + Send + 'static,
    {
        let mut kept = self.kept.lock().await;
        let at = now();
        if let Some(kept) = kept.as_ref().filter(|kept| at.since(kept.frame.at) < STEP) {
            return Some(Arc::clone(&kept.frame));
        }
        let counted = kept.as_ref().map(|kept| Arc::clone(&kept.counted[0].1));
        // With many backends it takes a while.
        let seen = spawn_blocking(move || look(counted.as_deref())).await.ok().flatten()?;
        let readings = Arc::new(seen.readings);
        let (before, [older, newer]) = match kept.take() {
            Some(Kept { frame, counted }) => (Some(frame), counted),
            None => (None, [(); 2].map(|()| (at, Arc::clone(&readings)))),
        };
        let frame = Arc::new(Frame::after(before.as_deref(), self.born, (at, seen.unix_ms), seen.rows));
        let is_due = at.since(newer.0) >= WINDOW;
        let counted = if is_due { [newer, (at, readings)] } else { [older, newer] };
        *kept = Some(Kept { frame: Arc::clone(&frame), counted });
        Some(frame)
    }
}
