//! What caches and compression have done.

use super::clients::one;
use super::family::Family;
use crate::telemetry::exposition::Labels;

pub(super) const FAMILIES: &[Family] = &[
    Family::counter(
        "evenkeel_cache_requests_total",
        &["outcome"],
        "Requests of routes with a cache, by what that has done for them.",
        |sources, _, out| {
            for (kind, count) in sources.overall.cache.kinds() {
                out.count(&Labels::of(&[("outcome", kind)]), count);
            }
            None
        },
    ),
    Family::counter(
        "evenkeel_cache_uncacheable_total",
        &["reason"],
        "Why those that are uncacheable are so. Reasons that were met only.",
        |sources, _, out| {
            for (reason, count) in sources.overall.cache.reasons() {
                out.count(&Labels::of(&[("reason", reason)]), count);
            }
            None
        },
    ),
    Family::gauge(
        "evenkeel_cache_bytes",
        &[],
        "Bytes that the store of answers holds.",
        |sources, _, out| one(out, sources.snapshot.store.bytes()),
    ),
    Family::gauge(
        "evenkeel_cache_limit_bytes",
        &[],
        "Bytes that the store of answers may hold.",
        |sources, _, out| one(out, sources.snapshot.store.memory()),
    ),
    Family::counter("evenkeel_cache_purges_total", &[], "Purges of stored answers.", |sources, _, out| {
        one(out, sources.snapshot.store.purges())
    }),
    Family::counter(
        "evenkeel_cache_compressed_total",
        &[],
        "Stored answers that were compressed to be kept so, each once in each coding.",
        |sources, _, out| one(out, sources.overall.cache.compressed),
    ),
];
