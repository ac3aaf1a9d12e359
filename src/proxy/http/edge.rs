//! What the pipeline asks of the protocol that the client speaks.
//!
//! Two protocols stand here: HTTP/1 on a socket, and one that speaks no wire at all (`memory`), by which tests
//! drive the same pipeline and which keeps it free of sockets. HTTP/2 will be the third.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::config::model::SendProxy;
use crate::message::{Cause, Head};
use crate::net::relay::BytesMoved;
use crate::proxy::passed_on::Passing;
use crate::proxy::pool::Owner;
use crate::proxy::tunnels::{Tunnel, TunnelEnd};

use crate::tick::Tick;

use super::after::After;
use super::answer_body::AnswerBody;
use super::call::tunnel_far::TunnelFar;
use super::client::Secured;

/// An answer that was not sent to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// Why.
    pub cause: Cause,
    /// A byte of it is out, so no other answer can take its place.
    pub started: bool,
}

/// The client's side of an exchange.
#[allow(async_fn_in_trait, reason = "both implementers are ours and stay on one thread")]
pub trait Edge {
    /// What is known from its TLS session; `None`: it came without TLS.
    fn secured(&self) -> Option<Rc<Secured>>;

    /// Where the number of the client's connection stands, once a connection to a backend is its alone; `None`: there is no
    /// connection that lasts from one request to the next.
    fn owner(&self) -> Option<&Cell<Option<Owner>>>;

    /// How connections to backends begin that are told of its client; of nobody where there is none.
    fn passing(&self, version: SendProxy) -> Passing {
        Passing::of_nobody(version)
    }

    /// Ready when there is no use in an answer any more while nothing is read from or written to the client, with why: nearly always
    /// [`Cause::ClientGone`].
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<Cause>;

    /// How long the client may be silent inside a body of the current request, if that is not what its listener says.
    fn set_idle(&self, idle: Duration);

    /// When the current request is over by its own word, whatever it is doing.
    fn set_due(&self, _due: Tick) {}

    /// Nothing came of what was done for a request because it was given too little time.
    fn charge_abandoned(&self) {}

    /// Passes a 1xx head on.
    ///
    /// # Errors
    /// [`Cause::ClientGone`] or [`Cause::ClientStalled`].
    async fn interim(&mut self, head: &Head) -> Result<(), Cause>;

    /// Sends an answer. `last`: the connection must not carry another request.
    ///
    /// # Errors
    /// See [`Unsent`].
    async fn answer(&mut self, head: &Head, body: &mut AnswerBody, last: bool) -> Result<After, Unsent>;

    /// Ends an answer that has begun with these trailer lines instead of cutting it. False: it can't be, or is cut already.
    fn end_call(&mut self, _trailers: &[u8]) -> bool {
        false
    }

    /// Sends the 101 and relays bytes both ways until the tunnel ends, or has to.
    async fn tunnel(
        &mut self,
        head: &Head,
        backend: &mut TunnelFar,
        idle: Duration,
        moved: &BytesMoved,
        tunnel: &Tunnel<'_>,
    ) -> TunnelEnd;
}
