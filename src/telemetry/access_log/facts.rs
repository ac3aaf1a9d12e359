//! What a line can say about one record, field by field.
//!
//! Nothing is looked up before a line asks for it: a form without Referer never searches a head for one.

use std::rc::Rc;

use crate::config::model::template::{DerivedField, LogField, Slot};
use crate::config::model::{ProxyFact, Share};
use crate::message::proxy_header::ProxyHeader;
use crate::message::{
    Attempt, CacheNote, Cause, Head, HeaderField, Record, RecordKind, TraceParent, Tracing, Version,
};
use crate::telemetry::cells::{connect_time, first_byte_time, span};
use crate::tick::Tick;

use super::batch::{Left, LineSpace, put};
use super::names::{Names, RouteName};
use super::value::{Clock, LogValue, write_ip};
use super::{digits, escape};

/// What is told of few requests.
#[derive(Debug, Default)]
pub struct SeldomSaid {
    /// Who the client has shown to be.
    pub user: Option<Box<str>>,
    /// What a balancer in front has told of its connection.
    pub told: Option<Rc<ProxyHeader>>,
    /// The host name that the client of a connection without requests has asked for under TLS.
    pub sni: Option<Box<str>>,
}

/// A record with what stands beside it.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    /// What happened.
    pub(super) record: &'a Record,
    /// `None`: a TCP connection, or a request of which nothing was read.
    pub(super) head: Option<&'a Head>,
    /// What its numbers are called.
    pub(super) names: &'a Names,
    /// The attempt that counts.
    pub(super) last: Option<&'a Attempt>,
    /// When the request began.
    pub(super) start: Tick,
    /// The name of the request's route, where its listener has more than one that takes everything.
    pub(super) route: Option<&'a RouteName>,
    /// What is told of few.
    pub(super) said: Option<&'a SeldomSaid>,
    /// The share of records like this one that is logged.
    share: Share,
}

impl<'a> Facts<'a> {
    /// The facts about `record`. A TCP connection has no head, nor has a flow, whatever is passed.
    pub(super) fn new(
        record: &'a Record,
        head: Option<&'a Head>,
        names: &'a Names,
        share: Share,
    ) -> Facts<'a> {
        Facts {
            record,
            head: head.filter(|_| record.kind.is_of_http()),
            names,
            last: record.kept_attempts().last(),
            start: if record.started == Tick::ZERO { record.accepted } else { record.started },
            route: None,
            said: None,
            share,
        }
    }

    /// The same of a request on this route.
    #[inline(always)]
    pub(super) fn on(self, route: Option<&'a RouteName>) -> Facts<'a> {
        Facts { route, ..self }
    }

    /// The same of one of which this is told.
    #[inline(always)]
    pub(super) fn with(self, said: Option<&'a SeldomSaid>) -> Facts<'a> {
        Facts { said, ..self }
    }

    /// What a balancer in front has told.
    #[cold]
    fn told(&self, fact: ProxyFact) -> LogValue<'a> {
        let told = self.said.and_then(|said| said.told.as_deref());
        LogValue::free(told.and_then(|told| told.told.fact(fact)).unwrap_or_default())
    }

    /// The value of a field. A new field is one line here and one in [`LogField`].
    ///
    /// Where the field is a constant this comes down to the one line.
    #[inline(always)]
    pub(super) fn value(&self, field: LogField) -> LogValue<'a> {
        let Facts { record, names, last, .. } = *self;
        match field {
            LogField::Time => LogValue::Time(self.start),
            LogField::Kind => LogValue::Token(kind_word(record.kind)),
            LogField::Client => LogValue::or_absent(record.client.as_ref(), LogValue::Client),
            LogField::Listener => LogValue::Name(record.listener.0.into(), names.listener(record.listener)),
            LogField::Target => {
                LogValue::or_absent(record.target, |id| LogValue::Name(id.0.into(), names.target(id)))
            }
            LogField::Backend => {
                LogValue::or_absent(last, |last| LogValue::Name(last.backend.0, names.backend(last.backend)))
            }
            LogField::Method => LogValue::word(self.of_head(Head::method)),
            LogField::Path => LogValue::word(self.of_head(Head::path)),
            LogField::Host => LogValue::word(self.of_head(Head::authority)),
            LogField::Status => LogValue::or_absent(self.sent(), LogValue::Number),
            LogField::Cause => LogValue::or_absent(self.cause(), |cause| LogValue::Token(cause.token())),
            LogField::BytesIn => LogValue::Number(record.bytes_in),
            LogField::BytesOut => LogValue::Number(record.bytes_out),
            LogField::Duration => LogValue::or_absent(span(self.start, record.done), LogValue::Millis),
            LogField::Connect => LogValue::or_absent(last.and_then(connect_time), LogValue::Millis),
            LogField::FirstByte => LogValue::or_absent(last.and_then(first_byte_time), LogValue::Millis),
            LogField::Attempts => LogValue::Number(record.attempts_made.into()),
            LogField::EarlierCauses => LogValue::or_absent(self.earlier(), LogValue::Causes),
            LogField::Reused => LogValue::or_absent(last, |last| LogValue::Flag(last.reused)),
            LogField::Tls => LogValue::or_absent(record.tls, |tls| LogValue::Token(tls.version())),
            LogField::TlsResumed => LogValue::or_absent(record.tls, |tls| LogValue::Flag(tls.resumed)),
            LogField::Handshake => {
                let handshake = record.tls.and_then(|_| span(record.accepted, record.secured));
                LogValue::or_absent(handshake, LogValue::Millis)
            }
            LogField::Id => LogValue::or_absent(Some(record.id).filter(|&id| id != 0), LogValue::Id),
            LogField::UserAgent => LogValue::free(self.header(HeaderField::UserAgent)),
            LogField::Referer => LogValue::free(self.header(HeaderField::Referer)),
            LogField::Route => LogValue::word(self.route.map_or("", RouteName::text).as_bytes()),
            LogField::User => {
                LogValue::word(self.said.and_then(|said| said.user.as_deref()).unwrap_or_default().as_bytes())
            }
            LogField::TlsSni => {
                LogValue::word(self.said.and_then(|said| said.sni.as_deref()).unwrap_or_default().as_bytes())
            }
            LogField::ProxyAlpn => self.told(ProxyFact::Alpn),
            LogField::ProxyAuthority => self.told(ProxyFact::Authority),
            LogField::ProxyUniqueId => self.told(ProxyFact::UniqueId),
            LogField::ProxyTls => self.told(ProxyFact::Tls),
            LogField::ProxyClientCn => self.told(ProxyFact::ClientName),
            LogField::Cache => LogValue::or_absent(record.cache, |note| LogValue::Token(note.token())),
            LogField::CacheReason => {
                let reason = record.cache.and_then(CacheNote::reason);
                LogValue::or_absent(reason, |why| LogValue::Token(why.token()))
            }
            LogField::GrpcStatus => LogValue::or_absent(record.grpc, |ended| LogValue::Token(ended.name())),
            LogField::TraceId => LogValue::or_absent(self.trace(), LogValue::Id),
            LogField::SampleRate => LogValue::Share(self.share),
        }
    }

    /// The value of the first header of this name.
    pub(super) fn named(&self, name: &str) -> LogValue<'a> {
        LogValue::free(self.head.and_then(|head| head.named(name)).unwrap_or_default())
    }

    /// Writes a field in another form.
    pub(super) fn write_derived<'r>(
        &self,
        room: LineSpace<'r>,
        field: DerivedField,
        slot: Slot,
        clock: &mut Clock<'_>,
    ) -> Left<'r> {
        let client = self.record.client.as_ref();
        match field {
            DerivedField::TimeCommon => put(room, clock.0.common(clock.1, self.start)),
            DerivedField::ClientIp => match client {
                Some(client) => write_ip(room, client),
                None => put(room, b"-"),
            },
            DerivedField::ClientPort => match client {
                Some(client) => digits::write(room, client.port.into()),
                None => put(room, b"-"),
            },
            DerivedField::Request => self.write_request(room, Head::target, slot, true),
            DerivedField::MethodPath => self.write_request(room, Head::path, slot, false),
            DerivedField::Code => {
                digits::write(room, self.sent().unwrap_or_else(|| self.record.cause.status().into()))
            }
        }
    }

    /// All kept attempts but the last; `None`: there was no other.
    #[inline(always)]
    fn earlier(&self) -> Option<&'a [Attempt]> {
        if self.record.attempts_made < 2 {
            return None;
        }
        self.record.kept_attempts().split_last().map(|(_, earlier)| earlier)
    }

    /// Method, one form of the target, perhaps the version; `-` alone when there is none of them.
    fn write_request<'r>(
        &self,
        room: LineSpace<'r>,
        target: fn(&Head) -> &[u8],
        slot: Slot,
        versioned: bool,
    ) -> Left<'r> {
        let head = self.head.filter(|head| !head.method().is_empty() || !target(head).is_empty());
        let Some(head) = head else { return put(room, b"-") };
        let blank: &[u8] = if slot.keeps_blanks() { b" " } else { b"\\x20" };
        let room = put(escape::write_word(room, head.method(), slot)?, blank)?;
        let room = escape::write_word(room, target(head), slot)?;
        if !versioned {
            return Some(room);
        }
        let version = match head.version {
            Version::Http10 => b"HTTP/1.0",
            Version::Http11 => b"HTTP/1.1",
            Version::Http2 => b"HTTP/2.0",
        };
        put(put(room, blank)?, version)
    }

    /// The trace that it belongs to: its sender's, or else its own.
    #[cold]
    fn trace(&self) -> Option<u128> {
        if self.record.tracing == Tracing::Off { None } else { Some(self.trace_id()) }
    }

    /// The same of a request that is traced.
    pub(super) fn trace_id(&self) -> u128 {
        let parent = match self.head {
            Some(head) if head.has(HeaderField::TraceParent) => TraceParent::of(head),
            _ => None,
        };
        parent.map_or(self.record.id, |parent| parent.trace)
    }

    fn of_head(&self, part: fn(&Head) -> &[u8]) -> &'a [u8] {
        self.head.map_or(&[][..], part)
    }

    fn header(&self, field: HeaderField) -> &'a [u8] {
        self.head.and_then(|head| head.value(field)).unwrap_or_default()
    }

    /// A status that was sent.
    fn sent(&self) -> Option<u64> {
        Some(u64::from(self.record.status)).filter(|&status| status != 0)
    }

    /// A cause other than success.
    fn cause(&self) -> Option<Cause> {
        Some(self.record.cause).filter(|&cause| cause != Cause::Done)
    }
}

/// The word for a kind of record.
const fn kind_word(kind: RecordKind) -> &'static str {
    match kind {
        RecordKind::Http => "http",
        RecordKind::Upgrade => "upgrade",
        RecordKind::Tcp => "tcp",
        RecordKind::Udp => "udp",
    }
}
