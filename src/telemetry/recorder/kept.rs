//! A request that is kept: before it is written down, and when it is read.

use super::kept_for::KeptFor;
use crate::message::{Head, Record, TraceContext};
use crate::telemetry::access_log::{Names, RouteName};

/// What a kept request was about.
#[derive(Clone, Copy)]
pub struct KeptSubject<'a> {
    /// What its client asked; `None`: nothing was read of it.
    pub head: Option<&'a Head>,
    /// Its route, where there are several.
    pub route: Option<&'a RouteName>,
    /// What the numbers of its Record are called.
    pub names: &'a Names,
    /// The how manieth config was in force at its end.
    pub config: u64,
    /// Its place in its trace; `None`: nothing is traced.
    pub trace: Option<TraceContext>,
}

/// A request that was kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptRequest {
    /// Why.
    pub kept_for: KeptFor,
    /// The how manieth config of the process was in force at its end.
    pub config: u64,
    /// What happened. Its numbers of listener, target and backends mean nothing any more.
    pub record: Record,
    /// The names of its attempts' backends.
    pub backends: Vec<String>,
    /// Where it came in.
    pub listener: String,
    /// Where it was routed; empty: nowhere.
    pub target: String,
    /// Its place in its trace; `None`: nothing was traced.
    pub trace: Option<TraceContext>,
    /// Its route; empty: it had none, or its listener has one only.
    pub route: String,
    /// Its method, as its client wrote it; empty: nothing was read of it.
    pub method: Vec<u8>,
    /// Its host, in the same way.
    pub host: Vec<u8>,
    /// Its path and the names of its query.
    pub path: Vec<u8>,
    /// Header lines that may be shown.
    pub headers: Vec<(String, Vec<u8>)>,
}
