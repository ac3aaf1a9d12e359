//! What the journal says: which messages wait for whom, and what was told last. A record is a step; all of them, one after the other,
//! give what a process begins with.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::last_told::LastTold;
use super::message::WebhookMessage;
use crate::store::StoreRecord;

/// Messages in one record at most.
const IN_RECORD: usize = 256;

/// Messages that wait, by their numbers, each with its receivers.
pub(super) type WaitingMessages = BTreeMap<u64, (Vec<String>, Arc<WebhookMessage>)>;

/// A message and who is to get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueuedMessage {
    /// Its number.
    pub(super) number: u64,
    /// Its receivers.
    pub(super) to: Vec<String>,
    /// It.
    pub(super) message: WebhookMessage,
}

/// What has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WebhookStep {
    /// Messages that came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) queued: Vec<QueuedMessage>,
    /// Receivers with the numbers of messages that do not wait for them any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) done: Vec<(String, u64)>,
    /// Objects with whether they were told to be down, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) told: Vec<(String, bool)>,
}

impl WebhookStep {
    /// Nothing has.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.done.is_empty() && self.told.is_empty()
    }

    /// This and what came behind it, as one.
    pub(super) fn extend(&mut self, next: WebhookStep) {
        self.queued.extend(next.queued);
        self.done.extend(next.done);
        self.told.extend(next.told);
    }

    /// As records.
    #[must_use]
    pub(super) fn records(&self) -> Vec<StoreRecord> {
        let part = |queued: &[QueuedMessage], rest: bool| {
            let (done, told) = if rest { (self.done.clone(), self.told.clone()) } else { Default::default() };
            // It has texts for keys, so it can't fail.
            serde_json::to_vec(&WebhookStep { queued: queued.to_vec(), done, told }).unwrap_or_default()
        };
        let whole = self.queued.chunks(IN_RECORD);
        let last = whole.len().saturating_sub(1);
        if self.queued.is_empty() {
            return vec![part(&[], true)];
        }
        // What is done may be of a message in the same step, so it comes last.
        whole.enumerate().map(|(index, queued)| part(queued, index == last)).collect()
    }
}

/// What the journal amounts to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeptMessages {
    /// Messages that wait.
    pub(super) waiting: WaitingMessages,
    /// What was told last.
    pub(super) told: LastTold,
}

impl KeptMessages {
    /// What comes of all records; with how many of them nobody understands.
    #[must_use]
    pub(super) fn replay(records: &[StoreRecord]) -> (KeptMessages, usize) {
        let (mut kept, mut unknown) = (KeptMessages::default(), 0);
        for record in records {
            match serde_json::from_slice(record) {
                Ok(step) => kept.apply(step),
                Err(_) => unknown += 1,
            }
        }
        (kept, unknown)
    }

    /// The same and one step more.
    pub(super) fn apply(&mut self, step: WebhookStep) {
        for QueuedMessage { number, to, message } in step.queued {
            self.waiting.insert(number, (to, Arc::new(message)));
        }
        for (receiver, number) in &step.done {
            if let Some((to, _)) = self.waiting.get_mut(number) {
                to.retain(|other| other != receiver);
                if to.is_empty() {
                    self.waiting.remove(number);
                }
            }
        }
        step.told.iter().for_each(|(object, is_down)| self.told.set(object, *is_down));
    }

    /// The fewest records that give this.
    #[must_use]
    pub(super) fn records(&self) -> Vec<StoreRecord> {
        let queued = self.waiting.iter().map(|(number, (to, message))| QueuedMessage {
            number: *number,
            to: to.clone(),
            message: WebhookMessage::clone(message),
        });
        let told = self.told.down().map(|object| (object.to_owned(), true)).collect();
        let step = WebhookStep { queued: queued.collect(), done: Vec::new(), told };
        if step.is_empty() { Vec::new() } else { step.records() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::example;
    use super::*;

    fn queued(number: u64, to: &[&str]) -> WebhookStep {
        let to = to.iter().map(ToString::to_string).collect();
        let queued = vec![QueuedMessage { number, to, message: example(number, "web/b1") }];
        WebhookStep { queued, ..WebhookStep::default() }
    }

    #[test]
    fn what_was_kept_and_not_done_is_what_is_found() {
        let done = |receiver: &str, number| WebhookStep {
            done: vec![(receiver.to_owned(), number)],
            told: vec![
                ("web/b1".to_owned(), true),
                ("web/b2".to_owned(), true),
                ("web/b1".to_owned(), false),
            ],
            ..WebhookStep::default()
        };
        let steps = [queued(1, &["a", "b"]), queued(2, &["a"]), done("a", 1), done("a", 2), done("c", 9)];
        let records: Vec<StoreRecord> = steps.iter().flat_map(WebhookStep::records).collect();
        let (kept, unknown) = KeptMessages::replay(&records);
        let (to, message) = kept.waiting.get(&1).expect("for b");
        assert_eq!((to.as_slice(), &**message, unknown), (&["b".to_owned()][..], &example(1, "web/b1"), 0));
        assert_eq!((kept.waiting.len(), kept.told.down().collect::<Vec<_>>()), (1, vec!["web/b2"]));
        assert_eq!(KeptMessages::replay(&kept.records()).0, kept);
        let mut one = WebhookStep::default();
        steps.into_iter().for_each(|step| one.extend(step));
        assert_eq!(KeptMessages::replay(&one.records()).0, kept);
    }

    #[test]
    fn a_burst_is_several_records_and_one_that_nobody_understands_is_counted() {
        let mut all = WebhookStep::default();
        (1..=600).for_each(|number| all.extend(queued(number, &["a"])));
        all.done.push(("a".to_owned(), 600));
        let mut records = all.records();
        assert_eq!(records.len(), 3);
        records.push(b"0".to_vec());
        let (kept, unknown) = KeptMessages::replay(&records);
        assert_eq!((kept.waiting.len(), unknown), (599, 1));
        assert!(KeptMessages::default().records().is_empty());
    }
}
