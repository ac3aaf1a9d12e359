//! The Record of one request or connection, written down however it ends.
//!
//! Dropping the recording completes it: also when the task was cut by the end of the process or by a panic.

use std::net::IpAddr;
use std::rc::Rc;

use super::WorkerCtx;
use super::blocked::ProxiedRequest;
use crate::message::proxy_header::ProxyHeader;
use crate::message::{Cause, Head, Record};
use crate::net::now;
use crate::net::relay::BytesMoved;
use crate::snapshot::Route;
use crate::telemetry::access_log::{RouteName, SeldomSaid};
use crate::tick::Tick;

/// What is known of how it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Nothing yet.
    Open,
    /// Nothing went wrong.
    Done,
    /// Something else than that.
    Otherwise,
}

/// What few requests have.
#[derive(Default)]
struct Seldom<'a> {
    said: SeldomSaid,
    /// As near as a trusted proxy tells who has sent it, and where it is listed for that client.
    listed: Option<(IpAddr, Option<ProxiedRequest<'a>>)>,
}

impl Seldom<'_> {
    #[cold]
    #[inline(never)]
    fn told(told: &Rc<ProxyHeader>) -> Box<Self> {
        let said = SeldomSaid { told: Some(Rc::clone(told)), ..SeldomSaid::default() };
        Box::new(Seldom { said, ..Seldom::default() })
    }
}

/// A Record in the making.
pub struct Recording<'a> {
    ctx: &'a WorkerCtx,
    head: Option<&'a Head>,
    moved: Option<&'a BytesMoved>,
    route: Option<&'a RouteName>,
    seldom: Option<Box<Seldom<'a>>>,
    ending: Ending,
    /// What is known so far.
    pub record: &'a mut Record,
}

impl<'a> Recording<'a> {
    /// Goes on with `record`, which was just begun. `head`: what the client asked, for the access log.
    #[must_use]
    pub fn new(ctx: &'a WorkerCtx, head: Option<&'a Head>, record: &'a mut Record) -> Recording<'a> {
        Recording::told((ctx, head, record), None)
    }

    /// The same, where a balancer in front has told this.
    #[must_use]
    #[inline(always)]
    pub fn told(
        (ctx, head, record): (&'a WorkerCtx, Option<&'a Head>, &'a mut Record),
        told: Option<&Rc<ProxyHeader>>,
    ) -> Recording<'a> {
        let seldom = told.map(Seldom::told);
        Recording { ctx, head, moved: None, route: None, seldom, ending: Ending::Open, record }
    }

    /// Adds the bytes in `moved` to the Record when it is completed: they count also when the task is cut.
    pub fn count(&mut self, moved: &'a BytesMoved) {
        self.moved = Some(moved);
    }

    /// Notes its route.
    pub fn on(&mut self, route: &'a Route) {
        self.route = Some(&route.name);
        self.record.route = Some(route.id);
    }

    /// Notes who the client has shown to be.
    #[cold]
    pub fn by(&mut self, user: &str) {
        self.seldom.get_or_insert_default().said.user = Some(user.into());
    }

    /// Notes the host that its client has asked for under TLS.
    #[cold]
    pub fn asks_for(&mut self, name: Box<str>) {
        self.seldom.get_or_insert_default().said.sni = Some(name);
    }

    /// Lists it, until it is written down, as one that a trusted proxy has sent for `client`, if it tells for whom. `nearest`: the client, or
    /// the proxy that does not tell it.
    #[cold]
    pub fn list(&mut self, nearest: IpAddr, client: Option<IpAddr>) {
        let listed = client.and_then(|client| self.ctx.blocked.list(client));
        self.seldom.get_or_insert_default().listed = Some((nearest, listed));
    }

    /// The client for whom a trusted proxy has sent it, or the proxy that does not tell it.
    #[must_use]
    pub fn nearest(&self) -> Option<IpAddr> {
        self.seldom.as_ref()?.listed.as_ref().map(|(nearest, _)| *nearest)
    }

    /// Notes how it ended.
    #[inline]
    pub fn settle(&mut self, cause: Cause) {
        self.record.cause = cause;
        self.ending = if cause == Cause::Done { Ending::Done } else { Ending::Otherwise };
    }

    /// Of an end that is not [`Cause::Done`], so that those that are pay nothing for it.
    #[cold]
    fn note_otherwise(&mut self) {
        if self.ending == Ending::Open {
            // Nobody said how it ended: the task was dropped in the middle.
            self.record.cause = if std::thread::panicking() {
                Cause::Internal
            } else if self.ctx.blocked.cuts_this() {
                Cause::Blocked
            } else {
                Cause::Shutdown
            };
        }
        self.ctx.cells.ends.note(self.record);
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        if self.ending != Ending::Done {
            self.note_otherwise();
        }
        if let Some(moved) = self.moved {
            self.record.bytes_in += moved.up.get();
            self.record.bytes_out += moved.down.get();
        }
        if self.record.done == Tick::ZERO {
            self.record.done = now();
        }
        self.ctx.cells.record(self.record);
        self.ctx.keep(self.record, self.head, self.route);
        if let Some(log) = self.ctx.log.borrow_mut().as_mut() {
            let said = self.seldom.as_ref().map(|seldom| &seldom.said);
            let asked = (self.head, self.route, said);
            self.ctx.with_names(|names| log.write(self.record, asked, names, self.ctx.wall()));
        }
    }
}
