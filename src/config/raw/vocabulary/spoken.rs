//! Values that have names of their own: what `protocol`, `max_in_flight` and `retries.on` say.

use std::ops::RangeInclusive;

use crate::config::model::{GrpcStatus, Protocol};

/// What the `format` of a webhook says: there is one.
pub(in crate::config) const MESSAGE_FORMATS: &[(&str, ())] = &[("json", ())];

/// What `protocol` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct Spoken {
    pub(in crate::config) protocol: Protocol,
    /// Over TLS: `https`. A TCP target is secured by having `tls`.
    pub(in crate::config) is_https: bool,
}

impl Spoken {
    pub(in crate::config) const HTTP: Spoken = Spoken { protocol: Protocol::Http, is_https: false };
    pub(in crate::config) const TCP: Spoken = Spoken { protocol: Protocol::Tcp, is_https: false };
    pub(in crate::config) const UDP: Spoken = Spoken { protocol: Protocol::Udp, is_https: false };
    /// Everything with the name it has in a config file.
    pub(in crate::config) const ALL: &'static [(&'static str, Spoken)] = &[
        ("tcp", Spoken::TCP),
        ("udp", Spoken::UDP),
        ("http", Spoken::HTTP),
        ("https", Spoken { is_https: true, ..Spoken::HTTP }),
    ];
}

/// `max_in_flight` when it is not `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum InFlight {
    /// So many.
    Number(u32),
    /// What is found out.
    Adaptive,
}

impl InFlight {
    /// Those that have a name, with the name.
    pub(in crate::config) const NAMED: &'static [(&'static str, InFlight)] =
        &[("adaptive", InFlight::Adaptive)];
}

/// What an attempt is repeated for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) enum Condition {
    /// No connection could be made.
    Connect,
    /// The connection broke before a byte of the answer.
    Reset,
    /// The first byte, or the whole head, took too long.
    Timeout,
    /// The answer has one of these statuses.
    Statuses(RangeInclusive<u16>),
    /// A call of gRPC has ended with this before it has begun to answer.
    Grpc(GrpcStatus),
}

impl Condition {
    /// Those that have a name, with the name.
    pub(in crate::config) const NAMED: &'static [(&'static str, Condition)] = &[
        ("connect", Condition::Connect),
        ("reset", Condition::Reset),
        ("timeout", Condition::Timeout),
        ("cancelled", Condition::Grpc(GrpcStatus::Cancelled)),
        ("unknown", Condition::Grpc(GrpcStatus::Unknown)),
        ("deadline_exceeded", Condition::Grpc(GrpcStatus::DeadlineExceeded)),
        ("resource_exhausted", Condition::Grpc(GrpcStatus::ResourceExhausted)),
        ("aborted", Condition::Grpc(GrpcStatus::Aborted)),
        ("internal", Condition::Grpc(GrpcStatus::Internal)),
        ("unavailable", Condition::Grpc(GrpcStatus::Unavailable)),
        ("data_loss", Condition::Grpc(GrpcStatus::DataLoss)),
    ];

    /// The name of a named one.
    pub(in crate::config) fn name(&self) -> Option<&'static str> {
        Condition::NAMED.iter().find(|(_, named)| named == self).map(|(name, _)| *name)
    }
}
