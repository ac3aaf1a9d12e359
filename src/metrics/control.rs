//! The config in force, changes by hand, events, webhooks, logs.

use super::clients::one;
use super::family::Family;
use super::sources::ScrapeSources;
use crate::events::EventKind;
use crate::telemetry::exposition::{Labels, SampleSink};
use crate::telemetry::traces::TraceCounts;
use crate::telemetry::webhooks::WebhookCounts;

pub(super) const FAMILIES: &[Family] = &[
    Family::gauge(
        "evenkeel_config_number",
        &[],
        "The how manieth config of this process is in force, from 1.",
        |sources, _, out| one(out, sources.snapshot.number),
    ),
    Family::gauge(
        "evenkeel_config_last_reload_successful",
        &[],
        "Whether the last attempt to put another config into force has succeeded; 1 before the first.",
        |sources, _, out| {
            let latest = |kind| tally(sources, kind).1;
            one(out, u64::from(latest(EventKind::Reload) >= latest(EventKind::ReloadRefused)))
        },
    ),
    Family::counter(
        "evenkeel_config_reloads_total",
        &["outcome"],
        "Configs that were put into force, and those that were refused.",
        |sources, _, out| {
            for (outcome, kind) in [("taken", EventKind::Reload), ("refused", EventKind::ReloadRefused)] {
                out.count(&Labels::of(&[("outcome", outcome)]), tally(sources, kind).0);
            }
            None
        },
    ),
    Family::gauge(
        "evenkeel_config_on_trial",
        &[],
        "Whether the config in force is on trial.",
        |sources, _, out| one(out, sources.control.on_trial.into()),
    ),
    Family::gauge(
        "evenkeel_snapshots",
        &[],
        "Configs that somebody still uses: 1 once all workers have gone over to the one in force.",
        |sources, _, out| one(out, sources.control.snapshots as u64),
    ),
    Family::gauge(
        "evenkeel_overlay_entries",
        &["state"],
        "Changes by hand: in force, and those that have no effect with the file as it is.",
        |sources, _, out| {
            let (all, aside) = sources.control.by_hand;
            out.count(&Labels::of(&[("state", "in_force")]), all.saturating_sub(aside) as u64);
            out.count(&Labels::of(&[("state", "aside")]), aside as u64);
            None
        },
    ),
    Family::counter(
        "evenkeel_events_total",
        &["kind"],
        "Events that were told, by their kind. Kinds that were met only.",
        |sources, _, out| {
            for (kind, tally) in sources.control.events.iter().filter(|(_, tally)| tally.count > 0) {
                out.count(&Labels::of(&[("kind", kind.name())]), tally.count);
            }
            None
        },
    ),
    Family::counter(
        "evenkeel_events_lost_total",
        &[],
        "Events that never reached standard error.",
        |sources, _, out| one(out, sources.control.events_lost),
    ),
    Family::counter(
        "evenkeel_access_log_dropped_total",
        &[],
        "Records of the access log that never reached their destination.",
        |sources, _, out| one(out, sources.overall.access_dropped + sources.control.records_lost),
    ),
    Family::gauge(
        "evenkeel_webhook_waiting",
        &["webhook", "url"],
        "Messages that wait for a receiver.",
        |sources, _, out| of_webhooks(sources, out, |counts| counts.waiting as u64),
    ),
    Family::counter(
        "evenkeel_webhook_delivered_total",
        &["webhook", "url"],
        "Messages that a receiver has taken.",
        |sources, _, out| of_webhooks(sources, out, |counts| counts.delivered),
    ),
    Family::counter(
        "evenkeel_webhook_failures_total",
        &["webhook", "url"],
        "Attempts to deliver a message that failed.",
        |sources, _, out| of_webhooks(sources, out, |counts| counts.failed),
    ),
    Family::counter(
        "evenkeel_webhook_dropped_total",
        &["webhook", "url"],
        "Messages that are not sent any more.",
        |sources, _, out| of_webhooks(sources, out, |counts| counts.dropped),
    ),
    Family::counter(
        "evenkeel_traces_total",
        &[],
        "Requests whose traces were handed on to be sent.",
        |sources, _, out| one(out, sources.control.traces.taken),
    ),
    Family::counter(
        "evenkeel_trace_spans_sent_total",
        &[],
        "Spans that a collector has taken.",
        |sources, _, out| one(out, sources.control.traces.sent),
    ),
    Family::counter(
        "evenkeel_trace_spans_refused_total",
        &[],
        "Spans that a collector has refused for good out of what it took.",
        |sources, _, out| one(out, sources.control.traces.refused),
    ),
    Family::counter(
        "evenkeel_traces_dropped_total",
        &["reason"],
        "Traces that no collector gets: above the limit of a second, too many at once, or not taken in time.",
        |sources, _, out| {
            let TraceCounts { over_limit, no_room, unsent, .. } = sources.control.traces;
            for (reason, count) in [("limit", over_limit), ("full", no_room), ("unsent", unsent)] {
                out.count(&Labels::of(&[("reason", reason)]), count);
            }
            None
        },
    ),
    Family::counter(
        "evenkeel_statsd_sent_total",
        &[],
        "Datagrams that were sent to statsd, and of which nobody has said that they did not arrive.",
        |sources, _, out| one(out, sources.control.statsd.sent),
    ),
    Family::counter(
        "evenkeel_statsd_dropped_total",
        &[],
        "Datagrams for statsd that were not sent, or did not arrive.",
        |sources, _, out| one(out, sources.control.statsd.dropped),
    ),
    Family::counter(
        "evenkeel_statsd_timings_dropped_total",
        &[],
        "Requests that were drawn for statsd and whose times were not sent, since too many waited.",
        |sources, _, out| one(out, sources.control.timings_dropped),
    ),
];

/// How many there were of a kind, and the number of the latest.
fn tally(sources: &ScrapeSources, kind: EventKind) -> (u64, u64) {
    let found = sources.control.events.iter().find(|(one, _)| *one == kind);
    found.map_or((0, 0), |(_, tally)| (tally.count, tally.latest))
}

/// A webhook has its place in the config beside what is shown of its URL: of two on one host that is the same.
fn of_webhooks(
    sources: &ScrapeSources,
    out: &mut dyn SampleSink,
    which: fn(&WebhookCounts) -> u64,
) -> Option<usize> {
    for (place, counts) in (1..).zip(sources.control.webhooks.iter()) {
        let place: u32 = place;
        let labels = Labels::of(&[("webhook", &place.to_string()), ("url", &counts.url)]);
        out.count(&labels, which(counts));
    }
    None
}
