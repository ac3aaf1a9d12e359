//! How the tasks of a connection's streams tell the one that writes.

use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};

/// Wakes the task of a connection when something was appended to its output: once for all that is appended until it has its turn.
///
/// Invariant: while `is_stirred`, that task was woken and has not looked since, or has never looked and will.
#[derive(Default)]
pub struct WriterBell {
    writer: RefCell<Option<Waker>>,
    is_stirred: Cell<bool>,
}

impl WriterBell {
    /// The connection's task looks, and is to be woken by [`WriterBell::stir`] from now on.
    pub fn look(&self, cx: &Context<'_>) {
        self.is_stirred.set(false);
        let mut writer = self.writer.borrow_mut();
        if !writer.as_ref().is_some_and(|writer| writer.will_wake(cx.waker())) {
            *writer = Some(cx.waker().clone());
        }
    }

    /// There is something to be written or looked at.
    #[inline]
    pub fn stir(&self) {
        if !self.is_stirred.replace(true)
            && let Some(writer) = &*self.writer.borrow()
        {
            writer.wake_by_ref();
        }
    }
}
