//! What waits for receivers, and what is sent next. Pure: it is told the time and chance.
//!
//! Invariants, of each receiver:
//!
//! 1. Messages of one object form a line; only the first of a line is sent, and the next one when that has been taken or dropped. So a
//!    message that fails holds up those of the same object and nobody else.
//! 2. `heads` has the first message of each line that is not being sent, by when it is due; `ages` has all messages, oldest first.
//! 3. What is being sent stays in its line until its outcome is known, and is not dropped before, unless its receiver is gone.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::backoff::pause;
use super::message::WebhookMessage;
use crate::tick::Tick;

/// Messages that wait at most, for all receivers together.
pub(super) const WAITING_MAX: usize = 10_000;
/// Messages that are sent at once to one receiver.
pub(super) const IN_FLIGHT_MAX: usize = 4;

/// A message that is to be sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DueMessage {
    /// Its receiver.
    pub(super) receiver: String,
    /// Its number: the same for all receivers.
    pub(super) number: u64,
    /// It.
    pub(super) message: Arc<WebhookMessage>,
}

/// A message that is not sent any more.
pub(super) type Dropped = (String, u64);

#[derive(Debug)]
struct Waiting {
    number: u64,
    message: Arc<WebhookMessage>,
    until: Tick,
}

/// The messages of one object.
#[derive(Debug, Default)]
struct ObjectLine {
    messages: VecDeque<Waiting>,
    /// Of the first one, in a row.
    failures: u32,
    /// When the first one may be sent.
    due: Tick,
}

/// What waits for one receiver.
#[derive(Debug, Default)]
struct Outbox {
    lines: HashMap<String, ObjectLine>,
    heads: BTreeMap<(Tick, u64), String>,
    ages: BTreeMap<u64, (Tick, String)>,
    in_flight: HashSet<u64>,
}

impl Outbox {
    fn add(&mut self, waiting: Waiting, now: Tick) {
        let object = waiting.message.object.clone().unwrap_or_default();
        let number = waiting.number;
        self.ages.insert(number, (waiting.until, object.clone()));
        let line = self.lines.entry(object.clone()).or_default();
        line.messages.push_back(waiting);
        if line.messages.len() == 1 {
            line.due = now;
            self.heads.insert((now, number), object);
        }
    }

    fn next(&mut self, now: Tick) -> Option<(u64, Arc<WebhookMessage>)> {
        let (&(due, number), _) = self.heads.first_key_value()?;
        if due > now || self.in_flight.len() >= IN_FLIGHT_MAX {
            return None;
        }
        let (_, object) = self.heads.pop_first()?;
        self.in_flight.insert(number);
        let first = self.lines.get(&object)?.messages.front()?;
        Some((number, Arc::clone(&first.message)))
    }

    /// Takes a message out of its line, wherever it stands.
    fn remove(&mut self, number: u64, now: Tick) {
        let Some((_, object)) = self.ages.remove(&number) else { return };
        self.in_flight.remove(&number);
        let Some(line) = self.lines.get_mut(&object) else { return };
        let Some(place) = line.messages.iter().position(|waiting| waiting.number == number) else { return };
        line.messages.remove(place);
        if place > 0 {
            return;
        }
        self.heads.remove(&(line.due, number));
        match line.messages.front() {
            None => drop(self.lines.remove(&object)),
            Some(next) => {
                (line.failures, line.due) = (0, now);
                self.heads.insert((now, next.number), object);
            }
        }
    }

    fn failed(&mut self, number: u64, now: Tick, chance: f64) {
        self.in_flight.remove(&number);
        let Some((_, object)) = self.ages.get(&number) else { return };
        let Some(line) = self.lines.get_mut(object) else { return };
        line.failures = line.failures.saturating_add(1);
        line.due = now.after(pause(line.failures, chance));
        self.heads.insert((line.due, number), object.clone());
    }

    /// The oldest that is not being sent.
    fn oldest(&self) -> Option<(u64, Tick)> {
        let mut idle = self.ages.iter().filter(|(number, _)| !self.in_flight.contains(number));
        idle.next().map(|(number, (until, _))| (*number, *until))
    }
}

/// What waits for all receivers.
#[derive(Debug, Default)]
pub(super) struct WebhookQueue {
    outboxes: BTreeMap<String, Outbox>,
}

impl WebhookQueue {
    /// These are the receivers from now on; gives what waited for others.
    pub(super) fn receivers(&mut self, receivers: &[String]) -> Vec<Dropped> {
        let mut dropped = Vec::new();
        self.outboxes.retain(|receiver, outbox| {
            let stays = receivers.contains(receiver);
            if !stays {
                dropped.extend(outbox.ages.keys().map(|number| (receiver.clone(), *number)));
            }
            stays
        });
        for receiver in receivers {
            self.outboxes.entry(receiver.clone()).or_default();
        }
        dropped
    }

    /// One more message for a receiver, to be sent until `until`. Numbers grow. Gives what has to go for it.
    pub(super) fn add(
        &mut self,
        receiver: &str,
        number: u64,
        message: &Arc<WebhookMessage>,
        until: Tick,
        now: Tick,
    ) -> Option<Dropped> {
        let outbox = self.outboxes.get_mut(receiver)?;
        outbox.add(Waiting { number, message: Arc::clone(message), until }, now);
        if self.waiting() <= WAITING_MAX {
            return None;
        }
        // Whoever takes nothing has the most, and nobody else pays for that.
        let fullest = self.outboxes.iter().max_by_key(|(_, outbox)| outbox.ages.len())?.0.clone();
        let outbox = self.outboxes.get_mut(&fullest)?;
        let (oldest, _) = outbox.oldest()?;
        outbox.remove(oldest, now);
        Some((fullest, oldest))
    }

    /// The next message that is to be sent. It counts as being sent until its outcome is told.
    pub(super) fn next(&mut self, now: Tick) -> Option<DueMessage> {
        self.outboxes.iter_mut().find_map(|(receiver, outbox)| {
            let (number, message) = outbox.next(now)?;
            Some(DueMessage { receiver: receiver.clone(), number, message })
        })
    }

    /// A message was taken.
    pub(super) fn delivered(&mut self, receiver: &str, number: u64, now: Tick) {
        if let Some(outbox) = self.outboxes.get_mut(receiver) {
            outbox.remove(number, now);
        }
    }

    /// It was not taken, and is sent again later.
    pub(super) fn failed(&mut self, receiver: &str, number: u64, now: Tick, chance: f64) {
        if let Some(outbox) = self.outboxes.get_mut(receiver) {
            outbox.failed(number, now, chance);
        }
    }

    /// Drops what has been tried for long enough.
    pub(super) fn expire(&mut self, now: Tick) -> Vec<Dropped> {
        let mut dropped = Vec::new();
        for (receiver, outbox) in &mut self.outboxes {
            while let Some((number, _)) = outbox.oldest().filter(|(_, until)| *until <= now) {
                outbox.remove(number, now);
                dropped.push((receiver.clone(), number));
            }
        }
        dropped
    }

    /// When there is something to do again, if nothing comes before: to send, or to drop.
    #[must_use]
    pub(super) fn due(&self) -> Option<Tick> {
        let of = |outbox: &Outbox| {
            let head = outbox.heads.first_key_value().map(|((due, _), _)| *due);
            let head = head.filter(|_| outbox.in_flight.len() < IN_FLIGHT_MAX);
            head.into_iter().chain(outbox.oldest().map(|(_, until)| until)).min()
        };
        self.outboxes.values().filter_map(of).min()
    }

    /// How many wait for a receiver, those that are being sent included.
    #[must_use]
    pub(super) fn waiting_for(&self, receiver: &str) -> usize {
        self.outboxes.get(receiver).map_or(0, |outbox| outbox.ages.len())
    }

    /// How many wait in all.
    #[must_use]
    pub(super) fn waiting(&self) -> usize {
        self.outboxes.values().map(|outbox| outbox.ages.len()).sum()
    }

    /// Everything that waits: numbers with messages and receivers.
    #[must_use]
    pub(super) fn all(&self) -> BTreeMap<u64, (Vec<String>, Arc<WebhookMessage>)> {
        let mut all: BTreeMap<u64, (Vec<String>, Arc<WebhookMessage>)> = BTreeMap::new();
        for (receiver, outbox) in &self.outboxes {
            for waiting in outbox.lines.values().flat_map(|line| &line.messages) {
                let new = || (Vec::new(), Arc::clone(&waiting.message));
                all.entry(waiting.number).or_insert_with(new).0.push(receiver.clone());
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::super::message::example;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn queue(receivers: &[&str]) -> WebhookQueue {
        let mut queue = WebhookQueue::default();
        let receivers: Vec<String> = receivers.iter().map(ToString::to_string).collect();
        assert!(queue.receivers(&receivers).is_empty());
        queue
    }

    fn add(queue: &mut WebhookQueue, receiver: &str, number: u64, object: &str) -> Option<Dropped> {
        queue.add(receiver, number, &Arc::new(example(number, object)), Tick::NEVER, Tick(1))
    }

    /// All that may be sent at `now`.
    fn due(queue: &mut WebhookQueue, now: Tick) -> Vec<(String, u64)> {
        std::iter::from_fn(|| queue.next(now)).map(|due| (due.receiver, due.number)).collect()
    }

    fn named(receiver: &str, numbers: &[u64]) -> Vec<(String, u64)> {
        numbers.iter().map(|number| (receiver.to_owned(), *number)).collect()
    }

    #[test]
    fn a_message_that_fails_holds_up_those_of_its_object_and_receiver_only() {
        let mut queue = queue(&["a", "b"]);
        for (number, object) in [(1, "web/b1"), (2, "web/b1"), (3, "web/b2")] {
            add(&mut queue, "a", number, object);
        }
        add(&mut queue, "b", 1, "web/b1");
        assert_eq!(due(&mut queue, Tick(1)), [named("a", &[1, 3]), named("b", &[1])].concat());
        queue.failed("a", 1, Tick(1), 0.5);
        queue.delivered("a", 3, Tick(1));
        queue.delivered("b", 1, Tick(1));
        assert_eq!((due(&mut queue, Tick(2)), queue.due()), (Vec::new(), Some(Tick(1).after(SECOND))));
        let later = Tick(1).after(SECOND);
        assert_eq!(due(&mut queue, later), named("a", &[1]));
        queue.failed("a", 1, later, 0.5);
        assert_eq!(due(&mut queue, later.after(SECOND)), []);
        let later = later.after(2 * SECOND);
        assert_eq!(due(&mut queue, later), named("a", &[1]));
        queue.delivered("a", 1, later);
        assert_eq!(due(&mut queue, later), named("a", &[2]));
        queue.delivered("a", 2, later);
        assert_eq!((queue.waiting(), queue.due()), (0, None));
    }

    #[test]
    fn a_receiver_gets_a_few_at_once() {
        let mut queue = queue(&["a"]);
        (1..=9).for_each(|number| drop(add(&mut queue, "a", number, &format!("web/b{number}"))));
        assert_eq!(due(&mut queue, Tick(1)), named("a", &[1, 2, 3, 4]));
        queue.delivered("a", 3, Tick(2));
        assert_eq!(due(&mut queue, Tick(2)), named("a", &[5]));
    }

    #[test]
    fn the_oldest_of_whoever_takes_nothing_goes_when_too_many_wait() {
        let mut queue = queue(&["dead", "well"]);
        let most = WAITING_MAX as u64;
        for number in 1..most {
            assert_eq!(add(&mut queue, "dead", number, "web/b1"), None);
        }
        assert_eq!(due(&mut queue, Tick(1)), named("dead", &[1]));
        assert_eq!(add(&mut queue, "well", most, "web/b1"), None);
        assert_eq!(add(&mut queue, "well", most + 1, "web/b1"), Some(("dead".to_owned(), 2)));
        assert_eq!((queue.waiting_for("well"), queue.waiting()), (2, WAITING_MAX));
    }

    #[test]
    fn what_was_tried_for_long_enough_is_dropped_unless_it_is_being_sent() {
        let mut queue = queue(&["a"]);
        let message = |number| Arc::new(example(number, "web/b1"));
        (1..=3).for_each(|number| drop(queue.add("a", number, &message(number), Tick(10 * number), Tick(1))));
        assert_eq!(due(&mut queue, Tick(1)), named("a", &[1]));
        assert_eq!((queue.due(), queue.expire(Tick(25))), (Some(Tick(20)), named("a", &[2])));
        queue.failed("a", 1, Tick(26), 0.5);
        assert_eq!(queue.expire(Tick(26)), named("a", &[1]));
        assert_eq!(due(&mut queue, Tick(26)), named("a", &[3]));
    }

    #[test]
    fn what_waits_for_a_receiver_that_is_gone_is_dropped_and_its_outcome_says_nothing() {
        let mut queue = queue(&["a", "b"]);
        for receiver in ["a", "b"] {
            add(&mut queue, receiver, 1, "web/b1");
        }
        due(&mut queue, Tick(1));
        assert_eq!(queue.receivers(&["b".to_owned()]), named("a", &[1]));
        queue.failed("a", 1, Tick(1), 0.5);
        queue.delivered("a", 1, Tick(1));
        assert_eq!(add(&mut queue, "a", 2, "web/b1"), None);
        assert_eq!((queue.waiting_for("a"), queue.waiting_for("b")), (0, 1));
        assert_eq!(queue.all().into_values().map(|(to, _)| to).collect::<Vec<_>>(), [["b"]]);
    }

    proptest! {
        /// Whatever comes of attempts: each message is taken once, in the order of its object.
        #[test]
        fn each_is_taken_once_in_the_order_of_its_object(steps in prop::collection::vec((0..4_u8, any::<bool>()), 1..120)) {
            let mut queue = queue(&["a"]);
            let (mut now, mut number, mut taken) = (Tick(1), 0, Vec::new());
            let mut under_way = VecDeque::new();
            for (object, fails) in steps {
                number += 1;
                add(&mut queue, "a", number, &object.to_string());
                now = now.after(SECOND);
                under_way.extend(std::iter::from_fn(|| queue.next(now)));
                let Some(due) = under_way.pop_front() else { continue };
                if fails {
                    queue.failed("a", due.number, now, 0.1);
                } else {
                    queue.delivered("a", due.number, now);
                    taken.push(due);
                }
            }
            while queue.waiting() > 0 {
                now = now.after(60 * SECOND);
                under_way.extend(std::iter::from_fn(|| queue.next(now)));
                while let Some(due) = under_way.pop_front() {
                    queue.delivered("a", due.number, now);
                    taken.push(due);
                }
            }
            prop_assert_eq!(taken.len() as u64, number);
            for object in 0..4 {
                let object = Some(object.to_string());
                let of_it = taken.iter().filter(|due| due.message.object == object).map(|due| due.number);
                prop_assert!(of_it.is_sorted());
            }
        }
    }
}
