//! `mirror` of a route: who gets copies of its requests.

use std::collections::HashMap;

use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::route::Mirror;
use crate::config::model::{Protocol, RouteConfig, Share};
use crate::config::origin::Written;
use crate::config::raw::RawMirror;
use crate::config::report::Report;

/// Makes the `mirror` of `route`; `targets`: all there are.
pub(super) fn accept(
    raw: &RawMirror,
    route: &RouteConfig,
    targets: &HashMap<&str, Protocol>,
    report: &mut Report,
) -> Option<Mirror> {
    let own_name = &raw.target.value;
    let name = quoted(own_name);
    // That it is there has been looked at with the other targets of the route.
    let protocol = *targets.get(own_name.as_str())?;
    if protocol != Protocol::Http {
        let message =
            format!("the target {name} speaks {}, so it can get no copies of requests", protocol.as_str());
        report.spot(&raw.target.spot, message).expected("a target that speaks http");
        return None;
    }
    if route.targets().any(|own| own == own_name) {
        let message = format!("copies for {name} would go where the requests go already");
        let problem = report.spot(&raw.target.spot, message);
        problem.expected("another target, whose answers nobody needs");
        return None;
    }
    Some(Mirror { target: own_name.as_str().into(), share: share(raw) })
}

/// Notes what holds for the route at `path`.
pub(super) fn note(path: &str, written: &Written<Option<RawMirror>>, rows: &mut EffectiveRows) {
    let Some(raw) = &written.value else {
        return rows.note(format!("{path}.mirror"), "off", written.spot.origin.clone());
    };
    let target = &raw.target;
    rows.note(format!("{path}.mirror.target"), target.value.clone(), target.spot.origin.clone());
    rows.settle(format!("{path}.mirror.share"), raw.share.as_ref(), Share::ALL, Share::to_string);
}

fn share(raw: &RawMirror) -> Share {
    raw.share.as_ref().map_or(Share::ALL, |share| share.value)
}
