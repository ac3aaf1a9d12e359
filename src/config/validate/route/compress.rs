//! `compress`: which answers of a route are compressed, and how.

use std::sync::Arc;

use crate::config::effective::EffectiveRows;
use crate::config::model::cache::{Coding, CompressPolicy};
use crate::config::origin::Field;
use crate::config::raw::RawCompress;
use crate::config::units::show_size;

/// What `compress` at `path` says; `None`: nothing is compressed. `of_all`: what holds where it says nothing.
pub(in crate::config::validate) fn accept(
    raw: &Field<Option<RawCompress>>,
    path: &str,
    of_all: Option<&Arc<CompressPolicy>>,
    rows: &mut EffectiveRows,
) -> Option<Arc<CompressPolicy>> {
    let Field::Given(written) = raw else { return of_all.map(Arc::clone) };
    let Some(raw) = &written.value else {
        rows.note(path, "off", written.spot.origin.clone());
        return None;
    };
    let default = CompressPolicy::default();
    let path = |key: &str| format!("{path}.{key}");
    Some(Arc::new(CompressPolicy {
        codings: rows.settle(path("codings"), raw.codings.as_ref(), default.codings, |codings| show(codings)),
        at_least: rows
            .settle(path("at_least"), raw.at_least.as_ref(), default.at_least, |size| show_size(*size)),
        cookies: rows.settle(path("cookies"), raw.cookies.as_ref(), default.cookies, ToString::to_string),
    }))
}

/// Their names, and their levels where these are not the usual ones.
fn show(codings: &[(Coding, u32)]) -> String {
    let is_usual = codings.iter().all(|(coding, level)| *level == coding.usual_level());
    let shown: Vec<String> = codings
        .iter()
        .map(|(coding, level)| match is_usual {
            true => coding.token().to_owned(),
            false => format!("{}: {level}", coding.token()),
        })
        .collect();
    let shown = shown.join(", ");
    if is_usual { format!("[{shown}]") } else { format!("{{{shown}}}") }
}
