//! A connection that a balancer in front passes on: it tells whose it is before anything else (the PROXY protocol).
//!
//! Who has connected is a sender, and is asked two things: whether it is blocked, and whether it may tell. Whom it tells of is the client, and is
//! asked everything that a client is asked who has connected itself.

use std::rc::Rc;
use std::task::{Context, Poll, ready};

use crate::config::model::{Protocol, ProxySenders};
use crate::events;
use crate::message::proxy_header::{ProxyHeader, ProxyRead, read};
use crate::message::{Cause, ClientAddress, Peer};
use crate::net::now;
use crate::proxy::DRAIN_SILENCE;
use crate::proxy::http::client::Client;
use crate::proxy::http::connection::{Stay, dismiss, serve, turn_away};
use crate::proxy::http::gate::{Denial, at_the_door};
use crate::proxy::tcp;

use super::admission::{Admitter, ListedTask, refuse_unheard};
use super::connection::greet;
use super::connection_slot::ConnectionSlot;
use super::newcomer::{Newcomer, in_time};

/// A connection of which a sender is to tell whose it is.
struct Sender {
    admitter: Rc<Admitter>,
    newcomer: Newcomer,
    slot: ConnectionSlot,
    /// It may begin without a header: then it is a client.
    is_optional: bool,
}

/// What a sender has said first.
enum Said {
    /// Nothing.
    Nothing,
    /// No header: what it has said is its own.
    Payload,
    /// Whose the connection is.
    Header(Box<ProxyHeader>),
    /// Neither.
    Fault(Cause, String),
}

impl Admitter {
    /// Admits a connection of which `senders` are to tell whose it is.
    pub(super) fn hear(self: &Rc<Admitter>, newcomer: Newcomer, senders: &ProxySenders) {
        let Newcomer { ctx, peer, here, .. } = &newcomer;
        let address = peer.client.map(|client| client.ip);
        let stranger = (!senders.trusts(address)).then_some(Cause::ProxySender);
        let denied = ctx.blocked.refusal(address).or(stranger);
        // All clients come from a few senders, of which none is limited.
        let unnamed = Peer { client: None, ..*peer };
        let slot = ConnectionSlot::take(&self.limits, ctx, &here.state, &unnamed, denied);
        if let Some(cause) = denied {
            events::proxy_header_refused(&here.config.name, address, cause.token(), "it may not tell");
            return refuse_unheard(&newcomer, cause);
        }
        if slot.refusal().is_some() {
            // To hear whose it is costs more than what we are short of.
            return ctx.cells.ends.fail_unrecorded(peer.listener);
        }
        let (tracked, peer) = (self.tracker.token(), *peer);
        let (admitter, is_optional) = (Rc::clone(self), !senders.required);
        let sender = Box::new(Sender { admitter, newcomer, slot, is_optional });
        self.tasks.spawn(&peer, |listed| async move {
            let (listed, _tracked) = (listed, tracked);
            // What it takes to hear whose it is idle connections don't hold.
            let Some((client, _slot)) = Box::pin(sender.pass_on(&listed)).await else { return };
            serve(client, Stay::Open).await;
        });
    }
}

impl Sender {
    /// Hears whose the connection is, and serves that client as if it had connected itself. What is left is one that speaks HTTP.
    async fn pass_on(mut self: Box<Sender>, listed: &ListedTask) -> Option<(Rc<Client>, ConnectionSlot)> {
        let mut is_local = false;
        let said = self.listen().await;
        // What has changed meanwhile holds for whoever comes now: also who may tell.
        let Newcomer { ctx, peer, here, .. } = &mut self.newcomer;
        if let Some(newest) = ctx.here(peer.listener) {
            *here = newest;
        }
        let sender = peer.client.map(|client| client.ip);
        let may_tell = here.config.proxy_protocol.as_ref().is_some_and(|senders| senders.trusts(sender));
        match said {
            Said::Nothing => return None,
            Said::Payload => {}
            Said::Header(_) if !may_tell => {
                refuse_unheard(&self.newcomer, Cause::ProxySender);
                return None;
            }
            Said::Header(header) => {
                is_local = header.is_local;
                if let Some((source, _)) = header.addresses {
                    self.newcomer.peer.client = Some(ClientAddress::new(source.ip(), source.port()));
                }
                self.newcomer.told = Some(header.into());
            }
            Said::Fault(cause, why) => {
                let Newcomer { peer, here, .. } = &self.newcomer;
                let sender = peer.client.map(|client| client.ip);
                events::proxy_header_refused(&here.config.name, sender, cause.token(), &why);
                refuse_unheard(&self.newcomer, cause);
                return None;
            }
        }
        if !is_local && self.may_prove() {
            let Sender { admitter, newcomer, mut slot, .. } = *self;
            let client = newcomer.peer.client.map(|client| client.ip);
            listed.belongs_to(client);
            match slot.name(newcomer.peer.listener, client, None) {
                Ok(()) => {
                    slot.stand_aside();
                    let _leisure = admitter.take_leisure();
                    serve(newcomer.into_client(None), Stay::OneRequest).await;
                }
                Err(cause) => dismiss(&newcomer.ctx, &newcomer.stream, &newcomer.peer, &Denial::of(cause)),
            }
            return None;
        }
        // Balancers that find out whether we are there come for nobody.
        let denial = if is_local { None } else { self.ask(listed) };
        let Sender { admitter, newcomer, slot, .. } = *self;
        let Some(denial) = denial else {
            let Newcomer { ctx, peer, here, .. } = &newcomer;
            // Before a handshake, which costs more than all else.
            if !is_local && here.config.protocol == Protocol::Tcp && tcp::comes_too_soon(ctx, peer, here) {
                return None;
            }
            return greet(newcomer).await.map(|client| (client, slot));
        };
        let Newcomer { ctx, stream, peer, here, .. } = &newcomer;
        if here.config.protocol != Protocol::Http || here.is_secured() {
            // Nothing can be said before a handshake, and whoever may not come in is worth none.
            refuse_unheard(&newcomer, denial.cause);
        } else if denial.status.is_none() || !admitter.has_leisure() {
            dismiss(ctx, stream, peer, &denial);
        } else {
            let _leisure = admitter.take_leisure();
            turn_away(newcomer.into_client(None), denial).await;
        }
        None
    }

    /// Whether no list lets its client in, who may ask for a proof all the same.
    fn may_prove(&self) -> bool {
        let Newcomer { ctx, peer, here, .. } = &self.newcomer;
        let client = peer.client.map(|client| client.ip);
        here.config.protocol == Protocol::Http
            && !here.is_secured()
            && ctx.proofs.has_answers()
            && self.admitter.has_leisure()
            && ctx.blocked.refusal(client).is_none()
            && at_the_door(here, client).is_some()
    }

    /// Why its client may not come in.
    fn ask(&mut self, listed: &ListedTask) -> Option<Denial> {
        let Newcomer { ctx, peer, here, .. } = &self.newcomer;
        let client = peer.client.map(|client| client.ip);
        listed.belongs_to(client);
        let blocked = ctx.blocked.refusal(client).map(Denial::of);
        let denial = blocked.or_else(|| at_the_door(here, client).map(Denial::by_address));
        let named = self.slot.name(peer.listener, client, denial.as_ref().map(|denial| denial.cause));
        denial.or_else(|| named.err().map(Denial::of))
    }

    /// Hears what it says first.
    async fn listen(&mut self) -> Said {
        let Sender { newcomer, is_optional, .. } = self;
        let (listener, patience) = (newcomer.peer.listener, newcomer.here.config.client_timeouts.head);
        let ctx = Rc::clone(&newcomer.ctx);
        let deadline = ctx.ticker.deadline();
        deadline.set(patience);
        let said = in_time(&ctx, listener, &deadline, DRAIN_SILENCE.min(patience), |cx| {
            newcomer.poll_header(*is_optional, cx)
        });
        let said = said.await;
        said.unwrap_or_else(|| match newcomer.held {
            // Who connects and says nothing leaves no record.
            None => Said::Nothing,
            Some(_) => Said::Fault(Cause::ProxyTimeout, "it was not complete in time".to_owned()),
        })
    }
}

impl Newcomer {
    fn poll_header(&mut self, is_optional: bool, cx: &mut Context<'_>) -> Poll<Said> {
        loop {
            let bytes = self.held.as_ref().map_or(&[][..], |held| held.data());
            match read(bytes) {
                ProxyRead::More => {}
                ProxyRead::None if is_optional => return Poll::Ready(Said::Payload),
                ProxyRead::None => return fault("there is none"),
                ProxyRead::Fault(why) => return fault(&why.to_string()),
                ProxyRead::Header(header, length) => {
                    if let Some(held) = &mut self.held {
                        held.consume(length);
                    }
                    self.held.take_if(|held| held.is_empty());
                    return Poll::Ready(Said::Header(header));
                }
            }
            let is_first = self.held.is_none();
            let filled = ready!(self.ctx.buffers.poll_fill(&mut self.held, cx, &mut self.stream));
            match filled {
                Ok(1..) if is_first => self.peer.greeted = now(),
                Ok(1..) => {}
                Ok(0) if self.held.is_some() && is_optional => return Poll::Ready(Said::Payload),
                Ok(0) if self.held.is_some() => return fault("the connection ends before it is whole"),
                Ok(0) | Err(_) => return Poll::Ready(Said::Nothing),
            }
        }
    }
}

fn fault(why: &str) -> Poll<Said> {
    Poll::Ready(Said::Fault(Cause::BadProxyHeader, why.to_owned()))
}
