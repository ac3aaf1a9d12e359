//! The process and its workers.

use super::clients::one;
use super::family::Family;
use super::sources::ScrapeSources;
use crate::telemetry::cells::{Cells, DurationReading};
use crate::telemetry::exposition::{Labels, SampleSink};

pub(super) const FAMILIES: &[Family] = &[
    Family::counter(
        "evenkeel_worker_requests_total",
        &["worker"],
        "Requests, tunnels and TCP connections that ended on a worker.",
        |sources, _, out| {
            of_workers(sources, |labels, cells| out.count(labels, cells.ended()));
            None
        },
    ),
    Family::gauge(
        "evenkeel_worker_connections",
        &["worker"],
        "Connections of clients that a worker serves.",
        |sources, _, out| {
            of_workers(sources, |labels, cells| {
                out.count(labels, u64::try_from(cells.connections.open.value()).unwrap_or(0));
            });
            None
        },
    ),
    Family::histogram(
        "evenkeel_worker_lag_seconds",
        &["worker"],
        "How late a worker's event loop was at what it had planned, looked at four times a second.",
        lag,
    ),
    Family::counter("evenkeel_panics_total", &[], "Tasks that ended in a panic: bugs.", |sources, _, out| {
        one(out, sources.overall.panics)
    }),
    Family::gauge(
        "evenkeel_ready",
        &[],
        "Whether the process is to get traffic, as /readyz says.",
        |sources, _, out| one(out, sources.control.is_ready.into()),
    ),
    Family::gauge("evenkeel_build_info", &["version"], "1, with the version of the program.", |_, _, out| {
        out.count(&Labels::of(&[("version", env!("CARGO_PKG_VERSION"))]), 1);
        None
    }),
    Family::gauge(
        "evenkeel_uptime_seconds",
        &[],
        "How long the process has been there.",
        |sources, _, out| {
            out.time(&Labels::none(), sources.control.uptime);
            None
        },
    ),
    Family::counter(
        "process_cpu_seconds_total",
        &[],
        "Time on processors, of all threads.",
        |sources, _, out| {
            out.time(&Labels::none(), sources.system.cpu);
            None
        },
    ),
    Family::gauge(
        "process_start_time_seconds",
        &[],
        "When the process began, in seconds since 1970.",
        |sources, _, out| {
            out.time(&Labels::none(), sources.control.unix.saturating_sub(sources.control.uptime));
            None
        },
    ),
    Family::gauge(
        "process_resident_memory_bytes",
        &[],
        "Memory that is there for the process.",
        |sources, _, out| sources.system.resident.and_then(|bytes| one(out, bytes)),
    ),
    Family::gauge("process_open_fds", &[], "Open descriptors.", |sources, _, out| {
        sources.system.descriptors.and_then(|count| one(out, count))
    }),
    Family::gauge("process_max_fds", &[], "How many descriptors there may be.", |sources, _, out| {
        sources.system.descriptors_most.and_then(|count| one(out, count))
    }),
];

fn of_workers(sources: &ScrapeSources, mut put: impl FnMut(&Labels, &Cells)) {
    for (number, cells) in sources.sums.workers().enumerate() {
        put(&Labels::of(&[("worker", &number.to_string())]), cells);
    }
}

fn lag(sources: &ScrapeSources, _: usize, out: &mut dyn SampleSink) -> Option<usize> {
    of_workers(sources, |labels, cells| {
        let mut reading = DurationReading::default();
        reading.add(&cells.lateness);
        out.times(labels, &reading);
    });
    None
}
