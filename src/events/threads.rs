//! Where the events of other threads go.

use std::cell::RefCell;

use tracing::dispatcher::{self, DefaultGuard, Dispatch};

thread_local! {
    /// Until the thread ends.
    static FOLLOWS: RefCell<Option<DefaultGuard>> = const { RefCell::new(None) };
}

/// Has the events of the thread that calls what is returned go where those of this thread go: several servers in one process, as
/// tests have them, are told apart by that.
pub fn here_as_there() -> impl Fn() + Send + Sync + 'static {
    let there = dispatcher::get_default(Dispatch::clone);
    move || FOLLOWS.with_borrow_mut(|follows| *follows = Some(dispatcher::set_default(&there)))
}
