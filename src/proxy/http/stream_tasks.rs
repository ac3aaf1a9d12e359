//! The tasks in which streams are served.
//!
//! A stream has a task to itself, and to make one for each costs more than to look up its backend. So a task that has served a stream to its
//! end waits for the next one of the same worker, of whichever connection, with the memory of the one before (as [`super::job_futures`]
//! does for connections of HTTP/1).
//!
//! Invariants. A task is in `free` exactly while it waits, and then its seat holds no job and the waker that begins it. One that panics takes
//! its job with it, and is in `free` no more; neither is one that is over, which ends without a job.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use tokio::task::spawn_local;

/// Tasks kept for the next stream; more than these end. As many as a few dozen busy connections have streams.
const KEPT: usize = 1024;
/// Those that are left when a crowd has gone.
const FEW: usize = 64;

/// A stream to be served.
pub struct StreamJob {
    /// Its connection.
    pub session: Rc<dyn Any>,
    /// Its number.
    pub id: u32,
}

/// Where a task is given its job.
struct TaskSeat<J> {
    job: Cell<Option<J>>,
    waker: RefCell<Option<Waker>>,
    /// It is not to wait for another one.
    is_over: Cell<bool>,
}

/// One worker's tasks.
pub struct StreamTasks<J> {
    inner: Rc<TaskPool<J>>,
}

struct TaskPool<J> {
    free: RefCell<Vec<Rc<TaskSeat<J>>>>,
    busy: Cell<usize>,
}

impl<J> Default for StreamTasks<J> {
    fn default() -> StreamTasks<J> {
        StreamTasks { inner: Rc::new(TaskPool { free: RefCell::default(), busy: Cell::new(0) }) }
    }
}

/// Counts a job as long as it is done.
struct Busy<'a>(&'a Cell<usize>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl<J> StreamTasks<J> {
    /// Ends all but a few of the tasks that wait, with what their jobs have left.
    pub fn trim(&self) {
        let rest: Vec<_> = {
            let mut free = self.inner.free.borrow_mut();
            let few = free.len().min(FEW);
            free.drain(few..).collect()
        };
        for seat in rest {
            seat.is_over.set(true);
            if let Some(waker) = seat.waker.take() {
                waker.wake();
            }
        }
    }

    /// Jobs that are being done or are about to be.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.inner.busy.get()
    }
}

impl<J: 'static> StreamTasks<J> {
    /// Has `job` done as `serve` would, with the things that the job before left at its task: of the tasks that wait by the one whose memory is the
    /// warmest, and where none does by a new one. All callers of one `StreamTasks` pass the same `serve`.
    pub fn begin<S: Default + 'static>(&self, job: J, serve: impl AsyncFn(J, &mut S) + 'static) {
        self.inner.busy.set(self.inner.busy.get() + 1);
        let free = self.inner.free.borrow_mut().pop();
        if let Some(seat) = free {
            seat.job.set(Some(job));
            if let Some(waker) = &*seat.waker.borrow() {
                waker.wake_by_ref();
            }
            return;
        }
        let seat = Rc::new(TaskSeat {
            job: Cell::new(Some(job)),
            waker: RefCell::default(),
            is_over: Cell::new(false),
        });
        let pool = Rc::clone(&self.inner);
        // Boxed: it is large, and spawning moves it about.
        spawn_local(Box::pin(async move {
            let mut things = S::default();
            loop {
                let job = poll_fn(|cx| {
                    if let Some(job) = seat.job.take() {
                        return Poll::Ready(Some(job));
                    }
                    if seat.is_over.get() {
                        return Poll::Ready(None);
                    }
                    let mut waker = seat.waker.borrow_mut();
                    if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                        *waker = Some(cx.waker().clone());
                    }
                    Poll::Pending
                })
                .await;
                let Some(job) = job else { return };
                let busy = Busy(&pool.busy);
                serve(job, &mut things).await;
                drop(busy);
                let mut free = pool.free.borrow_mut();
                if free.len() >= KEPT {
                    return;
                }
                free.push(Rc::clone(&seat));
            }
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Things {
        served: usize,
    }

    async fn serve((told, breaks): (Told, bool), things: &mut Things) {
        tokio::task::yield_now().await;
        things.served += 1;
        assert!(!breaks, "this panic is wanted");
        told.borrow_mut().push(things.served);
    }

    type Told = Rc<RefCell<Vec<usize>>>;

    /// Lets all tasks do what they have to.
    async fn settle() {
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }

    fn begin(tasks: &StreamTasks<(Told, bool)>, told: &Told, breaks: bool) {
        tasks.begin((Rc::clone(told), breaks), serve);
    }

    #[test]
    fn a_task_serves_one_stream_after_the_other_and_one_that_panics_is_gone_alone() {
        let options = tokio::runtime::LocalOptions::default();
        let runtime = tokio::runtime::Builder::new_current_thread().build_local(options).expect("a runtime");
        runtime.block_on(async {
            let (tasks, told) = (StreamTasks::default(), Rc::new(RefCell::new(Vec::new())));
            for _ in 0..3 {
                begin(&tasks, &told, false);
                assert_eq!(tasks.busy(), 1);
                settle().await;
                assert_eq!(tasks.busy(), 0);
            }
            assert_eq!(*told.borrow(), [1, 2, 3], "things stay");
            begin(&tasks, &told, true);
            settle().await;
            assert_eq!((tasks.busy(), tasks.inner.free.borrow().len()), (0, 0));
            (0..2).for_each(|_| begin(&tasks, &told, false));
            settle().await;
            assert_eq!(*told.borrow(), [1, 2, 3, 1, 1], "two at once are two tasks");
            assert_eq!((tasks.busy(), tasks.inner.free.borrow().len(), Rc::strong_count(&told)), (0, 2, 1));
        });
    }

    #[test]
    fn of_those_that_a_crowd_has_left_a_few_are_kept_and_the_others_end() {
        let options = tokio::runtime::LocalOptions::default();
        let runtime = tokio::runtime::Builder::new_current_thread().build_local(options).expect("a runtime");
        runtime.block_on(async {
            let (tasks, told) = (StreamTasks::default(), Rc::new(RefCell::new(Vec::new())));
            (0..FEW + 10).for_each(|_| begin(&tasks, &told, false));
            settle().await;
            assert_eq!(Rc::strong_count(&tasks.inner), 1 + FEW + 10);
            tasks.trim();
            settle().await;
            assert_eq!((Rc::strong_count(&tasks.inner), tasks.inner.free.borrow().len()), (1 + FEW, FEW));
            told.borrow_mut().clear();
            begin(&tasks, &told, false);
            settle().await;
            assert_eq!(*told.borrow(), [2], "one that has served before");
        });
    }
}
