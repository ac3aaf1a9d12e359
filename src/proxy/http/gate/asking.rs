//! A request whose client is asked who it is.

use std::net::IpAddr;
use std::rc::Rc;

use crate::message::{Head, TraceContext};
use crate::proxy::WorkerCtx;
use crate::proxy::http::h1::write::About;
use crate::proxy::http::hash_key::Sender;
use crate::snapshot::Listener;
use crate::telemetry::traces::question_span;

/// A request whose client is asked who it is.
pub struct Asking<'a> {
    /// The worker that serves it.
    pub ctx: &'a Rc<WorkerCtx>,
    /// Where it came in.
    pub listener: &'a Listener,
    /// Its head.
    pub head: &'a Head,
    /// Path and query in the form in which its route was found, before a rewrite.
    pub uri: &'a [u8],
    /// Who sent it.
    pub sender: Sender,
    /// The client, as trusted proxies tell it.
    pub client: Option<IpAddr>,
    /// What backends are told about the client.
    pub about: About<'a>,
}

impl Asking<'_> {
    /// As whom the client counts: by the address that the connection comes from where nobody knows its own.
    #[must_use]
    pub fn counted(&self) -> Option<IpAddr> {
        self.client.or(self.sender.peer)
    }

    /// The trace, and the span of the question to another service.
    #[must_use]
    pub fn trace(&self) -> Option<TraceContext> {
        self.about.trace.map(|trace| TraceContext { span: question_span(trace.span), ..trace })
    }
}
