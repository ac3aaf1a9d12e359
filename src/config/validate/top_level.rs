//! What is written once and holds for every target.

use std::sync::Arc;
use std::time::Duration;

use super::gate::access::AccessLists;
use super::gate::rate::RateLimits;
use super::tls::acme::AcmeTerms;
use crate::config::model::cache::CachePolicy;
use crate::config::model::{AccessList, Balance};
use crate::config::origin::{Field, Written};
use crate::config::raw::BindHost;

/// What the top level says to every target.
pub(super) struct TopLevel<'r> {
    /// What holds for certificates that are ordered.
    pub(super) acme: AcmeTerms,
    pub(super) lists: AccessLists<'r>,
    /// Who may not come in at the listeners of targets.
    pub(super) blacklisted: Option<Arc<AccessList>>,
    /// What the listeners of targets answer from what is stored, where these say nothing.
    pub(super) cache: Option<Written<Arc<CachePolicy>>>,
    pub(super) rates: RateLimits<'r>,
    pub(super) address: Written<BindHost>,
    pub(super) interval: Option<Written<Duration>>,
    pub(super) fall: Option<Written<u32>>,
    pub(super) algorithm: Field<Balance>,
    pub(super) zone: Option<Arc<str>>,
    /// What sticky cookies are made with where nobody gives a key; `None`: with one by chance.
    pub(super) sticky_key: Option<Arc<[u8]>>,
}
