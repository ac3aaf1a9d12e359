//! What is asked of one authority: a task for each question.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use instant_acme::{Account, CertificateIdentifier, Error};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::account;
use super::client::{HEARD, Overheard};
use super::desk::{OrderDesk, seconds};
use super::fault::OrderFault;
use super::limits::{LedgerEntry, OrderEnd};
use super::nodes::duty::OrderDuty;
use super::nodes::proofs::ProofSpread;
use super::nodes::shelves::SharedShelves;
use super::order::{Means, order};
use super::schedule::LifeSpan;
use super::shelf::Shelf;
use crate::cluster::node::ClusterNode;
use crate::config::model::tls::Identity;
use crate::config::model::tls::acme::{AcmeConfig, OrderedCertificate};
use crate::tls::Proofs;

/// One authority, and as whom we come to it.
pub(super) struct Visit {
    pub(super) config: AcmeConfig,
    pub(super) shelf: Shelf,
    desk: Arc<OrderDesk>,
    proofs: Arc<Proofs>,
    account: Mutex<AccountState>,
    /// What it has in common with other nodes; `None`: there are no others.
    pub(super) others: Option<Others>,
}

/// What several nodes have in common.
pub(super) struct Others {
    pub(super) shelves: SharedShelves,
    proofs: ProofSpread,
}

/// As whom we come.
#[derive(Default)]
struct AccountState {
    /// `None`: nobody has come there yet, or the last who has was sent away.
    account: Option<Account>,
    /// Why the latest who tried has not come in, and when that was.
    fault: Option<(Instant, OrderFault)>,
}

/// Whoever asks so soon after another one who has failed fails in the same way.
const TOGETHER: Duration = Duration::from_secs(5);

/// When an authority wants a certificate to be renewed, and after what time it is to be asked again.
pub(super) type Advice = (Option<LifeSpan>, Duration);

/// Where nobody says so, and nobody is there to say so.
const AGAIN: Duration = Duration::from_secs(6 * 3_600);
const NOBODY: Duration = Duration::from_secs(3_600);
/// Authorities that never say anything are asked seldom.
pub(super) const NEVER: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Whatever an authority says of when to ask again, it is at least and at most this.
const SOONEST: Duration = Duration::from_secs(60);
const LATEST: Duration = Duration::from_secs(24 * 3_600);

impl Visit {
    /// `node`: as which this process is one of several.
    pub(super) fn new(
        config: &AcmeConfig,
        desk: &Arc<OrderDesk>,
        proofs: &Arc<Proofs>,
        node: Option<&Arc<ClusterNode>>,
    ) -> Visit {
        let others = |node| Others { shelves: SharedShelves::new(node), proofs: ProofSpread::new(node) };
        Visit {
            others: node.map(others),
            config: config.clone(),
            shelf: Shelf::of(desk.state(), config),
            desk: Arc::clone(desk),
            proofs: Arc::clone(proofs),
            account: Mutex::default(),
        }
    }

    /// As whom we come.
    async fn account(&self, may_be_made: bool) -> Result<Account, OrderFault> {
        let mut known = self.account.lock().await;
        if let Some(account) = &known.account {
            return Ok(account.clone());
        }
        if let Some((at, fault)) = &known.fault
            && at.elapsed() < TOGETHER
        {
            return Err(fault.clone());
        }
        if let Some(others) = &self.others {
            others.shelves.read_account(&self.shelf);
        }
        let opened = match account::open(&self.config, &self.shelf).await {
            Ok(Some(account)) => Ok(account),
            Ok(None) if !may_be_made => return Err(OrderFault::own("there is no account yet")),
            Ok(None) => self.make_account().await,
            Err(fault) => Err(fault),
        };
        known.fault = opened.as_ref().err().map(|fault| (Instant::now(), fault.clone()));
        let account = opened?;
        if let Some(others) = &self.others {
            others.shelves.write_account(&self.shelf).await;
        }
        known.account = Some(account.clone());
        Ok(account)
    }

    /// Makes an account, unless so many were made that the authority would not take another.
    async fn make_account(&self) -> Result<Account, OrderFault> {
        let (now, name) = (seconds(SystemTime::now()), self.shelf.name());
        let number = {
            let mut book = self.desk.book();
            let free = book.ledger(name, now).free_for_account(now);
            if self.config.is_public && free > now {
                let rest = SystemTime::now() + Duration::from_secs(u64::try_from(free - now).unwrap_or(0));
                let why = "so many accounts were made lately that the authority makes no more";
                return Err(OrderFault { rest: Some(rest), ..OrderFault::own(why) });
            }
            book.begin(name, LedgerEntry::Account { at: now }, now).map_err(OrderFault::own)?
        };
        let overheard = HEARD.try_with(Arc::clone).unwrap_or_default();
        let _ = overheard.take_posted();
        let made = account::make(&self.config, &self.shelf).await;
        if made.is_err() && !overheard.take_posted() {
            // Nobody was there who could have counted it.
            self.desk.book().withdraw(name, number);
        }
        made
    }

    /// The authority is to be asked anew who we are.
    async fn forget_account(&self) {
        self.account.lock().await.account = None;
    }

    /// Orders a certificate in the place of what is `shown`; the order has this number in the book.
    pub(super) async fn order(
        &self,
        ordered: &OrderedCertificate,
        shown: Option<&Identity>,
        number: u64,
    ) -> Result<Identity, OrderFault> {
        let overheard = Arc::<Overheard>::default();
        let outcome = HEARD.scope(Arc::clone(&overheard), self.settled(ordered, shown, number)).await;
        outcome.map_err(|fault| OrderFault { rest: fault.rest.max(overheard.take_rest()), ..fault })
    }

    /// The same, once more where the authority does not know the account.
    async fn settled(
        &self,
        ordered: &OrderedCertificate,
        shown: Option<&Identity>,
        number: u64,
    ) -> Result<Identity, OrderFault> {
        let mut outcome = self.ordered(ordered, shown, number).await;
        if outcome.as_ref().is_err_and(|fault| fault.is_lost) {
            // An authority that does not know the account has ordered nothing: with another one it may.
            self.forget_account().await;
            self.shelf.lose_account().map_err(OrderFault::own)?;
            if let Some(others) = &self.others {
                others.shelves.drop_account(&self.shelf).await;
            }
            outcome = self.ordered(ordered, shown, number).await;
        }
        if outcome.as_ref().is_err_and(|fault| fault.is_lost || fault.is_unreached) {
            self.forget_account().await;
        }
        outcome
    }

    async fn ordered(
        &self,
        ordered: &OrderedCertificate,
        shown: Option<&Identity>,
        number: u64,
    ) -> Result<Identity, OrderFault> {
        let account = self.account(true).await.map_err(OrderFault::before_any_order)?;
        let replaces = shown.and_then(named);
        let is_signed = AtomicBool::new(false);
        let signing = || {
            is_signed.store(true, Ordering::Relaxed);
            self.desk.book().end(self.shelf.name(), number, OrderEnd::Signing, None);
        };
        let others = self.others.as_ref().map(|others| &others.proofs);
        let means =
            Means { proofs: &self.proofs, hook: self.config.hook.as_ref(), others, signing: &signing };
        let issued = order(&account, ordered, replaces, &means).await;
        let kept = issued.and_then(|issue| {
            let pem = format!("{}{}", issue.key, issue.chain);
            self.shelf.keep(ordered, &pem).map_err(OrderFault::own)
        });
        kept.map_err(|fault| OrderFault { is_signed: is_signed.load(Ordering::Relaxed), ..fault })
    }

    /// Has all nodes know what this one has asked for, and the order of this `number`, which it is about to ask for.
    ///
    /// # Errors
    /// They don't, and why.
    pub(super) async fn tell_asked(&self, heard: u64, number: Option<u64>) -> Result<(), String> {
        if let Some(others) = &self.others {
            others.shelves.write_asked(&self.desk, self.shelf.name(), heard, number).await?;
        }
        if let Some(number) = number {
            self.desk.book().is_told(self.shelf.name(), number);
        }
        Ok(())
    }

    /// What whoever decides now to ask tells the other nodes upon.
    pub(super) fn heard(&self) -> u64 {
        self.others.as_ref().map_or(0, |others| others.shelves.heard())
    }

    /// Who asks this authority.
    pub(super) fn duty(&self) -> OrderDuty {
        self.others.as_ref().map_or(OrderDuty::Own, |others| others.shelves.duty(self.shelf.name()))
    }

    /// Asks when a certificate is to be renewed (RFC 9773 §4).
    pub(super) async fn advice(&self, shown: &Identity) -> Advice {
        let Ok(account) = self.account(false).await else { return (None, NOBODY) };
        let Some(name) = named(shown) else { return (None, NEVER) };
        match account.renewal_info(&name).await {
            Ok((info, again)) => {
                let window = info.suggested_window;
                let span =
                    LifeSpan { begins: window.start.unix_timestamp(), ends: window.end.unix_timestamp() };
                (Some(span), again.clamp(SOONEST, LATEST))
            }
            Err(Error::Unsupported(_)) => (None, NEVER),
            Err(Error::Api(_)) => (None, AGAIN),
            Err(_) => {
                self.forget_account().await;
                (None, NOBODY)
            }
        }
    }
}

/// What an authority calls a certificate (RFC 9773 §4.1).
fn named(identity: &Identity) -> Option<CertificateIdentifier<'static>> {
    let leaf = identity.certified.cert.first()?;
    CertificateIdentifier::try_from(leaf).ok().map(CertificateIdentifier::into_owned)
}
