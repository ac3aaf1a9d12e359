//! A request that has its way: whoever wants an answer from its target gets it here.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::message::Head;
use crate::proxy::http::client::Secured;
use crate::proxy::http::edge::Edge;
use crate::proxy::http::hash_key::Sender;
use crate::proxy::http::identity;
use crate::proxy::http::incoming::{IncomingRequest, about, wanted_upgrade};
use crate::proxy::http::request_body::RequestBody;
use crate::proxy::http::routing::way::Way;
use crate::proxy::http::sticky;
use crate::proxy::recording::Recording;
use crate::snapshot::Destination;
use crate::targets::Backend;

use super::forwarding::{Effort, Forwarding};

/// A request that has its way, and its client.
pub struct Errand<'x, 'a, E> {
    /// The request.
    pub request: &'x IncomingRequest<'a>,
    /// Its way.
    pub way: &'x Way<'a>,
    /// Where it leads.
    pub destination: &'a Destination,
    /// Who sent it.
    pub sender: &'x Sender,
    /// Its body.
    pub body: &'x RequestBody,
    /// Its client.
    pub edge: &'x mut E,
    /// What happens.
    pub recording: &'x mut Recording<'a>,
}

/// What a request that is forwarded lends from.
pub struct ErrandLoan<'a> {
    secured: Option<Rc<Secured>>,
    cookie: Option<&'a Arc<Backend>>,
    own: Option<Arc<Backend>>,
}

impl<'a, E: Edge> Errand<'_, 'a, E> {
    /// What it lends from while it is forwarded.
    #[inline(always)]
    pub fn lend(&self) -> ErrandLoan<'a> {
        let Destination { target, .. } = self.destination;
        let cookie = sticky::pin(target, self.request.head);
        let owner = self.edge.owner().and_then(Cell::get);
        let own = owner.and_then(|owner| identity::pin(&self.request.ctx.pool, target, owner, cookie));
        ErrandLoan { secured: self.edge.secured(), cookie, own }
    }

    /// It, ready to be forwarded with this head. The head of its answer will be in `answer`.
    #[inline(always)]
    pub fn forwarding<'f>(
        &'f mut self,
        lent: &'f ErrandLoan<'a>,
        head: &'f Head,
        answer: &'f mut Head,
    ) -> Forwarding<'f, E> {
        let &mut Errand { request, way, destination, sender, body, .. } = self;
        let Destination { target, rules } = destination;
        let &IncomingRequest { ctx, listener, head: came, .. } = request;
        let is_hashed = target.config.balance.algorithm.is_hash();
        Forwarding {
            ctx,
            target,
            rules,
            keep: identity::keep(came, &ctx.pool, self.edge.owner()),
            edge: &mut *self.edge,
            head,
            body,
            key: if is_hashed { request.key(rules, way, sender, self.recording) } else { None },
            pin: lent.own.as_ref().or(lent.cookie),
            upgrade: wanted_upgrade(came, &rules.upgrade),
            about: about(listener, came, sender, lent.secured.as_deref(), self.recording.record.id),
            edits: way.request_edits(),
            answer,
            record: &mut *self.recording.record,
            effort: Effort::default(),
        }
    }
}
