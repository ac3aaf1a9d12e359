//! A request on a route with a cache.

use crate::cache::store::Object;
use crate::cache::{CacheKey, CacheRequest, CacheStatus, KeyParts, KeyWriter, KnownClient, is_plain};
use crate::message::Head;
use crate::net::wall::wall_start;
use crate::proxy::http::incoming::IncomingRequest;
use crate::proxy::http::routing::way::Way;
use crate::snapshot::{Destination, Route, RouteCache};
use crate::tick::Tick;

use super::sent::SentHead;
use super::serve::Serving;

/// A request on a route with a cache.
#[derive(Clone, Copy)]
pub struct Cacheable<'x, 'a> {
    /// The request.
    pub request: &'x IncomingRequest<'a>,
    /// What its route says.
    pub cache: &'x RouteCache,
    /// Its way.
    pub way: &'x Way<'a>,
    /// Where it leads.
    pub destination: &'a Destination,
    /// It came with TLS, or a trusted proxy says so.
    pub is_https: bool,
    /// Who sent it may speak for its client.
    pub is_trusted: bool,
    /// The host that its client asked for, as a trusted proxy says; empty: none says so.
    pub told_host: &'a [u8],
    /// Whether evenkeel knows who asks.
    pub known: KnownClient,
    /// Its framing announces a body.
    pub has_body: bool,
}

impl<'x, 'a> Cacheable<'x, 'a> {
    /// What a moment is on the wall clock, in seconds.
    pub(super) fn date(now: Tick) -> i64 {
        i64::try_from(wall_start().saturating_add(now.0) / 1_000_000_000).unwrap_or(i64::MAX)
    }

    /// Its head as it came.
    pub(super) fn head(&self) -> &'a Head {
        self.request.head
    }

    /// Makes its key.
    pub(super) fn key<'k>(&self, writer: &'k mut KeyWriter) -> &'k CacheKey {
        let uri = self.way.uri();
        let path = if uri.is_empty() { self.head().path() } else { &uri };
        let parts = KeyParts {
            is_https: self.is_https,
            authority: self.head().authority(),
            told_host: self.told_host,
            path,
            route: self.cache.name.as_bytes(),
            target: self.destination.target.name.as_bytes(),
        };
        writer.write(&parts, self.head(), &self.cache.key_rules)
    }

    /// The same as its backend gets it.
    pub(super) fn sent(&self) -> SentHead<'_> {
        SentHead::new(self.way, self.head())
    }

    /// Whether an object is for this request.
    pub(super) fn fits(&self, object: &Object, sent: &SentHead<'_>) -> bool {
        if object.answer.variant.is_for_all() {
            return true;
        }
        object.answer.variant.fits(sent.head(), &mut self.request.ctx.cache_scratch.values.borrow_mut())
    }

    /// Whether all get what it gets who ask for the same host and path in a [plain](is_plain) way, while the same is stored.
    pub(super) fn is_alike_for_all(&self) -> bool {
        let Route { config, mirror, .. } = self.way.route;
        is_plain(self.head(), self.has_body)
            && !self.is_trusted
            && self.way.is_plain()
            && self.way.route.is_open()
            && self.way.route.only_destination().is_some()
            && self.request.listener.access.is_empty()
            && self.cache.key_rules.headers.is_empty()
            && config.compress.is_none()
            && mirror.is_none()
    }

    /// How it is served now.
    pub(super) fn serving<'s>(
        &'s self,
        request: &'s CacheRequest<'a>,
        status: CacheStatus,
        now: Tick,
    ) -> Serving<'s> {
        Serving { request, status, now, date: Self::date(now), buffers: &self.request.ctx.buffers }
    }
}
