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

/// Desks kept for the next request; more than these go back to the allocator.
const KEPT: usize = 128;

/// A future that takes one job after the other.
struct Desk<J, D> {
    tray: Rc<Tray<J, D>>,
    work: Pin<Box<dyn Future<Output = ()>>>,
}

/// What passes between a desk and whoever has a job for it.
struct Tray<J, D> {
    job: Cell<Option<J>>,
    done: Cell<Option<D>>,
}

/// One worker's desks at which nobody works at the moment.
pub struct Desks<J, D> {
    free: RefCell<Vec<Desk<J, D>>>,
    busy: Cell<usize>,
}

impl<J, D> Default for Desks<J, D> {
    fn default() -> Desks<J, D> {
        Desks { free: RefCell::default(), busy: Cell::new(0) }
    }
}

impl<J: 'static, D: 'static> Desks<J, D> {
    /// Does `job` as `serve` would, with the things that the job before left at its desk. All callers of one `Desks` pass
    /// the same `serve`.
    pub fn run<S: Default + 'static>(
        &self,
        job: J,
        serve: impl AsyncFn(J, &mut S) -> D + 'static,
    ) -> Running<'_, J, D> {
        let free = self.free.borrow_mut().pop();
        let desk = free.unwrap_or_else(|| Desk::new(serve));
        desk.tray.job.set(Some(job));
        self.busy.set(self.busy.get() + 1);
        Running { desk: Some(desk), home: self }
    }
}

impl<J, D> Desks<J, D> {
    /// Jobs that are being done.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.busy.get()
    }
}

/// A job that is being done. Dropping it half-way drops what it holds, and its desk with it.
pub struct Running<'a, J, D> {
    /// `None` once the job is done.
    desk: Option<Desk<J, D>>,
    home: &'a Desks<J, D>,
}

impl<J, D> Drop for Running<'_, J, D> {
    fn drop(&mut self) {
        self.home.busy.set(self.home.busy.get() - 1);
    }
}

impl<J, D> Future for Running<'_, J, D> {
    type Output = D;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<D> {
        let Some(desk) = &mut self.desk else { return Poll::Pending };
        // It never ends; what it has done lies in the tray.
        let _ = desk.work.as_mut().poll(cx);
        let Some(done) = desk.tray.done.take() else { return Poll::Pending };
        let mut free = self.home.free.borrow_mut();
        if free.len() < KEPT {
            free.extend(self.desk.take());
        }
        Poll::Ready(done)
    }
}

impl<J: 'static, D: 'static> Desk<J, D> {
    fn new<S: Default + 'static>(serve: impl AsyncFn(J, &mut S) -> D + 'static) -> Desk<J, D> {
        let tray = Rc::new(Tray { job: Cell::new(None), done: Cell::new(None) });
        let inner = Rc::clone(&tray);
        let work = Box::pin(async move {
            let mut things = S::default();
            loop {
                // Whoever brings a job polls right after.
                let job = poll_fn(|_| inner.job.take().map_or(Poll::Pending, Poll::Ready)).await;
                let done = serve(job, &mut things).await;
                inner.done.set(Some(done));
            }
        });
        Desk { tray, work }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts how many are alive.
    #[derive(Clone)]
    struct Alive(Rc<()>);

    type Counting = Desks<(Alive, u32), u32>;

    async fn double((_alive, number): (Alive, u32), served: &mut u32) -> u32 {
        tokio::task::yield_now().await;
        *served += 1;
        number * 2 * *served
    }

    #[tokio::test]
    async fn a_desk_serves_one_job_after_the_other_and_holds_nothing_between() {
        let (desks, alive) = (Counting::default(), Alive(Rc::new(())));
        for number in 0..3 {
            let served = number + 1;
            assert_eq!(desks.run((alive.clone(), number), double).await, number * 2 * served, "things stay");
            assert_eq!((desks.free.borrow().len(), desks.busy(), Rc::strong_count(&alive.0)), (1, 0, 1));
        }
        let (one, two) =
            tokio::join!(desks.run((alive.clone(), 5), double), desks.run((alive.clone(), 7), double));
        assert_eq!((one, two, desks.free.borrow().len()), (40, 14, 2));
    }

    #[tokio::test]
    async fn a_job_that_is_dropped_half_way_is_gone_with_its_desk() {
        let (desks, alive) = (Counting::default(), Alive(Rc::new(())));
        assert_eq!(desks.run((alive.clone(), 1), double).await, 2);
        let mut half = Box::pin(desks.run((alive.clone(), 2), double));
        let polled = poll_fn(|cx| Poll::Ready(half.as_mut().poll(cx))).await;
        assert!(polled.is_pending() && Rc::strong_count(&alive.0) == 2);
        assert_eq!(desks.busy(), 1);
        drop(half);
        assert_eq!((desks.free.borrow().len(), desks.busy(), Rc::strong_count(&alive.0)), (0, 0, 1));
    }
}
