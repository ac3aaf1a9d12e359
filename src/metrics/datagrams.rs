//! Datagrams, and the flows that they belong to. How many flows there are is among the connections of their listeners.

use super::family::{Family, each};
use super::sources::{ListenerSubject, ScrapeSources};
use crate::config::model::Protocol;
use crate::telemetry::cells::{DatagramDrop, DatagramReading};
use crate::telemetry::exposition::SampleSink;

pub(super) const FAMILIES: &[Family] = &[
    Family::counter(
        "evenkeel_udp_datagrams_total",
        &["listener", "direction"],
        "Datagrams that clients have sent (`received`), that were passed on to backends (`passed`), and that were sent to clients (`sent`).",
        |sources, from, out| {
            of_each(sources, from, out, |out, one, read| {
                for (direction, count) in
                    [("received", read.received), ("passed", read.passed), ("sent", read.sent)]
                {
                    out.count_of(&one.labels, ("direction", direction), count);
                }
            })
        },
    ),
    Family::counter(
        "evenkeel_udp_dropped_total",
        &["listener", "reason"],
        "Datagrams that were dropped, in either direction.",
        |sources, from, out| {
            of_each(sources, from, out, |out, one, read| {
                for why in DatagramDrop::ALL {
                    out.count_of(&one.labels, ("reason", why.as_str()), read.dropped(*why));
                }
            })
        },
    ),
    Family::counter(
        "evenkeel_udp_evicted_total",
        &["listener"],
        "Flows that have made way for others because there was no room.",
        |sources, from, out| {
            of_each(sources, from, out, |out, one, read| out.count(&one.labels, read.evicted))
        },
    ),
];

fn of_each(
    sources: &ScrapeSources,
    from: usize,
    out: &mut dyn SampleSink,
    tell: impl Fn(&mut dyn SampleSink, &ListenerSubject, &DatagramReading),
) -> Option<usize> {
    each(&sources.listeners, from, out, |out, one| {
        if one.listener.config.protocol == Protocol::Udp {
            tell(out, one, &sources.sums.datagrams(one.listener.id));
        }
    })
}
