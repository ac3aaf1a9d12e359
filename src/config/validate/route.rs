//! The routes of a listener.

use crate::config::error::quoted;
use crate::config::model::RouteConfig;
use crate::config::origin::Field;
use crate::config::raw::RawRoute;
use crate::config::report::Report;

/// Makes one route; `knows`: whether there is a target of this name.
pub(super) fn accept(
    raw: &RawRoute,
    knows: &dyn Fn(&str) -> bool,
    report: &mut Report,
) -> Option<RouteConfig> {
    let target = match &raw.target {
        Field::Given(target) => target,
        Field::Faulty => return None,
        Field::Absent => {
            report
                .spot(&raw.spot, "a route without `target`")
                .expected("`target: web`, with the name of a target");
            return None;
        }
    };
    if !knows(&target.value) {
        report.spot(&target.spot, format!("there is no target {}", quoted(&target.value)));
        return None;
    }
    Some(RouteConfig::catch_all(&target.value))
}
