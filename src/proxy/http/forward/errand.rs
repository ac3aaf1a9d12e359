//! A request that has its way: whoever wants an answer from its target gets it here.

use std::cell::Cell;
use std::task::{Context, Poll};

use crate::message::{Cause, Head};
use crate::proxy::http::cached::ask::Origin;
use crate::proxy::http::call::Call;
use crate::proxy::http::edge::Edge;
use crate::proxy::http::hash_key::Sender;
use crate::proxy::http::identity;
use crate::proxy::http::incoming::{IncomingRequest, about, wanted_upgrade};
use crate::proxy::http::request_body::RequestBody;
use crate::proxy::http::routing::way::Way;
use crate::proxy::http::sticky;
use crate::proxy::recording::Recording;
use crate::snapshot::Destination;

use super::forward;
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

impl<E: Edge> Origin for Errand<'_, '_, E> {
    async fn forward(&mut self, head: &Head, answer: &mut Head) -> Result<Box<Call>, Cause> {
        let &mut Errand { request, way, destination, sender, body, .. } = self;
        let Destination { target, rules } = destination;
        let &IncomingRequest { ctx, listener, head: came, .. } = request;
        let is_hashed = target.config.balance.algorithm.is_hash();
        let secured = self.edge.secured();
        let cookie = sticky::pin(target, came);
        let owner = self.edge.owner().and_then(Cell::get);
        let own = owner.and_then(|owner| identity::pin(&ctx.pool, target, owner, cookie));
        let mut forwarding = Forwarding {
            ctx,
            target,
            rules,
            keep: identity::keep(came, &ctx.pool, self.edge.owner()),
            edge: &mut *self.edge,
            head,
            body,
            key: if is_hashed { request.key(rules, way, sender, self.recording) } else { None },
            pin: own.as_ref().or(cookie),
            upgrade: wanted_upgrade(came, &rules.upgrade),
            about: about(listener, came, sender, secured.as_deref(), self.recording.record.id),
            edits: way.request_edits(),
            answer,
            record: &mut *self.recording.record,
            effort: Effort::default(),
        };
        forward(&mut forwarding).await
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.edge.poll_gone(cx)
    }
}
