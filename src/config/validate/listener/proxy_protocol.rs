//! `proxy_protocol`: who tells on a listener whose connections it passes on.

use std::sync::Arc;

use super::super::owner::KeyOwner;
use crate::config::effective::EffectiveRows;
use crate::config::model::{Bind, Protocol, ProxySenders};
use crate::config::origin::{Field, Origin, Written};
use crate::config::raw::{RawSenders, Spoken};
use crate::config::report::Report;

/// Makes it for `owner`, which is bound to `binds`; `None`: nobody does.
pub(super) fn accept(
    owner: &KeyOwner<'_>,
    spoken: Option<Spoken>,
    binds: &[Bind],
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<Arc<ProxySenders>> {
    let raw = match &owner.own.proxy_protocol {
        Field::Given(Written { value: Some(raw), .. }) => raw,
        Field::Given(Written { value: None, spot }) => {
            rows.note(owner.path("proxy_protocol"), "off", spot.origin.clone());
            return None;
        }
        Field::Absent => {
            rows.note(owner.path("proxy_protocol"), "off", Origin::Default);
            return None;
        }
        Field::Faulty => return None,
    };
    let path = |key: &str| owner.path(&format!("proxy_protocol.{key}"));
    let required = rows.settle(path("required"), raw.required.as_ref(), true, ToString::to_string);
    // A plain `tcp` listener serves backends that speak first: it would wait for a header that need not come.
    let is_plain = matches!(owner.tls, Field::Absent) && !owner.passes_all;
    let waits = is_plain && spoken.is_some_and(|spoken| spoken.protocol == Protocol::Tcp);
    if let (false, true, Some(written)) = (required, waits, &raw.required) {
        let message = format!(
            "{} relays bytes as they come, and there the server may speak first: whether a header comes can't be waited for",
            owner.told()
        );
        report
            .spot(&written.spot, message)
            .expected("`required: true`")
            .note("clients that come without a balancer need a listener of their own");
    }
    let Field::Given(written) = &raw.from else { return None };
    let RawSenders { networks, unix } = &written.value;
    rows.note(path("from"), show(&written.value), written.spot.origin.clone());
    let has = |is_unix: bool| binds.iter().any(|bind| matches!(bind, Bind::Unix(_)) == is_unix);
    let somebody = *unix && has(true) || !networks.is_empty() && has(false);
    if !binds.is_empty() && !somebody {
        let what = if has(true) { "`unix`" } else { "an address or a network" };
        let message = format!("nobody of these could connect to {}", owner.told());
        report.spot(&written.spot, message).expected(what.to_owned());
    }
    Some(Arc::new(ProxySenders { from: networks.clone(), from_unix: *unix, required }))
}

fn show(senders: &RawSenders) -> String {
    let networks = senders.networks.iter().map(ToString::to_string);
    let all: Vec<String> = networks.chain(senders.unix.then(|| "unix".to_owned())).collect();
    format!("[{}]", all.join(", "))
}
