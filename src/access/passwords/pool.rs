//! The thread that compares passwords: one, of a low priority, there while there is something to compare.
//!
//! Behind the mutex are the line and whether there is a thread. There is one whenever the line is not empty: whoever enters starts it
//! under the lock, and it goes under the lock, when nothing waits. Nothing slow is done while the lock is held.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::setpriority_process;
use tokio::sync::oneshot::{self, Receiver, Sender};

use super::known::PasswordDigest;
use super::line::{ClientKey, Crowded, Line};

/// What the thread is to the others: about a tenth of a worker's share where both want the same core.
const NICE: i32 = 10;
/// For how long it waits for another password before it ends.
const IDLE: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() -> bool + Send>;

/// Logins that wait, and the thread that serves them.
#[derive(Default)]
pub(super) struct LoginPool(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    line: Line<Work, Sender<bool>>,
    has_thread: bool,
}

impl fmt::Debug for LoginPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoginPool")
    }
}

impl LoginPool {
    /// Has `work` done after that of others, and tells what it says. Nothing comes where it panics or there can't be a thread.
    ///
    /// # Errors
    /// Too many wait already.
    pub(super) fn submit(
        &self,
        client: Option<IpAddr>,
        digest: PasswordDigest,
        work: impl FnOnce() -> bool + Send + 'static,
    ) -> Result<Receiver<bool>, Crowded> {
        let (tell, told) = oneshot::channel();
        let mut state = self.0.lock();
        state.line.enter(ClientKey::of(client), (digest, Box::new(work), tell), is_wanted)?;
        if state.has_thread {
            drop(state);
            self.0.wake.notify_one();
        } else {
            let server = Server(Arc::clone(&self.0));
            // Without a thread those who wait stay in the line until there is one.
            let begun =
                thread::Builder::new().name("evenkeel-passwords".into()).spawn(move || server.serve());
            state.has_thread = begun.is_ok();
        }
        Ok(told)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether somebody still waits to be told.
fn is_wanted(tell: &Sender<bool>) -> bool {
    !tell.is_closed()
}

/// The thread.
struct Server(Arc<Shared>);

impl Server {
    fn serve(self) {
        // To Linux a priority is a thread's. Where it is not taken the work is done all the same.
        let _ = setpriority_process(None, NICE);
        let mut state = self.0.lock();
        loop {
            if let Some(work) = state.line.next(is_wanted) {
                drop(state);
                let is_good = work();
                state = self.0.lock();
                for tell in state.line.finish() {
                    // Whoever waited may have gone.
                    let _ = tell.send(is_good);
                }
                continue;
            }
            let (next, waited) =
                self.0.wake.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = next;
            if waited.timed_out() && state.line.is_empty() {
                state.has_thread = false;
                return;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if thread::panicking() {
            let mut state = self.0.lock();
            // Those are told nothing; the next one who comes begins another thread.
            state.line.finish();
            state.has_thread = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn work_is_done_one_after_the_other_and_a_panic_ends_no_more_than_its_own() {
        let pool = LoginPool::default();
        let address = |number: u8| Some(IpAddr::from([192, 0, 2, number]));
        let (begin, begun) = mpsc::channel::<()>();
        let held = pool.submit(address(1), [1; 32], move || begun.recv().is_ok()).expect("room");
        let (order, came) = mpsc::channel();
        let mut outcomes = Vec::new();
        for number in 2..6u8 {
            let order = order.clone();
            let work = move || {
                order.send(number).expect("somebody listens");
                assert_ne!(number, 4, "this panic is wanted");
                number % 2 == 0
            };
            outcomes.push(pool.submit(address(number), [number; 32], work).expect("room"));
        }
        begin.send(()).expect("it waits");
        assert_eq!(held.blocking_recv(), Ok(true));
        let told: Vec<_> = outcomes.drain(..3).map(Receiver::blocking_recv).collect();
        assert_eq!(told[..2], [Ok(true), Ok(false)]);
        assert!(told[2].is_err(), "it has panicked");
        // What was behind it is served by the thread of whoever comes next.
        let last = pool.submit(address(9), [9; 32], || true).expect("room");
        assert_eq!((outcomes.remove(0).blocking_recv(), last.blocking_recv()), (Ok(false), Ok(true)));
        assert!(came.try_iter().eq(2..6));
    }

    #[test]
    fn those_who_have_left_cost_nothing() {
        let pool = LoginPool::default();
        let (begin, begun) = mpsc::channel::<()>();
        let held = pool.submit(None, [1; 32], move || begun.recv().is_ok()).expect("room");
        let (order, came) = mpsc::channel();
        for number in 2..5u8 {
            let order = order.clone();
            let work = move || order.send(number).is_ok();
            let told = pool.submit(None, [number; 32], work).expect("those who left hold no place");
            if number < 4 {
                drop(told);
            } else {
                begin.send(()).expect("it waits");
                assert_eq!(told.blocking_recv(), Ok(true));
            }
        }
        assert_eq!(held.blocking_recv(), Ok(true));
        assert!(came.try_iter().eq([4]));
    }
}
