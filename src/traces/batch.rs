//! Spans that are sent together, in the form in which they are: OTLP over HTTP, protobuf in gzip.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Bytes;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint, message};

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

/// Spans that wait to be sent together, as they are sent: the length of each message stands before it, so one that is made anew with all
/// that is around it is measured once for each level.
#[derive(Debug, Default)]
pub(super) struct Collected {
    message: Vec<u8>,
    spans: usize,
    traces: u64,
}

impl Collected {
    /// Adds those of a request.
    pub(super) fn add(&mut self, spans: &[Span]) {
        self.traces += u64::from(!spans.is_empty());
        self.spans += spans.len();
        spans.iter().for_each(|span| message::encode(SPANS, span, &mut self.message));
    }

    /// Lets all of them go, and tells of how many requests they were.
    pub(super) fn clear(&mut self) -> u64 {
        std::mem::take(self).traces
    }

    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.spans
    }

    /// All of them as they are sent; `None`: there are none.
    pub(super) fn batch(&mut self, sender: &SpanSender) -> Option<SpanBatch> {
        let Collected { message, spans, traces } = std::mem::take(self);
        if spans == 0 {
            return None;
        }
        let version = env!("CARGO_PKG_VERSION");
        let mut attributes = vec![text("service.name", &sender.service), text("service.version", version)];
        attributes.extend(sender.node.as_ref().map(|node| text("service.instance.id", node)));
        let scope = InstrumentationScope {
            name: "evenkeel".to_owned(),
            version: version.to_owned(),
            ..InstrumentationScope::default()
        };
        let scope = ScopeSpans { scope: Some(scope), ..ScopeSpans::default() }.encode_to_vec();
        let resource = Some(Resource { attributes, ..Resource::default() });
        let mut front = ResourceSpans { resource, ..ResourceSpans::default() }.encode_to_vec();
        opening(SCOPE_SPANS, scope.len() + message.len(), &mut front);
        front.extend_from_slice(&scope);
        let mut start = Vec::new();
        opening(RESOURCE_SPANS, front.len() + message.len(), &mut start);
        let mut packed = GzEncoder::new(Vec::with_capacity(message.len() / 4), Compression::fast());
        // Memory takes everything.
        let packed = [start, front, message]
            .iter()
            .try_for_each(|part| packed.write_all(part))
            .and_then(|()| packed.finish())
            .unwrap_or_default();
        Some(SpanBatch { body: packed.into(), spans: spans as u64, traces })
    }
}

/// Numbers of fields: of the spans in `ScopeSpans`, of that in `ResourceSpans`, of that in `ExportTraceServiceRequest`.
const SPANS: u32 = 2;
const SCOPE_SPANS: u32 = 2;
const RESOURCE_SPANS: u32 = 1;

/// What stands before a message of so many bytes in another one.
fn opening(field: u32, length: usize, out: &mut Vec<u8>) {
    encode_key(field, WireType::LengthDelimited, out);
    encode_varint(length as u64, out);
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;

    use super::*;

    #[test]
    fn what_was_put_together_reads_as_one_message() {
        let sender = SpanSender { service: "edge".into(), node: Some("n1".into()) };
        let mut collected = Collected::default();
        assert!(collected.batch(&sender).is_none());
        let spans = ["a", "b", "c"].map(|name| Span { name: name.repeat(99), ..Span::default() });
        collected.add(&spans[..2]);
        collected.add(&[]);
        collected.add(&spans[2..]);
        let batch = collected.batch(&sender).expect("there are some");
        assert_eq!((batch.spans, batch.traces, collected.len()), (3, 2, 0));
        let mut bytes = Vec::new();
        GzDecoder::new(&*batch.body).read_to_end(&mut bytes).expect("gzip");
        let read = ExportTraceServiceRequest::decode(&*bytes).expect("it is one");
        let [of_resource] = &*read.resource_spans else { panic!("{read:?}") };
        let attributes = &of_resource.resource.as_ref().expect("it says who sends").attributes;
        assert_eq!(attributes.last(), Some(&text("service.instance.id", "n1")));
        let [of_scope] = &*of_resource.scope_spans else { panic!("{read:?}") };
        assert_eq!(of_scope.scope.as_ref().expect("it says by what").name, "evenkeel");
        assert_eq!(of_scope.spans, spans);
        // Byte for byte what would have been written from the whole.
        assert_eq!(read.encode_to_vec(), bytes);
    }
}
