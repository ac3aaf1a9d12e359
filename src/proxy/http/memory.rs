//! The edge that speaks no wire: heads and bodies in memory.
//!
//! It drives the same pipeline as HTTP/1 does, in tests and wherever an answer is wanted without a socket. It
//! stands where HTTP/2 and HTTP/3 will, and keeps `exchange` honest: what needed a socket would not compile.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::message::{Cause, Head};
use crate::net::relay::{BytesMoved, RelayEnd};
use crate::proxy::pool::Owner;
use crate::proxy::tunnels::{Tunnel, TunnelEnd};

use super::after::After;
use super::answer_body::AnswerBody;
use super::body::BodySource as _;
use super::call::tunnel_far::TunnelFar;
use super::client::Secured;
use super::edge::{Edge, Unsent};

/// Collects what a client would have been sent.
#[derive(Default)]
pub struct MemoryEdge {
    /// Statuses of 1xx heads, in order.
    pub interims: Vec<u16>,
    /// Status of the final answer; 0: none came.
    pub status: u16,
    /// Name and value of its header lines.
    pub fields: Vec<(String, String)>,
    /// Its content.
    pub content: Vec<u8>,
    /// Its trailer lines.
    pub trailers: Vec<u8>,
    /// The client is gone from the start.
    pub gone: bool,
}

impl Edge for MemoryEdge {
    fn secured(&self) -> Option<Rc<Secured>> {
        None
    }

    fn owner(&self) -> Option<&Cell<Option<Owner>>> {
        None
    }

    fn poll_gone(&mut self, _: &mut Context<'_>) -> Poll<Cause> {
        if self.gone { Poll::Ready(Cause::ClientGone) } else { Poll::Pending }
    }

    fn set_idle(&self, _: Duration) {}

    async fn interim(&mut self, head: &Head) -> Result<(), Cause> {
        self.interims.push(head.status);
        Ok(())
    }

    async fn answer(&mut self, head: &Head, body: &mut AnswerBody, last: bool) -> Result<After, Unsent> {
        loop {
            match poll_fn(|cx| body.poll_piece(cx)).await {
                Ok(Some(piece)) => self.content.extend_from_slice(piece.data()),
                Ok(None) => break,
                Err(cause) => return Err(Unsent { cause, started: self.status != 0 }),
            }
            self.status = head.status;
        }
        self.status = head.status;
        self.trailers = body.trailers();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.fields =
            head.lines().iter().map(|line| head.pair(line)).map(|(n, v)| (text(n), text(v))).collect();
        Ok(if last { After::Linger } else { After::KeepOpen })
    }

    async fn tunnel(
        &mut self,
        head: &Head,
        _: &mut TunnelFar,
        _: Duration,
        _: &BytesMoved,
        _: &Tunnel<'_>,
    ) -> TunnelEnd {
        self.status = head.status;
        TunnelEnd::Relayed(RelayEnd::Closed)
    }
}
