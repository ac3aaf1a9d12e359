//! Who was not let in: by access lists, rate limits, at run time.

use super::clients::one;
use super::family::{Family, each};
use super::sources::ScrapeSources;
use crate::snapshot::RateState;
use crate::telemetry::cells::RateReading;
use crate::telemetry::exposition::{Labels, SampleSink};

pub(super) const FAMILIES: &[Family] = &[
    Family::counter(
        "evenkeel_access_refused_total",
        &["list"],
        "Requests and connections that an access list with a name did not let in.",
        |sources, from, out| {
            each(&sources.lists, from, out, |out, (labels, refused)| out.count(labels, *refused))
        },
    ),
    Family::gauge(
        "evenkeel_blocked_networks",
        &[],
        "Networks that are kept out at run time.",
        |sources, _, out| one(out, sources.control.blocked as u64),
    ),
    Family::counter(
        "evenkeel_rate_limit_requests_total",
        &["limit", "outcome"],
        "Requests, and connections of TCP, that a rate limit has let through, refused, or would have refused.",
        limits,
    ),
    Family::counter(
        "evenkeel_rate_limit_crowded_total",
        &["limit"],
        "Those for whose key there was no place, so that all of them shared one bucket.",
        |sources, _, out| {
            for (limit, state) in sources.snapshot.rates.by_name() {
                out.count(&Labels::of(&[("limit", &limit.name)]), state.buckets.crowded());
            }
            None
        },
    ),
];

fn limits(sources: &ScrapeSources, _: usize, out: &mut dyn SampleSink) -> Option<usize> {
    let reading = |state: &RateState| sources.overall.rate(state.number());
    for (limit, state) in sources.snapshot.rates.by_name() {
        let labels = Labels::of(&[("limit", &limit.name)]);
        let RateReading { admitted, refused, would_refuse } = reading(state);
        out.count_of(&labels, ("outcome", "admitted"), admitted);
        out.count_of(&labels, ("outcome", "refused"), refused);
        out.count_of(&labels, ("outcome", "would_refuse"), would_refuse);
    }
    None
}
