//! Who a client is, where its route wants to know.

use std::net::IpAddr;
use std::rc::Rc;

use crate::config::model::AuthKind;
use crate::message::{Cause, Head};
use crate::proxy::WorkerCtx;
use crate::proxy::http::edge::Edge;
use crate::proxy::http::h1::write::About;
use crate::proxy::http::hash_key::Sender;
use crate::snapshot::{Listener, RouteAuth};

use super::authenticated::{Authenticated, Refusal};
use super::denial::Denial;
use super::{basic, forward};

/// A request whose client is asked who it is.
pub struct Asking<'a> {
    /// The worker that serves it.
    pub ctx: &'a Rc<WorkerCtx>,
    /// Where it came in.
    pub listener: &'a Listener,
    /// Its head.
    pub head: &'a Head,
    /// Who sent it.
    pub sender: Sender,
    /// The client, as trusted proxies tell it.
    pub client: Option<IpAddr>,
    /// What backends are told about the client.
    pub about: About<'a>,
}

/// Finds out who the client of a request is. Nothing of its body is read meanwhile.
///
/// # Errors
/// It is not let in.
pub async fn auth<E: Edge>(
    asking: &Asking<'_>,
    rule: &RouteAuth,
    edge: &mut E,
) -> Result<Authenticated, Refusal> {
    match (&rule.config.kind, &rule.asked) {
        (AuthKind::Basic(config), _) => {
            let from = (asking.head, asking.client);
            basic::basic(config, &rule.passwords, from, edge).await.map_err(Refusal::Denial)
        }
        (AuthKind::Forward(config), Some(asked)) => forward::ask(asking, config, asked, edge).await,
        // No config is accepted with one that is not there.
        (AuthKind::Forward(_), None) => Err(Refusal::Denial(Denial::new(Cause::AuthUnavailable, Vec::new()))),
    }
}
