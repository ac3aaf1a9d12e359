//! `http2`: whether the clients of a listener may speak it, and what that may cost.

use super::owner::KeyOwner;
use crate::config::edit::Fix;
use crate::config::effective::EffectiveRows;
use crate::config::model::tls::AlpnProtocol;
use crate::config::model::{Http2, Protocol};
use crate::config::origin::{Field, Origin, Written};
use crate::config::raw::{RawHttp2, Spoken};
use crate::config::report::Report;
use crate::config::units::{show_duration, show_size};

/// Whether the clients of `owner` may speak it: over TLS unless somebody says otherwise, else only if somebody says so.
pub(super) fn is_spoken(owner: &KeyOwner<'_>, spoken: Option<Spoken>) -> bool {
    match (spoken, &owner.own.http2) {
        (None | Some(Spoken { protocol: Protocol::Tcp | Protocol::Udp, .. }), _) => false,
        (Some(_), Field::Given(written)) => written.value.is_some(),
        (Some(spoken), Field::Faulty | Field::Absent) => spoken.is_https && lacking(owner).is_none(),
    }
}

/// What `alpn` says, if that is without HTTP/2.
fn lacking<'r>(owner: &KeyOwner<'r>) -> Option<&'r Written<Vec<AlpnProtocol>>> {
    offered(owner).filter(|written| !written.value.contains(&AlpnProtocol::H2))
}

/// What `alpn` says.
fn offered<'r>(owner: &KeyOwner<'r>) -> Option<&'r Written<Vec<AlpnProtocol>>> {
    let Field::Given(tls) = owner.tls else { return None };
    if let Field::Given(written) = &tls.value.alpn { Some(written) } else { None }
}

/// Makes it for an owner that speaks HTTP; `None`: HTTP/1.1 alone.
pub(super) fn accept(
    owner: &KeyOwner<'_>,
    spoken: Spoken,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<Http2> {
    let default = RawHttp2::default();
    let raw = match &owner.own.http2 {
        Field::Given(Written { value: Some(raw), .. }) => {
            if lacking(owner).is_some() {
                refuse_unoffered(owner, report);
            }
            raw
        }
        Field::Given(Written { value: None, spot }) => {
            rows.note(owner.path("http2"), "off", spot.origin.clone());
            refuse_offered(owner, report);
            return None;
        }
        Field::Faulty | Field::Absent if is_spoken(owner, Some(spoken)) => &default,
        Field::Faulty | Field::Absent => {
            let origin = lacking(owner).map_or(Origin::Default, |written| written.spot.origin.clone());
            rows.note(owner.path("http2"), "off", origin);
            return None;
        }
    };
    Some(keys(owner, raw, report, rows))
}

fn keys(owner: &KeyOwner<'_>, raw: &RawHttp2, report: &mut Report, rows: &mut EffectiveRows) -> Http2 {
    let default = Http2::default();
    let path = |key: &str| owner.path(&format!("http2.{key}"));
    let show = |size: &u64| show_size(*size);
    let max_streams =
        rows.settle(path("max_streams"), raw.max_streams.as_ref(), default.max_streams, ToString::to_string);
    let memory = raw.memory.as_ref().map_or(default.memory, |memory| memory.value);
    let usual = u64::from(default.window_max).min(memory);
    let window_max = rows.settle(path("window_max"), raw.window_max.as_ref(), usual, show);
    rows.settle(path("memory"), raw.memory.as_ref(), default.memory, show);
    let max_age = rows.settle(path("max_age"), raw.max_age.as_ref(), default.max_age, |age| {
        age.map_or_else(|| "off".to_owned(), show_duration)
    });
    if let (true, false, Some(written)) = (window_max > memory, raw.is_faulty, &raw.window_max) {
        let message = format!(
            "`window_max` is {}, which is more than `memory` ({})",
            show_size(window_max),
            show_size(memory)
        );
        let most = show_size(memory);
        let problem = report.spot(&written.spot, message).expected(format!("at most {most}"));
        problem.hint(format!("write `{most}`, or give `memory` more"), Fix::Value(most));
    }
    Http2 { max_streams, window_max: u32::try_from(window_max).unwrap_or(u32::MAX), memory, max_age }
}

/// `http2` is written, and no client could choose it.
fn refuse_unoffered(owner: &KeyOwner<'_>, report: &mut Report) {
    let Some((_, spot)) = owner.http_only.iter().find(|(key, _)| *key == "http2") else { return };
    let message = format!("`http2` is on, but the `alpn` of {} is without `h2`", owner.told());
    let problem = report.spot(spot, message);
    let words = "remove it: HTTP/1.1 alone is spoken then; or add `h2` to `alpn`";
    match spot.place {
        Some(place) => problem.hint(words, Fix::Remove(place)),
        None => problem.note(words),
    };
}

/// `http2` is off, and clients are to choose it.
fn refuse_offered(owner: &KeyOwner<'_>, report: &mut Report) {
    let Some(written) = offered(owner).filter(|written| written.value.contains(&AlpnProtocol::H2)) else {
        return;
    };
    let message = format!("`alpn` has `h2`, but the `http2` of {} is off", owner.told());
    let problem = report.spot(&written.spot, message);
    let words = "remove it: HTTP/1.1 alone is offered then; or remove `http2: off`";
    match written.spot.place {
        Some(place) => problem.hint(words, Fix::Remove(place)),
        None => problem.note(words),
    };
}
