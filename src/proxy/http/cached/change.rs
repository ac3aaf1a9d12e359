//! What changes things makes what is stored of them invalid (RFC 9111 §4.4).

use crate::cache::{invalidated, invalidates, url_key};
use crate::message::Head;
use crate::proxy::http::hash_key::Sender;
use crate::proxy::http::incoming::{IncomingRequest, says_https};
use crate::proxy::http::routing::way::Way;

/// Takes out what an answer to this request makes invalid, of all routes.
#[cold]
#[inline(never)]
pub fn invalidate(
    request: &IncomingRequest<'_>,
    (is_secured, sender): (bool, &Sender),
    way: &Way<'_>,
    answer: &Head,
) {
    let &IncomingRequest { ctx, head, .. } = request;
    if !ctx.with_cache_queries(|queries| !queries.is_empty()) || !invalidates(head.method(), answer.status) {
        return;
    }
    let (authority, uri) = (head.authority(), way.uri());
    let uri = if uri.is_empty() { head.path() } else { &uri };
    let is_https = is_secured || sender.trusted && says_https(head);
    let purge = |path: &[u8]| {
        ctx.with_cache_queries(|queries| {
            for query in queries {
                ctx.store.purge_url(&url_key(is_https, authority, path, query));
            }
        });
    };
    purge(uri);
    invalidated(is_https, authority, uri, answer).for_each(|path| purge(&path));
}
