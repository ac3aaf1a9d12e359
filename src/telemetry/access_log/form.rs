//! How records become lines: a config's `format`, made ready once for all workers.

use super::facts::Facts;
use super::sample;
use super::value::Clock;
use crate::config::model::template::{LogField, Piece, Source};
use crate::config::model::{LogFormat, Share, Template};
use crate::message::Record;

/// The form `text`.
const TEXT: &str = "{time} {client} {listener} {target} {backend} \"{method_path}\" {status} {cause} host={host} \
                    in={bytes_in} out={bytes_out} ms={duration_ms} connect={connect_ms} first_byte={first_byte_ms} \
                    attempts={attempts} reused={reused} kind={kind} tls={tls} id={id} agent=\"{user_agent}\" referer=\"{referer}\"";
/// Behind it where sampling is on.
const TEXT_SAMPLED: &str = " sample={sample_rate}";
/// The form `common`: Apache's `%h %l %u %t "%r" %>s %b`, with nginx's 0 for an empty body.
const COMMON: &str = "{client_ip} - - [{time_common}] \"{request}\" {code} {bytes_out}";
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
    /// Each field with what stands before its value.
    Json(Vec<(Box<str>, LogField)>),
    Lines(Template),
}

impl Form {
    /// The form of a config.
    pub(super) fn new(format: &LogFormat, sample: Share) -> Form {
        let sampled = sample < Share::ALL;
        let layout = match format {
            LogFormat::Json => Layout::Json(json(sampled)),
            LogFormat::Text if sampled => Layout::Lines(own(&[TEXT, TEXT_SAMPLED])),
            LogFormat::Text => Layout::Lines(own(&[TEXT])),
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

    /// Appends one line with its end to `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>, facts: &Facts<'_>, (stamps, wall): Clock<'_>) {
        match &self.layout {
            Layout::Json(fields) => {
                for (before, field) in fields {
                    out.extend_from_slice(before.as_bytes());
                    facts.value(*field).write_json(out, (stamps, wall));
                }
                out.extend_from_slice(b"}\n");
            }
            Layout::Lines(template) => {
                for piece in template.pieces() {
                    match piece {
                        Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                        Piece::Value(source, slot) => match source {
                            Source::Field(field) => {
                                facts.value(*field).write_text(out, *slot, (stamps, wall));
                            }
                            Source::Derived(field) => {
                                facts.write_derived(out, *field, *slot, (stamps, wall));
                            }
                            Source::Header(name) => facts.named(name).write_text(out, *slot, (stamps, wall)),
                        },
                    }
                }
                out.push(b'\n');
            }
        }
    }
}

/// Our own forms are templates like any other.
fn own(parts: &[&str]) -> Template {
    Template::parse(&parts.concat()).expect("every named form is a template; a test makes each of them")
}

fn json(sampled: bool) -> Vec<(Box<str>, LogField)> {
    let fields = LogField::ALL.iter().filter(|&&field| sampled || field != LogField::SampleRate);
    fields
        .enumerate()
        .map(|(place, &field)| {
            let before = if place == 0 { '{' } else { ',' };
            (format!("{before}\"{}\":", field.name()).into(), field)
        })
        .collect()
}

#[cfg(test)]
mod tests;
