//! Where the time of requests goes, by route and by target.

use super::family::{Family, each};
use super::sources::ScrapeSources;
use crate::telemetry::cells::{DurationReading, SpanReading};
use crate::telemetry::exposition::SampleSink;

pub(super) const FAMILIES: &[Family] = &[
    Family::histogram(
        "evenkeel_request_duration_seconds",
        &["listener", "route"],
        "From the first byte of a request for a target to the last one of its answer; tunnels and TCP connections aside.",
        |sources, from, out| of_routes(sources, from, out, |times| times.whole),
    ),
    Family::histogram(
        "evenkeel_request_own_seconds",
        &["listener", "route"],
        "What of it no backend was waited for.",
        |sources, from, out| of_routes(sources, from, out, |times| times.own),
    ),
    Family::histogram(
        "evenkeel_request_backend_seconds",
        &["listener", "route"],
        "From the first pick of a backend to the first byte of an answer, of requests that went to one.",
        |sources, from, out| of_routes(sources, from, out, |times| times.backend),
    ),
    Family::histogram(
        "evenkeel_target_duration_seconds",
        &["target"],
        "From the first byte of a request for a target to the last one of its answer; tunnels and TCP connections aside.",
        |sources, from, out| of_targets(sources, from, out, |times| times.whole),
    ),
    Family::histogram(
        "evenkeel_target_own_seconds",
        &["target"],
        "What of it no backend was waited for.",
        |sources, from, out| of_targets(sources, from, out, |times| times.own),
    ),
    Family::histogram(
        "evenkeel_target_backend_seconds",
        &["target"],
        "From the first pick of a backend to the first byte of an answer, of requests that went to one.",
        |sources, from, out| of_targets(sources, from, out, |times| times.backend),
    ),
];

fn of_routes(
    sources: &ScrapeSources,
    from: usize,
    out: &mut dyn SampleSink,
    which: fn(SpanReading) -> DurationReading,
) -> Option<usize> {
    each(&sources.routes, from, out, |out, one| {
        let mut sum = SpanReading::default();
        one.ids.iter().for_each(|id| sum.merge(&sources.sums.route_times(*id)));
        out.times(&one.labels, &which(sum));
    })
}

fn of_targets(
    sources: &ScrapeSources,
    from: usize,
    out: &mut dyn SampleSink,
    which: fn(SpanReading) -> DurationReading,
) -> Option<usize> {
    each(&sources.targets, from, out, |out, one| {
        let mut sum = sources.gone.times_of_target(one.target.id);
        one.ways.iter().for_each(|id| sum.merge(&sources.sums.route_times(*id)));
        out.times(&one.labels, &which(sum));
    })
}
