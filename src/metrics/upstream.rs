//! Targets and backends. A backend has at most eleven series.

use std::sync::atomic::Ordering;

use super::clients::one;
use super::family::{Family, each};
use super::sources::{NO_TARGET, ScrapeSources};
use crate::targets::{BackendCondition, ScaleSignal};
use crate::telemetry::cells::{BackendReading, StatusClass};
use crate::telemetry::exposition::{Labels, SampleSink};

pub(super) const FAMILIES: &[Family] = &[
    Family::counter(
        "evenkeel_upstream_requests_total",
        &["target", "backend", "class"],
        "Requests, tunnels and TCP connections by the backend of their last attempt and the class of the status that the client got. Classes that were met only.",
        requests,
    ),
    Family::counter(
        "evenkeel_upstream_attempts_total",
        &["target", "backend"],
        "Attempts on a backend.",
        |sources, from, out| of_backends(sources, from, out, |reading| reading.attempts),
    ),
    Family::counter(
        "evenkeel_upstream_failures_total",
        &["target", "backend"],
        "Attempts that ended in the backend's fault.",
        |sources, from, out| of_backends(sources, from, out, |reading| reading.failures),
    ),
    Family::gauge(
        "evenkeel_backend_state",
        &["target", "backend"],
        "0 unknown, 1 up, 2 draining, 3 down, 4 ejected, 5 its breaker is not closed.",
        |sources, from, out| {
            each(&sources.backends, from, out, |out, one| {
                out.count(&one.labels, one.backend.condition() as u64);
            })
        },
    ),
    Family::gauge(
        "evenkeel_backend_in_flight",
        &["target", "backend"],
        "Attempts that are under way.",
        |sources, from, out| {
            each(&sources.backends, from, out, |out, one| {
                out.count(&one.labels, one.backend.in_flight().into());
            })
        },
    ),
    Family::gauge(
        "evenkeel_backend_idle_connections",
        &["target", "backend"],
        "Connections to a backend that wait for a request.",
        |sources, from, out| {
            each(&sources.backends, from, out, |out, one| {
                out.count(&one.labels, one.backend.idle_connections.load(Ordering::Relaxed).into());
            })
        },
    ),
    Family::gauge(
        "evenkeel_target_backends",
        &["target", "state"],
        "Backends of a target by their state.",
        |sources, from, out| {
            each(&sources.targets, from, out, |out, one| {
                let mut counts = [0; BackendCondition::ALL.len()];
                for backend in &one.target.backends {
                    counts[backend.condition() as usize] += 1;
                }
                for ((name, _), count) in BackendCondition::ALL.into_iter().zip(counts) {
                    out.count_of(&one.labels, ("state", name), count);
                }
            })
        },
    ),
    Family::counter(
        "evenkeel_target_request_body_bytes_total",
        &["target"],
        "Bytes of bodies, tunnels and TCP connections on their way to a target.",
        |sources, from, out| {
            each(&sources.targets, from, out, |out, one| {
                out.count(&one.labels, sources.sums.target(one.target.id).bytes_in);
            })
        },
    ),
    Family::counter(
        "evenkeel_target_response_body_bytes_total",
        &["target"],
        "Bytes of bodies, tunnels and TCP connections on their way to clients.",
        |sources, from, out| {
            each(&sources.targets, from, out, |out, one| {
                out.count(&one.labels, sources.sums.target(one.target.id).bytes_out);
            })
        },
    ),
    Family::counter(
        "evenkeel_errors_total",
        &["target", "cause"],
        "Requests and connections that did not end well, by their cause. Causes that were met only.",
        errors,
    ),
    Family::counter(
        "evenkeel_retries_total",
        &["target"],
        "Attempts after one that had failed.",
        |sources, from, out| {
            each(&sources.targets, from, out, |out, one| {
                out.count(&one.labels, sources.sums.faults(Some(one.target.id)).retries);
            })
        },
    ),
    Family::counter(
        "evenkeel_grpc_calls_total",
        &["target", "status"],
        "Calls of gRPC by what they ended with. Statuses that were met only.",
        |sources, from, out| {
            each(&sources.targets, from, out, |out, one| {
                for (status, count) in sources.sums.calls(one.target.id).statuses() {
                    out.count_of(&one.labels, ("status", status.name()), count);
                }
            })
        },
    ),
    Family::counter(
        "evenkeel_hedges_total",
        &["target"],
        "Attempts beside one that was slow.",
        |sources, from, out| {
            each(&sources.targets, from, out, |out, one| {
                out.count(&one.labels, sources.sums.faults(Some(one.target.id)).hedges);
            })
        },
    ),
    Family::counter(
        "evenkeel_ejections_total",
        &["target"],
        "How often a backend was left out because it could not be connected to, or did worse than its siblings.",
        |sources, from, out| {
            each(&sources.targets, from, out, |out, one| {
                out.count(&one.labels, one.target.state.tally().ejections());
            })
        },
    ),
    Family::counter(
        "evenkeel_breaker_opened_total",
        &["target"],
        "How often the breaker of a backend has opened.",
        |sources, from, out| {
            each(&sources.targets, from, out, |out, one| {
                out.count(&one.labels, one.target.state.tally().trips());
            })
        },
    ),
    Family::counter(
        "evenkeel_probes_total",
        &["target", "result"],
        "Probes of backends.",
        |sources, from, out| {
            each(&sources.targets, from, out, |out, one| {
                let (good, bad) = one.target.state.tally().probes();
                out.count_of(&one.labels, ("result", "good"), good);
                out.count_of(&one.labels, ("result", "bad"), bad);
            })
        },
    ),
    Family::gauge(
        "evenkeel_queue_length",
        &["target"],
        "Requests that wait for a backend with room.",
        |sources, from, out| {
            each(&sources.targets, from, out, |out, one| out.count(&one.labels, one.target.waiting() as u64))
        },
    ),
    Family::gauge(
        "evenkeel_target_max_in_flight",
        &["target"],
        "Attempts that one backend may have under way; targets with such a limit only.",
        |sources, from, out| {
            each(&sources.targets, from, out, |out, one| {
                if let Some(limit) = one.target.limit() {
                    out.count(&one.labels, limit.into());
                }
            })
        },
    ),
    Family::gauge(
        "evenkeel_scale_signal",
        &["target", "direction"],
        "1: the target needs more backends (out), or would do with fewer (in).",
        |sources, from, out| {
            each(&sources.targets, from, out, |out, one| {
                let signal = one.target.scale_signal();
                for way in [ScaleSignal::Out, ScaleSignal::In] {
                    let word = way.word().unwrap_or_default();
                    out.count_of(&one.labels, ("direction", word), (signal == way).into());
                }
            })
        },
    ),
    Family::counter(
        "evenkeel_mirror_copies_total",
        &["target", "outcome"],
        "Copies of requests for a target, and what became of them; targets that were to get some only.",
        copies,
    ),
    Family::counter(
        "evenkeel_pool_reused_total",
        &[],
        "Requests that were sent on a connection to a backend that was there.",
        |sources, _, out| one(out, sources.overall.pool.reused),
    ),
    Family::counter(
        "evenkeel_pool_opened_total",
        &[],
        "Connections to backends that were opened.",
        |sources, _, out| one(out, sources.overall.pool.opened),
    ),
    Family::counter(
        "evenkeel_pool_closed_idle_total",
        &[],
        "Connections to backends that were closed while they waited for a request.",
        |sources, _, out| one(out, sources.overall.pool.closed_idle),
    ),
    Family::counter(
        "evenkeel_pool_stale_total",
        &[],
        "Connections to backends that turned out to be closed when they were to be used.",
        |sources, _, out| one(out, sources.overall.pool.discarded_stale),
    ),
];

fn classes(out: &mut dyn SampleSink, labels: &Labels, reading: &BackendReading) {
    for class in StatusClass::ALL {
        let count = reading.traffic.with(class);
        if count > 0 {
            out.count_of(labels, ("class", class.name()), count);
        }
    }
}

/// Of backends that are there; then, for each target, of those that are gone.
fn requests(sources: &ScrapeSources, from: usize, out: &mut dyn SampleSink) -> Option<usize> {
    let backends = sources.backends.len();
    if from < backends {
        let next = each(&sources.backends, from, out, |out, one| {
            classes(out, &one.labels, &sources.sums.backend(one.backend.id));
        });
        return next.or(Some(backends));
    }
    let next = each(&sources.targets, from - backends, out, |out, one| {
        classes(out, &one.gone, &sources.gone.of_target(one.target.id));
    });
    next.map(|next| backends + next)
}

/// The same of one number of each.
fn of_backends(
    sources: &ScrapeSources,
    from: usize,
    out: &mut dyn SampleSink,
    which: fn(&BackendReading) -> u64,
) -> Option<usize> {
    let backends = sources.backends.len();
    if from < backends {
        let next = each(&sources.backends, from, out, |out, one| {
            out.count(&one.labels, which(&sources.sums.backend(one.backend.id)));
        });
        return next.or(Some(backends));
    }
    let next = each(&sources.targets, from - backends, out, |out, one| {
        let reading = sources.gone.of_target(one.target.id);
        if reading.attempts > 0 {
            out.count(&one.gone, which(&reading));
        }
    });
    next.map(|next| backends + next)
}

/// First of what never got a target.
fn errors(sources: &ScrapeSources, from: usize, out: &mut dyn SampleSink) -> Option<usize> {
    if from == 0 {
        let labels = Labels::of(&[("target", NO_TARGET)]);
        for (cause, count) in sources.sums.faults(None).causes() {
            out.count_of(&labels, ("cause", cause.token()), count);
        }
    }
    each(&sources.targets, from, out, |out, one| {
        for (cause, count) in sources.sums.faults(Some(one.target.id)).causes() {
            out.count_of(&one.labels, ("cause", cause.token()), count);
        }
    })
}

fn copies(sources: &ScrapeSources, from: usize, out: &mut dyn SampleSink) -> Option<usize> {
    each(&sources.targets, from, out, |out, one| {
        let reading = sources.sums.copies(one.target.id);
        if reading.chosen > 0 {
            out.count_of(&one.labels, ("outcome", "chosen"), reading.chosen);
            out.count_of(&one.labels, ("outcome", "answered"), reading.answered());
            out.count_of(&one.labels, ("outcome", "failed"), reading.ended() - reading.answered());
        }
    })
}
