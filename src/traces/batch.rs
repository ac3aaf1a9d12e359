//! Spans that are sent together, in the form in which they are: OTLP over HTTP, protobuf in gzip.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;

use super::spans::text;

/// Spans from which on a batch is sent when nothing else waits.
pub(super) const FULL: usize = 512;
/// Spans that a batch has at most, where they come faster than they are taken.
pub(super) const MOST: usize = 4096;

/// Who sends.
#[derive(Clone, Debug)]
pub(super) struct SpanSender {
    /// `service.name`.
    pub(super) service: String,
    /// `service.instance.id`.
    pub(super) node: Option<String>,
}

/// Spans that are on their way.
#[derive(Clone, Debug)]
pub(super) struct SpanBatch {
    /// What is sent.
    pub(super) body: Bytes,
    /// How many spans that are.
    pub(super) spans: u64,
    /// And of how many requests.
    pub(super) traces: u64,
}

/// Spans that wait to be sent together.
#[derive(Debug, Default)]
pub(super) struct Collected {
    spans: Vec<Span>,
    traces: u64,
}

impl Collected {
    /// Adds those of a request.
    pub(super) fn add(&mut self, spans: Vec<Span>) {
        self.traces += u64::from(!spans.is_empty());
        self.spans.extend(spans);
    }

    /// Lets all of them go, and tells of how many requests they were.
    pub(super) fn clear(&mut self) -> u64 {
        std::mem::take(self).traces
    }

    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// All of them as they are sent; `None`: there are none.
    pub(super) fn batch(&mut self, sender: &SpanSender) -> Option<SpanBatch> {
        let Collected { spans, traces } = std::mem::take(self);
        if spans.is_empty() {
            return None;
        }
        let count = spans.len() as u64;
        let version = env!("CARGO_PKG_VERSION");
        let mut attributes = vec![text("service.name", &sender.service), text("service.version", version)];
        attributes.extend(sender.node.as_ref().map(|node| text("service.instance.id", node)));
        let scope = InstrumentationScope {
            name: "evenkeel".to_owned(),
            version: version.to_owned(),
            ..InstrumentationScope::default()
        };
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }];
        let resource = Some(Resource { attributes, ..Resource::default() });
        let resource_spans = vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }];
        let message = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        let mut packed = GzEncoder::new(Vec::with_capacity(message.len() / 4), Compression::fast());
        // Memory takes everything.
        let packed = packed.write_all(&message).and_then(|()| packed.finish()).unwrap_or_default();
        Some(SpanBatch { body: packed.into(), spans: count, traces })
    }
}
