//! The thread that keeps messages on the disk. Nobody waits for it but the end of the process: what can't be kept is sent all the same.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::kept::{KeptMessages, WebhookStep};
use crate::events;
use crate::net::now;
use crate::store::Store;
use crate::tick::Tick;

/// A journal of fewer bytes is not worth to be rewritten, but for tests.
const WORTH: u64 = if cfg!(test) { 2 * 1024 } else { 256 * 1024 };
/// How many times as long as it was anew a journal becomes.
const SLACK: u64 = 4;
/// Steps that wait for the disk at most. Behind them all is kept anew, once the disk is there again.
const BEHIND_MAX: usize = 4096;
/// From one try to keep all anew to the next.
const PAUSE: Duration = Duration::from_secs(5);

enum Order {
    Step(WebhookStep),
    Whole(KeptMessages),
    Close,
}

/// Where steps go.
#[derive(Debug)]
pub(super) struct WebhookJournal {
    orders: Sender<Order>,
    /// Steps that are not on the disk yet.
    behind: Arc<AtomicUsize>,
    /// Some were left out.
    has_gaps: bool,
    thread: Option<JoinHandle<()>>,
}

impl WebhookJournal {
    /// Begins to keep steps in `store`, which has `kept`.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(super) fn start(store: Box<dyn Store>, kept: KeptMessages) -> io::Result<WebhookJournal> {
        let (orders, received) = mpsc::channel();
        let behind = Arc::<AtomicUsize>::default();
        let (counted, follow) = (Arc::clone(&behind), events::here_as_there());
        let thread = Builder::new().name("evenkeel-hooks-disk".to_owned()).spawn(move || {
            follow();
            let size = store.size();
            let writer = Writer { store, kept, behind: counted, fresh_size: size, fault: None };
            writer.run(&received);
        })?;
        Ok(WebhookJournal { orders, behind, has_gaps: false, thread: Some(thread) })
    }

    /// Keeps a step as soon as the disk takes it. `whole`: all there is with it.
    pub(super) fn keep(&mut self, step: WebhookStep, whole: impl FnOnce() -> KeptMessages) {
        if step.is_empty() {
            return;
        }
        let order = match (self.behind.load(Ordering::Relaxed), self.has_gaps) {
            (BEHIND_MAX.., _) | (1.., true) => {
                self.has_gaps = true;
                return;
            }
            (0, true) => {
                self.has_gaps = false;
                Order::Whole(whole())
            }
            (_, false) => Order::Step(step),
        };
        self.behind.fetch_add(1, Ordering::Relaxed);
        // The thread ends when it is told to, or by a panic, which has been told.
        let _ = self.orders.send(order);
    }

    /// Keeps what is left, and lets go of the store.
    pub(super) fn close(&mut self) {
        let _ = self.orders.send(Order::Close);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Writer {
    store: Box<dyn Store>,
    /// What the store would give, if everything is well.
    kept: KeptMessages,
    behind: Arc<AtomicUsize>,
    /// Bytes of the journal when it was last written anew.
    fresh_size: u64,
    /// It is not well since the last try.
    fault: Option<Tick>,
}

impl Writer {
    fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let first = match self.fault {
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(since) => orders.recv_timeout(PAUSE.saturating_sub(now().since(since))),
            };
            match first {
                Ok(first) => {
                    if self.take(first, orders) {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.keep_all(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Takes an order and those that came behind it, with one wait for the disk; whether this was the end.
    fn take(&mut self, first: Order, orders: &Receiver<Order>) -> bool {
        let (mut step, mut count, mut is_whole, mut is_end) = (WebhookStep::default(), 0, false, false);
        for order in [first].into_iter().chain(orders.try_iter()) {
            match order {
                Order::Step(next) => step.extend(next),
                Order::Whole(kept) => {
                    (self.kept, step, is_whole) = (kept, WebhookStep::default(), true);
                }
                Order::Close => {
                    is_end = true;
                    break;
                }
            }
            count += 1;
        }
        let records = step.records();
        let is_empty = step.is_empty();
        self.kept.apply(step);
        let is_time = self.fault.is_some_and(|since| is_end || now().since(since) >= PAUSE);
        if is_whole || is_time {
            self.keep_all();
        } else if self.fault.is_none() && !is_empty {
            if let Err(error) = records.iter().try_for_each(|record| self.store.append(record)) {
                self.fail(&error);
            } else if self.store.size() > WORTH.max(self.fresh_size.saturating_mul(SLACK)) {
                self.keep_all();
            }
        }
        self.behind.fetch_sub(count, Ordering::Relaxed);
        is_end
    }

    /// Writes all anew.
    fn keep_all(&mut self) {
        match self.store.compact(&self.kept.records()) {
            Ok(()) => {
                self.fresh_size = self.store.size();
                if self.fault.take().is_some() {
                    events::webhooks_kept();
                }
            }
            Err(error) => self.fail(&error),
        }
    }

    fn fail(&mut self, error: &io::Error) {
        if self.fault.replace(now()).is_none() {
            events::webhooks_unkept(&error.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kept::QueuedMessage;
    use super::super::message::example;
    use super::*;
    use crate::store::memory::{MemoryDisk, MemoryStore};

    fn started(disk: &MemoryDisk) -> (WebhookJournal, KeptMessages) {
        let mut store = MemoryStore(disk.clone());
        let (kept, unknown) = KeptMessages::replay(&store.load().expect("read").records);
        assert_eq!(unknown, 0);
        (WebhookJournal::start(Box::new(store), kept.clone()).expect("a thread"), kept)
    }

    fn queued(number: u64) -> WebhookStep {
        let message = example(number, "web/b1");
        let queued = vec![QueuedMessage { number, to: vec!["a".to_owned()], message }];
        WebhookStep { queued, ..WebhookStep::default() }
    }

    fn done(number: u64) -> WebhookStep {
        WebhookStep { done: vec![("a".to_owned(), number)], ..WebhookStep::default() }
    }

    fn numbers(kept: &KeptMessages) -> Vec<u64> {
        kept.waiting.keys().copied().collect()
    }

    #[test]
    fn what_was_not_delivered_is_there_for_the_next_process() {
        let disk = MemoryDisk::default();
        let (mut journal, _) = started(&disk);
        for step in [queued(1), queued(2), done(1), WebhookStep::default()] {
            journal.keep(step, || panic!("the disk is well"));
        }
        journal.close();
        let (mut journal, kept) = started(&disk);
        assert_eq!(numbers(&kept), [2]);
        for number in 3..200 {
            journal.keep(queued(number), || panic!("the disk is well"));
            journal.keep(done(number), || panic!("the disk is well"));
        }
        journal.close();
        assert!(MemoryStore(disk.clone()).size() < 20 * WORTH, "it is written anew");
        assert_eq!(numbers(&started(&disk).1), [2]);
    }

    #[test]
    fn what_a_full_disk_did_not_take_is_kept_when_there_is_room_again() {
        let disk = MemoryDisk::default();
        let (mut journal, _) = started(&disk);
        disk.fill(true);
        journal.keep(queued(1), KeptMessages::default);
        while journal.behind.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
        disk.fill(false);
        journal.keep(queued(2), KeptMessages::default);
        journal.close();
        assert_eq!(numbers(&started(&disk).1), [1, 2]);
    }
}
