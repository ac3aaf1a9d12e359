//! What is asked of one authority: a task for each question.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use instant_acme::{Account, CertificateIdentifier, Error};
use tokio::sync::Mutex;

use super::account;
use super::client::Overheard;
use super::desk::{OrderDesk, seconds};
use super::fault::OrderFault;
use super::limits::LedgerEntry;
use super::order::{Means, order};
use super::schedule::LifeSpan;
use super::shelf::Shelf;
use crate::config::model::tls::Identity;
use crate::config::model::tls::acme::{AcmeConfig, OrderedCertificate};
use crate::tls::Proofs;

/// One authority, and as whom we come to it.
pub(super) struct Visit {
    pub(super) config: AcmeConfig,
    pub(super) shelf: Shelf,
    desk: Arc<OrderDesk>,
    proofs: Arc<Proofs>,
    overheard: Arc<Overheard>,
    /// `None`: nobody has come there yet, or the last who has was sent away.
    account: Mutex<Option<Account>>,
}

/// When an authority wants a certificate to be renewed, and after what time it is to be asked again.
pub(super) type Advice = (Option<LifeSpan>, Duration);

/// Where nobody says so, and nobody is there to say so.
const AGAIN: Duration = Duration::from_secs(6 * 3_600);
const NOBODY: Duration = Duration::from_secs(3_600);
/// Authorities that never say anything are asked seldom.
const NEVER: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Whatever an authority says of when to ask again, it is at least and at most this.
const SOONEST: Duration = Duration::from_secs(60);
const LATEST: Duration = Duration::from_secs(24 * 3_600);

impl Visit {
    pub(super) fn new(config: &AcmeConfig, desk: &Arc<OrderDesk>, proofs: &Arc<Proofs>) -> Visit {
        Visit {
            config: config.clone(),
            shelf: Shelf::of(desk.state(), config),
            desk: Arc::clone(desk),
            proofs: Arc::clone(proofs),
            overheard: Arc::default(),
            account: Mutex::default(),
        }
    }

    /// As whom we come.
    async fn account(&self, may_be_made: bool) -> Result<Account, OrderFault> {
        let mut known = self.account.lock().await;
        if let Some(account) = &*known {
            return Ok(account.clone());
        }
        let account = match account::open(&self.config, &self.shelf, &self.overheard).await? {
            Some(account) => account,
            None if !may_be_made => return Err(OrderFault::own("there is no account yet")),
            None => {
                let now = seconds(SystemTime::now());
                self.may_make_account(now)?;
                account::make(&self.config, &self.shelf, &self.overheard).await?
            }
        };
        *known = Some(account.clone());
        Ok(account)
    }

    /// Notes that an account is about to be made.
    fn may_make_account(&self, now: i64) -> Result<(), OrderFault> {
        let mut book = self.desk.book();
        let free = book.ledger(self.shelf.name()).free_for_account(now);
        if free > now {
            let rest = SystemTime::now() + Duration::from_secs(u64::try_from(free - now).unwrap_or(0));
            let why = "so many accounts were made lately that the authority makes no more";
            return Err(OrderFault { rest: Some(rest), ..OrderFault::own(why) });
        }
        let noted = book.begin(self.shelf.name(), LedgerEntry::Account { at: now }, now);
        noted.map(drop).map_err(OrderFault::own)
    }

    /// Orders a certificate in the place of what is `shown`.
    pub(super) async fn order(
        &self,
        ordered: &OrderedCertificate,
        shown: Option<&Identity>,
    ) -> Result<Identity, OrderFault> {
        let outcome = self.ordered(ordered, shown).await;
        let rest = self.overheard.take_rest();
        let mut fault = match outcome {
            Ok(identity) => return Ok(identity),
            Err(fault) => fault,
        };
        if fault.is_lost {
            // The next attempt makes another one.
            let _ = self.shelf.lose_account();
        }
        if fault.is_lost || fault.is_unreached {
            *self.account.lock().await = None;
        }
        fault.rest = fault.rest.max(rest);
        Err(fault)
    }

    async fn ordered(
        &self,
        ordered: &OrderedCertificate,
        shown: Option<&Identity>,
    ) -> Result<Identity, OrderFault> {
        // Of what was overheard before nothing counts.
        let _ = self.overheard.take_rest();
        let account = self.account(true).await.map_err(OrderFault::before_any_order)?;
        let replaces = shown.and_then(named);
        let means = Means { proofs: &self.proofs, hook: self.config.hook.as_ref() };
        let issue = order(&account, ordered, replaces, &means).await?;
        self.shelf.keep(ordered, &issue.key, &issue.chain).map_err(OrderFault::own)
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
                *self.account.lock().await = None;
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
