//! What a route changes about a request and about what comes back.

use std::borrow::Cow;
use std::net::IpAddr;
use std::rc::Rc;

use crate::message::proxy_header::ProxyHeader;
use crate::message::{Head, Record, TlsSession};
use crate::proxy::WorkerCtx;
use crate::proxy::head_buffers::HeadBuffer;
use crate::proxy::http::client::Secured;
use crate::proxy::http::gate::authenticated::Authenticated;
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
    /// What a balancer in front has told; `None`: nothing.
    pub told: Option<Rc<ProxyHeader>>,
}

/// A request on its route: what that changes about it, and about what comes back.
pub struct Way<'a> {
    /// The route.
    pub route: &'a Route,
    /// What is known of the request; `None`: its path goes on as it came, and lines that come are the same for every request.
    particulars: Option<Box<Particulars<'a>>>,
}

/// What texts are filled in with, and what was made of it so far.
struct Particulars<'a> {
    from: Wayfarer<'a>,
    /// Its path, in the form in which it was matched.
    path: Cow<'a, [u8]>,
    client: Option<IpAddr>,
    target: &'a str,
    id: u128,
    tls: &'static str,
    /// Who its client has shown to be.
    known: Option<Box<Known>>,
    /// Its head as backends get it; `None`: as it came.
    head: Option<Head>,
    /// The lines that a backend gets beside, where those are not the same for every request.
    lines: Option<HeadBuffer>,
}

/// A client that has shown who it is.
struct Known {
    user: String,
    /// The head of its request with the lines that say so; `None`: there are none.
    head: Option<Head>,
    /// Values of `Set-Cookie` for its answer.
    cookies: Vec<Vec<u8>>,
}

impl<'a> Way<'a> {
    /// That of a request that goes on as it came, on a route whose lines are the same for every request.
    #[must_use]
    #[inline]
    pub const fn plain(route: &'a Route) -> Way<'a> {
        Way { route, particulars: None }
    }

    /// That of a request on this route.
    #[must_use]
    pub fn new(
        from: Wayfarer<'a>,
        route: &'a Route,
        path: Cow<'a, [u8]>,
        client: Option<IpAddr>,
        record: &Record,
    ) -> Way<'a> {
        let tls = record.tls.map_or("", TlsSession::version);
        let id = record.id;
        let particulars =
            Particulars { from, path, client, target: "", id, tls, known: None, head: None, lines: None };
        Way { route, particulars: Some(Box::new(particulars)) }
    }

    /// Whether nothing is known of the request, because nothing that is done with it depends on that.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.particulars.is_none()
    }

    /// Makes ready what goes to a backend of the target of this name. False: there is no path that could be sent there.
    #[must_use]
    pub fn lead_to(&mut self, target: &'a str) -> bool {
        let Some(particulars) = &mut self.particulars else { return true };
        particulars.target = target;
        let Particulars { from, path, .. } = &**particulars;
        let facts = particulars.facts(self.route, "");
        let Ok(path) = sent_path(self.route, &from.listener.config.normalize, path, &facts) else {
            return false;
        };
        let edits = &self.route.request_edits;
        let lines = (edits.constant().is_none()).then(|| {
            let mut lines = from.ctx.outgoing.take();
            count_dropped(from, edits.write(&facts, &mut lines));
            lines
        });
        let head = path.map(|path| particulars.asked().with_path(&path));
        (particulars.head, particulars.lines) = (head, lines);
        true
    }

    /// The head as backends get it, but for the lines that go and come; `sent`: as it came.
    #[must_use]
    #[inline]
    pub fn head<'h>(&'h self, sent: &'h Head) -> &'h Head {
        match &self.particulars {
            Some(particulars) => particulars.head.as_ref().unwrap_or_else(|| particulars.asked()),
            None => sent,
        }
    }

    /// What the request asks for, with the lines that say who its client is; `sent`: as it came.
    #[must_use]
    #[inline]
    pub fn asked<'h>(&'h self, sent: &'h Head) -> &'h Head {
        self.particulars.as_ref().map_or(sent, |particulars| particulars.asked())
    }

    /// Notes who its client has shown to be.
    pub fn admit(&mut self, authenticated: Authenticated) {
        let Some(particulars) = &mut self.particulars else { return };
        let Authenticated { user, lines, cookies } = authenticated;
        let head = (!lines.is_empty()).then(|| {
            let mut head = particulars.from.head.without(|_| false);
            for (name, value) in &lines {
                // Whatever Connection says: no client takes away what it is told about.
                head.push_ours(name.as_bytes(), value);
            }
            head
        });
        particulars.known = Some(Box::new(Known { user: user.unwrap_or_default(), head, cookies }));
    }

    /// The client, as trusted proxies tell it.
    #[must_use]
    pub fn client(&self) -> Option<IpAddr> {
        self.particulars.as_ref().and_then(|particulars| particulars.client)
    }

    /// Path and query in the form in which its route was found; empty: nothing is known of them.
    #[must_use]
    pub fn uri(&self) -> Vec<u8> {
        let Some(particulars) = &self.particulars else { return Vec::new() };
        let sent = particulars.from.head.path();
        let query = memchr::memchr(b'?', sent).map_or(&[][..], |at| &sent[at..]);
        [&particulars.path, query].concat()
    }

    /// Asks something of where it comes from and of its head; `None`: nothing is known of them.
    pub fn with_head<T>(&self, ask: impl FnOnce(&Wayfarer<'a>, &Head) -> T) -> Option<T> {
        self.particulars.as_ref().map(|particulars| ask(&particulars.from, particulars.asked()))
    }

    /// The lines that go and come on the way to a backend; `None`: none do.
    #[must_use]
    #[inline]
    pub fn request_edits(&self) -> Option<RequestEdits<'_>> {
        let edits = &self.route.request_edits;
        if edits.is_empty() {
            return None;
        }
        let lines = self.particulars.as_ref().and_then(|particulars| particulars.lines.as_ref());
        Some(RequestEdits {
            edits,
            lines: lines.map(|lines| &***lines).or(edits.constant()).unwrap_or_default(),
        })
    }

    /// Edits an answer on its way to the client. `backend`: the name of the one that gave it; empty: we did.
    #[inline]
    pub fn edit_answer(&self, answer: &mut Head, backend: &str) {
        if self.route.answer_edits.is_empty() && self.route.auth.is_none() {
            return;
        }
        match &self.particulars {
            Some(particulars) => particulars.edit_answer(self.route, answer, backend),
            None => self.route.answer_edits.apply_constant(answer),
        }
    }

    /// Appends what `write` makes of what is known of the request; it says how many lines were left out. Nothing is written where nothing
    /// is known.
    pub fn fill<T: Default>(&self, write: impl FnOnce(&TextFacts<'_>) -> (T, usize)) -> T {
        let Some(particulars) = &self.particulars else { return T::default() };
        let (written, dropped) = write(&particulars.facts(self.route, ""));
        count_dropped(&particulars.from, dropped);
        written
    }
}

impl Particulars<'_> {
    #[inline(never)]
    fn edit_answer(&self, route: &Route, answer: &mut Head, backend: &str) {
        let dropped = route.answer_edits.apply(answer, &self.facts(route, backend));
        count_dropped(&self.from, dropped);
        for cookie in self.known.iter().flat_map(|known| &known.cookies) {
            answer.push_ours(b"Set-Cookie", cookie);
        }
    }

    /// What the client asks for, with the lines that say who it is.
    fn asked(&self) -> &Head {
        self.known.as_ref().and_then(|known| known.head.as_ref()).unwrap_or(self.from.head)
    }

    fn facts<'f>(&'f self, route: &'f Route, backend: &'f str) -> TextFacts<'f> {
        let secured = self.from.secured.as_deref();
        TextFacts {
            head: self.asked(),
            groups: groups(route, &self.path),
            client: self.client,
            scheme: if secured.is_some() { "https" } else { "http" },
            id: self.id,
            target: self.target,
            backend,
            tls: self.tls,
            subject: secured.and_then(|secured| secured.facts.as_ref()).map_or("", |facts| &facts.subject),
            user: self.known.as_ref().map_or("", |known| &known.user),
            told: self.from.told.as_ref().map(|told| &told.told),
        }
    }
}

/// Counts lines that were left out.
fn count_dropped(from: &Wayfarer<'_>, lines: usize) {
    if lines > 0 {
        from.ctx.cells.refusals.drop_lines(from.listener.id, lines);
    }
}
