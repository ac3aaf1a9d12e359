//! The futures in which requests are served.
//!
//! What a request needs while it is served comes to more than a kilobyte, which an idle connection must not hold.
//! To allocate, move and free that for each request costs more than to look up its backend; so a future that has served
//! a request to its end waits for the next one of the same worker, of whichever connection.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Futures kept for the next request; more than these go back to the allocator.
const KEPT: usize = 128;

/// A future that takes one job after the other.
struct JobFuture<J, D> {
    exchanged: Rc<Exchanged<J, D>>,
    work: Pin<Box<dyn Future<Output = ()>>>,
}

/// What passes between a future and whoever has a job for it.
struct Exchanged<J, D> {
    job: Cell<Option<J>>,
    done: Cell<Option<D>>,
}

/// One worker's futures at which nobody works at the moment. Where jobs hold the worker that holds this, it is not told what
/// they are: `J` is `Rc<dyn Any>`.
pub struct JobFutures<J, D> {
    free: RefCell<Vec<JobFuture<J, D>>>,
    busy: Cell<usize>,
}

impl<J, D> Default for JobFutures<J, D> {
    fn default() -> JobFutures<J, D> {
        JobFutures { free: RefCell::default(), busy: Cell::new(0) }
    }
}

impl<J: 'static, D: 'static> JobFutures<J, D> {
    /// Does `job` as `serve` would, with the things that the job before left at its future. All callers of one `JobFutures` pass
    /// the same `serve`.
    pub fn run<S: Default + 'static>(
        &self,
        job: J,
        serve: impl AsyncFn(J, &mut S) -> D + 'static,
    ) -> RunningJob<'_, J, D> {
        let free = self.free.borrow_mut().pop();
        let future = free.unwrap_or_else(|| JobFuture::new(serve));
        future.exchanged.job.set(Some(job));
        self.busy.set(self.busy.get() + 1);
        RunningJob { future: Some(future), home: self }
    }
}

impl<J, D> JobFutures<J, D> {
    /// Jobs that are being done.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.busy.get()
    }
}

/// A job that is being done. Dropping it half-way drops what it holds, and its future with it.
pub struct RunningJob<'a, J, D> {
    /// `None` once the job is done.
    future: Option<JobFuture<J, D>>,
    home: &'a JobFutures<J, D>,
}

impl<J, D> Drop for RunningJob<'_, J, D> {
    fn drop(&mut self) {
        self.home.busy.set(self.home.busy.get() - 1);
    }
}

impl<J, D> Future for RunningJob<'_, J, D> {
    type Output = D;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<D> {
        let Some(future) = &mut self.future else { return Poll::Pending };
        // It never ends; what it has done lies in what is exchanged.
        let _ = future.work.as_mut().poll(cx);
        let Some(done) = future.exchanged.done.take() else { return Poll::Pending };
        let mut free = self.home.free.borrow_mut();
        if free.len() < KEPT {
            free.extend(self.future.take());
        }
        Poll::Ready(done)
    }
}

impl<J: 'static, D: 'static> JobFuture<J, D> {
    fn new<S: Default + 'static>(serve: impl AsyncFn(J, &mut S) -> D + 'static) -> JobFuture<J, D> {
        let exchanged = Rc::new(Exchanged { job: Cell::new(None), done: Cell::new(None) });
        let inner = Rc::clone(&exchanged);
        let work = Box::pin(async move {
            let mut things = S::default();
            loop {
                // Whoever brings a job polls right after.
                let job = poll_fn(|_| inner.job.take().map_or(Poll::Pending, Poll::Ready)).await;
                let done = serve(job, &mut things).await;
                inner.done.set(Some(done));
            }
        });
        JobFuture { exchanged, work }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts how many are alive.
    #[derive(Clone)]
    struct Alive(Rc<()>);

    async fn double((_alive, number): (Alive, u32), served: &mut u32) -> u32 {
        tokio::task::yield_now().await;
        *served += 1;
        number * 2 * *served
    }

    #[tokio::test]
    async fn a_future_serves_one_job_after_the_other_and_holds_nothing_between() {
        let (futures, alive) = (JobFutures::<(Alive, u32), u32>::default(), Alive(Rc::new(())));
        for number in 0..3 {
            let served = number + 1;
            assert_eq!(
                futures.run((alive.clone(), number), double).await,
                number * 2 * served,
                "things stay"
            );
            assert_eq!((futures.free.borrow().len(), futures.busy(), Rc::strong_count(&alive.0)), (1, 0, 1));
        }
        let (one, two) =
            tokio::join!(futures.run((alive.clone(), 5), double), futures.run((alive.clone(), 7), double));
        assert_eq!((one, two, futures.free.borrow().len()), (40, 14, 2));
    }

    #[tokio::test]
    async fn a_job_that_is_dropped_half_way_is_gone_with_its_future() {
        let (futures, alive) = (JobFutures::<(Alive, u32), u32>::default(), Alive(Rc::new(())));
        assert_eq!(futures.run((alive.clone(), 1), double).await, 2);
        let mut half = Box::pin(futures.run((alive.clone(), 2), double));
        let polled = poll_fn(|cx| Poll::Ready(half.as_mut().poll(cx))).await;
        assert!(polled.is_pending() && Rc::strong_count(&alive.0) == 2);
        assert_eq!(futures.busy(), 1);
        drop(half);
        assert_eq!((futures.free.borrow().len(), futures.busy(), Rc::strong_count(&alive.0)), (0, 0, 1));
    }
}
