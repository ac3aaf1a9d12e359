//! What a route changes about a request and about what comes back.

use std::borrow::Cow;
use std::net::IpAddr;
use std::rc::Rc;

use crate::message::{Head, Record};
use crate::proxy::WorkerCtx;
use crate::proxy::head_buffers::HeadBuffer;
use crate::proxy::http::client::Secured;
use crate::proxy::http::h1::edit::RequestEdits;
use crate::proxy::http::hash_key::Sender;
use crate::route::TextFacts;
use crate::snapshot::{Listener, Route};

use super::found::{groups, sent_path};

/// A request that looks for its route.
pub struct Wayfarer<'a> {
    /// The worker that serves it.
    pub ctx: &'a WorkerCtx,
    /// Where it came in.
    pub listener: &'a Listener,
    /// Its head, as it came.
    pub head: &'a Head,
    /// Who asks.
    pub sender: Sender,
    /// What is known from the TLS session; `None`: it came without TLS.
    pub secured: Option<Rc<Secured>>,
}

/// A request on its route.
pub struct Way<'a> {
    from: Wayfarer<'a>,
    /// The route.
    pub route: &'a Route,
    /// Its path, in the form in which it was matched.
    path: Cow<'a, [u8]>,
    client: Option<IpAddr>,
    target: &'a str,
    id: u128,
    tls: &'static str,
    /// Its head as backends get it; `None`: as it came.
    pub head: Option<Head>,
    /// The lines that a backend gets beside, where those are not the same for every request.
    lines: Option<HeadBuffer>,
}

impl<'a> Way<'a> {
    /// That of a request on this route.
    #[must_use]
    pub fn new(
        from: Wayfarer<'a>,
        route: &'a Route,
        path: Cow<'a, [u8]>,
        client: Option<IpAddr>,
        record: &Record,
    ) -> Way<'a> {
        let tls = record.tls.map_or("", |tls| tls.version);
        Way { from, route, path, client, target: "", id: record.id, tls, head: None, lines: None }
    }

    /// Makes ready what goes to a backend of the target of this name. False: there is no path that could be sent there.
    #[must_use]
    pub fn lead_to(&mut self, target: &'a str) -> bool {
        self.target = target;
        let rules = &self.from.listener.config.normalize;
        let Ok(path) = sent_path(self.route, rules, &self.path, &self.facts("")) else { return false };
        self.head = path.map(|path| self.from.head.with_path(&path));
        let edits = &self.route.request_edits;
        if !edits.is_empty() && edits.constant().is_none() {
            let mut lines = self.from.ctx.outgoing.take();
            let dropped = edits.write(&self.facts(""), &mut lines);
            self.count_dropped(dropped);
            self.lines = Some(lines);
        }
        true
    }

    /// The head as backends get it, but for the lines that go and come.
    #[must_use]
    pub fn head(&self) -> &Head {
        self.head.as_ref().unwrap_or(self.from.head)
    }

    /// The lines that go and come on the way to a backend; `None`: none do.
    #[must_use]
    pub fn request_edits(&self) -> Option<RequestEdits<'_>> {
        let edits = &self.route.request_edits;
        let lines = self.lines.as_ref().map(|lines| &***lines).or(edits.constant()).unwrap_or_default();
        (!edits.is_empty()).then_some(RequestEdits { edits, lines })
    }

    /// Edits an answer on its way to the client. `backend`: the name of the one that gave it; empty: we did.
    pub fn edit_answer(&self, answer: &mut Head, backend: &str) {
        let edits = &self.route.answer_edits;
        if !edits.is_empty() {
            let dropped = edits.apply(answer, &self.facts(backend));
            self.count_dropped(dropped);
        }
    }

    /// What texts are filled in with.
    #[must_use]
    pub fn facts<'f>(&'f self, backend: &'f str) -> TextFacts<'f> {
        let secured = self.from.secured.as_deref();
        TextFacts {
            head: self.from.head,
            groups: groups(self.route, &self.path),
            client: self.client,
            scheme: if secured.is_some() { "https" } else { "http" },
            id: self.id,
            target: self.target,
            backend,
            tls: self.tls,
            subject: secured.and_then(|secured| secured.facts.as_ref()).map_or("", |facts| &facts.subject),
        }
    }

    /// Counts lines that were left out.
    pub fn count_dropped(&self, lines: usize) {
        if lines > 0 {
            self.from.ctx.cells.refusals.drop_lines(self.from.listener.id, lines);
        }
    }
}
