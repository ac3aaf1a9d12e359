//! The latest frame, made when somebody asks for one and the one before is a second old.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::frame::{Frame, FrameTime, Rows};
use crate::net::now;
use crate::tick::Tick;

/// From one frame to the next.
pub(super) const STEP: Duration = Duration::from_secs(1);

/// What is seen when somebody looks.
pub(super) struct DashboardLook {
    pub(super) time: FrameTime,
    pub(super) rows: Rows,
}

/// The latest frame. There is one for all who look.
///
/// Invariant: frames are made one after the other and no sooner than a second after one another, however many look; each is made from
/// the one before, so whoever has that one needs its changes only. Who goes away while one is made leaves it to nobody: the next who
/// looks makes another one, from the same one before.
pub struct FrameKeeper {
    born: u32,
    kept: Mutex<Option<Arc<Frame>>>,
    /// When somebody looked last; 0: nobody has.
    looked: AtomicU64,
    /// The same of whoever wants to see what the other nodes have to do.
    nodes_wanted: AtomicU64,
}

impl FrameKeeper {
    /// Of a process with this number.
    pub(in crate::admin) fn new(born: u32) -> FrameKeeper {
        FrameKeeper {
            born,
            kept: Mutex::default(),
            looked: AtomicU64::default(),
            nodes_wanted: AtomicU64::default(),
        }
    }

    /// The number of its process.
    pub(super) fn born(&self) -> u32 {
        self.born
    }

    /// When somebody looked last; `None`: nobody has.
    pub(in crate::admin) fn looked(&self) -> Option<Tick> {
        Some(Tick(self.looked.load(Ordering::Relaxed))).filter(|looked| *looked != Tick::ZERO)
    }

    /// Somebody wants to see what the other nodes have to do.
    pub(super) fn want_nodes(&self) {
        self.nodes_wanted.store(now().0, Ordering::Relaxed);
    }

    /// When somebody wanted that last; `None`: nobody has.
    pub(super) fn nodes_wanted(&self) -> Option<Tick> {
        Some(Tick(self.nodes_wanted.load(Ordering::Relaxed))).filter(|wanted| *wanted != Tick::ZERO)
    }

    /// The frame of this second, of what `look` sees; `None`: it sees nothing.
    pub(super) async fn latest<L>(&self, look: L) -> Option<Arc<Frame>>
    where
        L: FnOnce() -> Option<DashboardLook> + Send + 'static,
    {
        let mut kept = self.kept.lock().await;
        let at = now();
        self.looked.store(at.0, Ordering::Relaxed);
        if let Some(frame) = kept.as_ref().filter(|frame| at.since(frame.time.at) < STEP) {
            return Some(Arc::clone(frame));
        }
        // With many backends it takes a while.
        let seen = spawn_blocking(look).await.ok().flatten()?;
        let frame = Arc::new(Frame::after(kept.as_deref(), self.born, seen.time, seen.rows));
        *kept = Some(Arc::clone(&frame));
        Some(frame)
    }
}
