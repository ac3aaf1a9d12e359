//! Names whose addresses are backends.

use super::family::Family;
use super::sources::ScrapeSources;
use crate::telemetry::exposition::{Labels, SampleSink};
use crate::telemetry::names::NameView;

pub(super) const FAMILIES: &[Family] = &[
    Family::gauge(
        "evenkeel_dns_addresses",
        &["kind", "name"],
        "Addresses that are known of a name.",
        |sources, _, out| of_names(sources, out, |name| Some(name.addresses.len() as u64)),
    ),
    Family::gauge(
        "evenkeel_dns_left_out",
        &["kind", "name"],
        "Addresses of the latest answer for which there was no room.",
        |sources, _, out| of_names(sources, out, |name| Some(name.beyond as u64)),
    ),
    Family::gauge(
        "evenkeel_dns_failing",
        &["kind", "name"],
        "1 while there is no good answer about a name; what is known of it stays.",
        |sources, _, out| of_names(sources, out, |name| Some(name.trouble.is_some().into())),
    ),
    Family::gauge(
        "evenkeel_dns_answered_timestamp_seconds",
        &["kind", "name"],
        "When the latest good answer came, in seconds since 1970. Not there before the first, and while another node of the cluster asks.",
        |sources, _, out| of_names(sources, out, |name| Some(name.answered_ms? / 1_000)),
    ),
];

fn of_names(
    sources: &ScrapeSources,
    out: &mut dyn SampleSink,
    value: impl Fn(&NameView) -> Option<u64>,
) -> Option<usize> {
    let mut all: Vec<&NameView> = sources.control.names.iter().collect();
    // One series for one name: which addresses of it count is no label.
    all.dedup_by(|one, first| {
        one.question.name == first.question.name && one.question.kind == first.question.kind
    });
    for name in all {
        if let Some(value) = value(name) {
            let asked = &name.question;
            out.count(&Labels::of(&[("kind", asked.kind.as_str()), ("name", &asked.name)]), value);
        }
    }
    None
}
