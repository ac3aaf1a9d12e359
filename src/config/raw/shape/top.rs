//! The groups of keys at the top level.

use crate::config::model::{LogFormat, StatsdFormat, WebhookEvent};
use crate::config::raw::bounds::{
    DAY, HOUR, IN_FLIGHT_MAX, RATE_MAX, RECORDER as RECORDER_MEMORY, SECOND, STATSD_INTERVAL_MIN,
};
use crate::config::raw::kind::Kind::{
    Choice, ChoiceOr, Group, OneOrItems, OneOrList, OrOff, PercentOrWhole, Size, Text, Time, Whole, WholeOr,
    Word,
};
use crate::config::raw::kind::{
    FILE, LISTENER, PER_SECOND, RECEIVER, SERVICE_NAME, SHARE, STATSD_ADDRESS, Shape, TEMPLATE, TOKEN, key,
    names,
};
use crate::config::raw::vocabulary::spoken::MESSAGE_FORMATS;

/// `metrics`.
pub(in crate::config::raw) const METRICS: Shape = Shape {
    title: "in `metrics`",
    path: "metrics.",
    needs: &[],
    keys: &[
        key(
            "listener",
            OrOff(&WholeOr(0, 65_535, LISTENER)),
            "Where `/metrics`, `/healthz` and `/readyz` are given to everybody: a port on this machine, or `address:port`.",
        )
        .or("off"),
        key("statsd", Group(&STATSD), "Who is sent them, as datagrams of statsd."),
    ],
};

/// `metrics.statsd`.
pub(in crate::config::raw) const STATSD: Shape = Shape {
    title: "in `metrics.statsd`",
    path: "metrics.statsd.",
    needs: &[&["to"]],
    keys: &[
        key("to", Text(STATSD_ADDRESS), "Where to: `udp://host:port`, or `unix:/path` of a datagram socket."),
        key(
            "format",
            Choice(|| names(StatsdFormat::ALL)),
            "How a line looks: with labels in the name, or as tags.",
        )
        .or("statsd"),
        key("interval", Time(STATSD_INTERVAL_MIN, HOUR), "From one time to the next.").or("1s"),
        key("timings", OrOff(&Text(SHARE)), "The share of requests whose times are sent one by one.")
            .or("off"),
    ],
};

/// One of `webhooks`.
pub(in crate::config::raw) const WEBHOOK: Shape = Shape {
    title: "in a webhook",
    path: "webhooks[].",
    needs: &[&["url"]],
    keys: &[
        key(
            "url",
            Text(RECEIVER),
            "Where messages are sent: `https://host/path` or `http://host:port/path`.",
        ),
        key("events", OneOrItems(&Choice(|| names(WebhookEvent::ALL))), "What it is told.")
            .or("[backend_down, backend_up, target_down, target_up]"),
        key("secret_file", Word(FILE), "A file that is the key which messages are signed with."),
        key("format", Choice(|| names(MESSAGE_FORMATS)), "How a message looks.").or("json"),
    ],
};

/// `recorder`.
pub(in crate::config::raw) const RECORDER: Shape = Shape {
    title: "in `recorder`",
    path: "recorder.",
    needs: &[],
    keys: &[
        key("memory", Size(RECORDER_MEMORY.0, RECORDER_MEMORY.1), "Bytes of memory for each worker.")
            .or("4MiB"),
        key("show_headers", OneOrList(&Word(TOKEN)), "Header lines of requests that are kept.")
            .or("[User-Agent, Content-Type]"),
    ],
};

/// `tracing`.
pub(in crate::config::raw) const TRACING: Shape = Shape {
    title: "in `tracing`",
    path: "tracing.",
    needs: &[&["otlp"]],
    keys: &[
        key("otlp", Text(RECEIVER), "Where spans are sent, by OTLP over HTTP: `http://host:4318`."),
        key(
            "sample",
            OrOff(&Text(SHARE)),
            "The share of requests that are traced beside those that failed or were slow.",
        )
        .or("1%"),
        key(
            "headers_file",
            Word(FILE),
            "A file of header lines that are sent along, such as `Authorization: …`.",
        ),
        key("service_name", Word(SERVICE_NAME), "As whom evenkeel traces: `service.name`.").or("evenkeel"),
        key("ca_file", Word(FILE), "Who issues the certificate of `otlp`: a PEM file."),
        key("limit", WholeOr(1, RATE_MAX, PER_SECOND), "Traces in a second at most; the rest are counted.")
            .or("200/s"),
    ],
};

/// `access_log`.
pub(in crate::config::raw) const ACCESS_LOG: Shape = Shape {
    title: "in `access_log`",
    path: "access_log.",
    needs: &[&["path"]],
    keys: &[
        key("path", Text(FILE), "`stdout`, or a file to append to."),
        key(
            "format",
            ChoiceOr(|| names(LogFormat::NAMED), TEMPLATE),
            "How a record looks: a name, or a text with fields such as `{status}`.",
        )
        .or("text"),
        key("sample", Text(SHARE), "The share of records without errors that is kept.").or("100%"),
    ],
};

/// `scale`.
pub(in crate::config::raw) const SCALE: Shape = Shape {
    title: "in `scale`",
    path: "scale.",
    needs: &[],
    keys: &[
        key("out", Group(&SCALE_OUT), "When more backends are wanted."),
        key("in", Group(&SCALE_IN), "When fewer would do, of targets with `max_in_flight`."),
    ],
};

/// `scale.out`.
pub(in crate::config::raw) const SCALE_OUT: Shape = Shape {
    title: "in `scale.out`",
    path: "scale.out.",
    needs: &[],
    keys: &[
        key("queued", Whole(1, IN_FLIGHT_MAX), "While more requests than this wait in the target's queue,")
            .or("100"),
        key("for", Time(SECOND, DAY), "for so long without a break.").or("30s"),
    ],
};

/// `scale.in`.
pub(in crate::config::raw) const SCALE_IN: Shape = Shape {
    title: "in `scale.in`",
    path: "scale.in.",
    needs: &[],
    keys: &[
        key(
            "busy",
            PercentOrWhole(1, 99),
            "While less than this part of what `max_in_flight` lets the backends have is under way,",
        )
        .or("20%"),
        key("for", Time(SECOND, DAY), "for so long without a break.").or("10m"),
    ],
};
