//! Which backends of a tier are ready: what picks look at, and the board keeps.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::targets::queueing::ready::Ready;
use crate::tick::Tick;

/// Which backends of a tier are ready. The live set reads it, the board writes it.
#[derive(Debug)]
pub(in crate::targets) struct Watch {
    pub(in crate::targets) ready: Ready,
    /// The earliest end of an ejection or of an open breaker; `u64::MAX`: there is none.
    pub(in crate::targets) due: AtomicU64,
    /// How many are out only for having as many leases as they may have.
    pub(in crate::targets) full: AtomicU32,
}

impl Watch {
    /// A tier of `len` backends, all ready.
    pub(in crate::targets) fn new(len: usize) -> Watch {
        Watch { ready: Ready::new(len), due: AtomicU64::new(u64::MAX), full: AtomicU32::new(0) }
    }

    /// When the next ejection or open breaker ends; [`Tick::NEVER`]: there is none.
    #[inline]
    pub(in crate::targets) fn due(&self) -> Tick {
        Tick(self.due.load(Ordering::Relaxed))
    }
}
