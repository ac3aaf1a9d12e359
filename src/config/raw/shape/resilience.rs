//! The keys of a target for bad times.

use crate::config::raw::bounds::{
    ATTEMPTS_MAX, COUNT_MAX, DAY, FAILURES, HOUR, IN_FLIGHT_MAX, MILLISECOND, MINUTE, PERCENTILE, SECOND,
    SLOWER,
};
use crate::config::raw::kind::Kind::{
    ChoiceOrWhole, OneOrItems, OrOff, PercentOrWhole, Time, TimeOrZero, Whole, WholeOr,
};
use crate::config::raw::kind::{self, STATUSES, Shape, key, names};
use crate::config::raw::vocabulary::spoken::Condition;

const FAILED: (u32, u32) = (*FAILURES.start() as u32, *FAILURES.end() as u32);

/// A target's `breaker`.
pub(in crate::config::raw) const BREAKER: Shape = Shape {
    title: "in `breaker`",
    path: "targets.<name>.breaker.",
    needs: &[],
    keys: &[
        key("failures", Whole(1, COUNT_MAX), "Attempts that fail one after the other until it opens.")
            .or("20"),
        key("open", Time(MILLISECOND, HOUR), "For how long it is open before one attempt finds out.")
            .or("5s"),
        key(
            "statuses",
            OneOrItems(&WholeOr(FAILED.0, FAILED.1, STATUSES)),
            "Statuses of answers that count as failures. For `http` only.",
        ),
    ],
};

/// A target's `outlier`.
pub(in crate::config::raw) const OUTLIER: Shape = Shape {
    title: "in `outlier`",
    path: "targets.<name>.outlier.",
    needs: &[],
    keys: &[
        key("failures", OrOff(&Whole(1, 255)), "Errors one after the other.").or("5"),
        key("error_rate", OrOff(&PercentOrWhole(1, 100)), "Errors beyond what is usual among the others.")
            .or("20%"),
        key("latency", OrOff(&Whole(SLOWER.0, SLOWER.1)), "How many times as slow as the others.").or("5"),
        key("window", Time(SECOND, HOUR), "What error rate and latency are taken over.").or("10s"),
        key("requests", Whole(1, IN_FLIGHT_MAX), "Attempts in the window without which both say nothing.")
            .or("50"),
        key("ejection", Time(MILLISECOND, HOUR), "How long a backend is left out at first.").or("1s"),
        key("ejection_max", Time(MILLISECOND, DAY), "How long at most.").or("30s"),
        key("max_ejected", PercentOrWhole(1, 100), "How many backends are left out at once, at most.")
            .or("50%"),
    ],
};

/// A target's `retries`.
pub(in crate::config::raw) const RETRIES: Shape = Shape {
    title: "in `retries`",
    path: "targets.<name>.retries.",
    needs: &[],
    keys: &[
        key("attempts", Whole(1, ATTEMPTS_MAX), "Attempts of a request, the first one included.").or("3"),
        key(
            "on",
            OneOrItems(&ChoiceOrWhole(|| names(Condition::NAMED), FAILED.0, FAILED.1, STATUSES)),
            "What an attempt is repeated for. For `tcp` only `connect`.",
        )
        .or("[connect, reset, 503]"),
        key("budget", PercentOrWhole(0, 100), "Retries in percent of requests. For `http` only.").or("20%"),
        key("backoff", OrOff(&TimeOrZero(MINUTE)), "The pause before a retry. For `http` only.").or("25ms"),
    ],
};

/// A target's `hedging`.
pub(in crate::config::raw) const HEDGING: Shape = Shape {
    title: "in `hedging`",
    path: "targets.<name>.hedging.",
    needs: &[],
    keys: &[
        key(
            "percentile",
            WholeOr(PERCENTILE.0, PERCENTILE.1, kind::PERCENTILE),
            "The share of answers, in percent, that come sooner than an attempt that gets a competitor.",
        )
        .or("95"),
        key("budget", PercentOrWhole(1, 100), "Competitors in percent of requests.").or("5%"),
    ],
};

/// A target's `queue`.
pub(in crate::config::raw) const QUEUE: Shape = Shape {
    title: "in `queue`",
    path: "targets.<name>.queue.",
    needs: &[],
    keys: &[
        key("size", Whole(1, IN_FLIGHT_MAX), "Requests that wait; the next one gets 503.").or("1024"),
        key("timeout", Time(MILLISECOND, HOUR), "How long one waits; the same as `timeouts.queue`.").or("5s"),
    ],
};
