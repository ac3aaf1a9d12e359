//! Those who are told, and how it goes with each.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::delivery::Receiver;
use crate::config::model::{Webhook, WebhookEvent};
use crate::events;
use crate::telemetry::webhooks::WebhookCounts;
use crate::tick::Tick;
use crate::tls::Roots;

/// Why messages are not sent any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DropReason {
    /// Too many wait.
    Full,
    /// They were tried for long enough.
    Late,
    /// The receiver is not in the config any more.
    Gone,
}

impl DropReason {
    const fn as_str(self) -> &'static str {
        match self {
            DropReason::Full => "10000 wait, and the oldest goes for the newest",
            DropReason::Late => "they were not taken within 15m",
            DropReason::Gone => "it is not in the config any more",
        }
    }
}

/// How it goes with one of them.
#[derive(Debug)]
struct Account {
    receiver: Arc<Receiver>,
    counts: WebhookCounts,
    /// Since when it takes nothing.
    failing: Option<Tick>,
    /// What was told of drops since it took something the last time.
    told: Vec<DropReason>,
}

/// All of them, by their identities.
#[derive(Debug, Default)]
pub(super) struct Receivers {
    accounts: BTreeMap<String, Account>,
    roots: Roots,
}

impl Receivers {
    /// Those of the config in force. Whoever was there keeps its counts.
    pub(super) fn follow(&mut self, webhooks: &[Webhook]) {
        let mut before = std::mem::take(&mut self.accounts);
        // Whom the system trusts may have changed, too.
        self.roots = Roots::default();
        for webhook in webhooks {
            let identity = webhook.url.identity();
            let events = webhook.events.iter().map(|event| event.name()).collect();
            let counts = WebhookCounts { url: webhook.url.to_string(), events, ..WebhookCounts::default() };
            let receiver = Arc::new(Receiver::new(webhook.clone(), &self.roots));
            let account = match before.remove(&identity) {
                Some(account) => {
                    let counts = WebhookCounts { url: counts.url, events: counts.events, ..account.counts };
                    Account { receiver, counts, ..account }
                }
                None => Account { receiver, counts, failing: None, told: Vec::new() },
            };
            self.accounts.insert(identity, account);
        }
        let gone = before.into_values().filter(|account| account.counts.waiting > 0);
        gone.for_each(|account| {
            let reason = DropReason::Gone.as_str();
            events::webhook_dropped(&account.counts.url, account.counts.waiting, reason);
        });
    }

    /// Their identities.
    #[must_use]
    pub(super) fn identities(&self) -> Vec<String> {
        self.accounts.keys().cloned().collect()
    }

    /// Who wants to know of this.
    #[must_use]
    pub(super) fn interested(&self, event: WebhookEvent) -> Vec<String> {
        let wants = |account: &Account| account.receiver.webhook.events.contains(&event);
        let all = self.accounts.iter().filter(|(_, account)| wants(account));
        all.map(|(identity, _)| identity.clone()).collect()
    }

    /// How to reach one.
    #[must_use]
    pub(super) fn reach(&self, identity: &str) -> Option<Arc<Receiver>> {
        self.accounts.get(identity).map(|account| Arc::clone(&account.receiver))
    }

    /// It has taken a message.
    pub(super) fn took(&mut self, identity: &str, now: Tick, waiting: usize) {
        let Some(account) = self.accounts.get_mut(identity) else { return };
        account.counts.delivered += 1;
        account.told.clear();
        if let Some(since) = account.failing.take() {
            events::webhook_works(&account.counts.url, now.since(since), waiting);
        }
    }

    /// It has not taken one.
    pub(super) fn failed(&mut self, identity: &str, reason: &str, now: Tick, unix_ms: u64) {
        let Some(account) = self.accounts.get_mut(identity) else { return };
        account.counts.failed += 1;
        account.counts.last_error = Some((reason.to_owned(), unix_ms));
        if account.failing.is_none() {
            account.failing = Some(now);
            events::webhook_fails(&account.counts.url, reason);
        }
    }

    /// So many messages for it are not sent any more. Told once for each reason until it takes one again.
    pub(super) fn dropped(&mut self, identity: &str, count: usize, reason: DropReason) {
        let Some(account) = self.accounts.get_mut(identity) else { return };
        account.counts.dropped += count as u64;
        if !account.told.contains(&reason) {
            account.told.push(reason);
            events::webhook_dropped(&account.counts.url, count, reason.as_str());
        }
    }

    /// How it goes with all of them, in the order of `webhooks`; `waiting`: how many wait for one.
    pub(super) fn counts(
        &mut self,
        webhooks: &[Webhook],
        waiting: impl Fn(&str) -> usize,
    ) -> Vec<WebhookCounts> {
        let each = webhooks.iter().filter_map(|webhook| {
            let identity = webhook.url.identity();
            let account = self.accounts.get_mut(&identity)?;
            account.counts.waiting = waiting(&identity);
            Some(account.counts.clone())
        });
        each.collect()
    }
}
