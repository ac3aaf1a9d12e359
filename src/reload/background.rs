//! Work for which nobody who is served should wait: reading a config, making a snapshot of it, letting go of the one before.
//!
//! Each piece has a thread of its own, which yields the processor to whoever else wants it: ten thousand backends are
//! some tens of milliseconds, and workers and probes share the same cores.

use std::io;
use std::thread;

use rustix::process::setpriority_process;
use tokio::sync::oneshot;

use crate::events;

/// What the thread is to the others: about a tenth of a worker's share where both want the same core.
const NICE: i32 = 10;

/// Does `work` on a thread of its own at a low priority.
///
/// # Errors
/// There can't be another thread.
pub fn in_background(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let follow = events::here_as_there();
    let work = move || {
        follow();
        // To Linux a priority is a thread's. Where it is not taken the work is done all the same.
        let _ = setpriority_process(None, NICE);
        work();
    };
    thread::Builder::new().name("evenkeel-reload".into()).spawn(work).map(drop)
}

/// The same, waiting for what comes of it.
///
/// # Errors
/// There can't be another thread, or it has panicked, which the panic's own event tells.
pub async fn background<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (tell, told) = oneshot::channel();
    // Whoever waits may have gone.
    in_background(move || drop(tell.send(work())))?;
    told.await.map_err(|_| io::Error::other("it panicked"))
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[tokio::test]
    async fn the_work_has_a_low_priority_and_whoever_waits_for_it_keeps_its_own() {
        let own = || getpriority_process(None).expect("a priority");
        let before = own();
        assert_eq!(background(own).await.expect("done"), NICE.max(before));
        assert_eq!(own(), before);
        let error = background(|| assert_eq!(1, 2, "this panic is wanted")).await.expect_err("it panicked");
        assert_eq!(error.to_string(), "it panicked");
    }
}
