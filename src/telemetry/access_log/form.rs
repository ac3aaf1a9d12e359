//! How records become lines: a config's `format`, made ready once for all workers.

use super::batch::{Left, LineSpace, put};
use super::facts::Facts;
use super::value::Clock;
use super::{json, sample};
use crate::config::model::template::{TemplatePiece, TemplateSource};
use crate::config::model::{LogFormat, Share, Template};
use crate::message::{Record, RecordKind, Tracing};

/// The form `text`.
const TEXT: &str = "{time} {client} {listener} {target} {backend} \"{method_path}\" {status} {cause} host={host} \
                    in={bytes_in} out={bytes_out} ms={duration_ms} connect={connect_ms} first_byte={first_byte_ms} \
                    attempts={attempts} earlier_causes={earlier_causes} reused={reused} kind={kind} tls={tls} id={id} agent=\"{user_agent}\" referer=\"{referer}\"";
/// The same of a TCP connection, which has no request.
const TEXT_TCP: &str = "{time} {client} {listener} {target} {backend} tcp {cause} in={bytes_in} out={bytes_out} \
                        ms={duration_ms} connect={connect_ms} attempts={attempts} earlier_causes={earlier_causes} \
                        tls={tls}";
/// Behind that where it was passed through by the name that its client has asked for.
const TEXT_ASKED: &str = " tls_sni={tls_sni} route={route}";
/// Behind it where there are several routes.
const TEXT_ROUTE: &str = " route={route}";
/// Behind that where the route has a cache.
const TEXT_CACHE: &str = " cache={cache} cache_reason={cache_reason}";
/// Behind that of a call of gRPC.
const TEXT_CALL: &str = " grpc_status={grpc_status}";
/// Behind that where requests are traced.
const TEXT_TRACED: &str = " trace_id={trace_id}";
/// Behind them where sampling is on.
const TEXT_SAMPLED: &str = " sample={sample_rate}";
/// The form `common`: Apache's `%h %l %u %t "%r" %>s %b`, with nginx's 0 for an empty body.
const COMMON: &str = "{client_ip} - {user} [{time_common}] \"{request}\" {code} {bytes_out}";
/// What `combined` has more.
const COMBINED: &str = " \"{referer}\" \"{user_agent}\"";

/// The form of a log and the share of records that it takes.
#[derive(Debug)]
pub(super) struct Form {
    layout: Layout,
    sample: Share,
}

#[derive(Debug)]
enum Layout {
    /// All fields; that of sampling only where it is on.
    Json {
        sampled: bool,
    },
    Lines(Template),
    Text(Box<TextLayout>),
}

/// TCP connections have a form of their own, and so have requests of a listener with several routes, and those of routes with a cache.
#[derive(Debug)]
struct TextLayout {
    http: Template,
    routed: Template,
    cached: Template,
    tcp: Template,
    asked: Template,
    /// Behind a call of gRPC.
    call: Template,
    /// Behind a request that may be traced.
    traced: Template,
    /// Behind all, where sampling is on.
    sampled: Option<Template>,
}

impl Form {
    /// The form of a config.
    pub(super) fn new(format: &LogFormat, sample: Share) -> Form {
        let sampled = sample < Share::ALL;
        let layout = match format {
            LogFormat::Json => Layout::Json { sampled },
            LogFormat::Text => Layout::Text(Box::new(TextLayout {
                http: own(&[TEXT]),
                routed: own(&[TEXT, TEXT_ROUTE]),
                cached: own(&[TEXT, TEXT_ROUTE, TEXT_CACHE]),
                tcp: own(&[TEXT_TCP]),
                asked: own(&[TEXT_TCP, TEXT_ASKED]),
                call: own(&[TEXT_CALL]),
                traced: own(&[TEXT_TRACED]),
                sampled: sampled.then(|| own(&[TEXT_SAMPLED])),
            })),
            LogFormat::Common => Layout::Lines(own(&[COMMON])),
            LogFormat::Combined => Layout::Lines(own(&[COMMON, COMBINED])),
            LogFormat::Template(template) => Layout::Lines(template.clone()),
        };
        Form { layout, sample }
    }

    /// The share of records like this one that is logged; `None`: this one is not.
    pub(super) fn share_of(&self, record: &Record) -> Option<Share> {
        sample::share_of(self.sample, record)
    }

    /// Writes one line with its end.
    #[inline]
    pub(super) fn write<'r>(
        &self,
        room: LineSpace<'r>,
        facts: &Facts<'_>,
        clock: &mut Clock<'_>,
    ) -> Left<'r> {
        let room = match &self.layout {
            Layout::Json { sampled } => return json::write(room, facts, clock, *sampled),
            Layout::Lines(template) => write_pieces(room, template.pieces(), facts, clock)?,
            Layout::Text(layout) => {
                let TextLayout { http, routed, cached, tcp, asked, call, traced, sampled } = &**layout;
                let record = facts.record;
                let template = match record.kind {
                    RecordKind::Tcp if facts.route.is_some() => asked,
                    RecordKind::Tcp | RecordKind::Udp => tcp,
                    _ if record.cache.is_some() => cached,
                    _ if facts.route.is_some() => routed,
                    _ => http,
                };
                let mut room = write_pieces(room, template.pieces(), facts, clock)?;
                if record.grpc.is_some() {
                    room = write_pieces(room, call.pieces(), facts, clock)?;
                }
                if record.tracing != Tracing::Off {
                    room = write_pieces(room, traced.pieces(), facts, clock)?;
                }
                match sampled {
                    Some(sampled) => write_pieces(room, sampled.pieces(), facts, clock)?,
                    None => room,
                }
            }
        };
        put(room, b"\n")
    }
}

#[inline(never)]
fn write_pieces<'r>(
    mut room: LineSpace<'r>,
    pieces: &[TemplatePiece],
    facts: &Facts<'_>,
    clock: &mut Clock<'_>,
) -> Left<'r> {
    for piece in pieces {
        room = match piece {
            TemplatePiece::Text(text) => put(room, text.as_bytes())?,
            TemplatePiece::Value(TemplateSource::Field(field), slot) => {
                facts.value(*field).write_text(room, *slot, clock)?
            }
            TemplatePiece::Value(TemplateSource::Derived(field), slot) => {
                facts.write_derived(room, *field, *slot, clock)?
            }
            TemplatePiece::Value(TemplateSource::Header(name), slot) => {
                facts.named(name).write_text(room, *slot, clock)?
            }
        };
    }
    Some(room)
}

/// Our own forms are templates like any other.
fn own(parts: &[&str]) -> Template {
    Template::parse(&parts.concat()).expect("every named form is a template; a test makes each of them")
}

#[cfg(test)]
mod tests;
