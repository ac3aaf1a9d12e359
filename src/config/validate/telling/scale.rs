//! `scale`: when it is told that a target has too few backends, or more than it needs.

use crate::config::effective::EffectiveRows;
use crate::config::model::TargetConfig;
use crate::config::model::{ScaleConfig, ScaleIn, ScaleOut};
use crate::config::origin::Origin;
use crate::config::raw::{RawScale, RawScaleIn, RawScaleOut};
use crate::config::report::Report;
use crate::config::units::show_duration;

/// Makes it.
pub(in crate::config::validate) fn accept(raw: &RawScale, rows: &mut EffectiveRows) -> ScaleConfig {
    ScaleConfig {
        out: raw.out.as_ref().map(|raw| out(raw, rows)).or_else(|| none("scale.out", rows)),
        into: raw.into.as_ref().map(|raw| into(raw, rows)).or_else(|| none("scale.in", rows)),
    }
}

fn none<T>(path: &str, rows: &mut EffectiveRows) -> Option<T> {
    rows.note(path, "none", Origin::Default);
    None
}

fn out(raw: &RawScaleOut, rows: &mut EffectiveRows) -> ScaleOut {
    let default = ScaleOut::default();
    ScaleOut {
        queued: rows.settle("scale.out.queued", raw.queued.as_ref(), default.queued, ToString::to_string),
        hold: rows.settle("scale.out.for", raw.hold.as_ref(), default.hold, |time| show_duration(*time)),
    }
}

fn into(raw: &RawScaleIn, rows: &mut EffectiveRows) -> ScaleIn {
    let default = ScaleIn::default();
    ScaleIn {
        busy: rows.settle("scale.in.busy", raw.busy.as_ref(), default.busy, |busy| format!("{busy}%")),
        hold: rows.settle("scale.in.for", raw.hold.as_ref(), default.hold, |time| show_duration(*time)),
    }
}

/// Warns of thresholds that no target can ever meet.
pub(in crate::config::validate) fn warn(
    raw: &RawScale,
    accepted: &ScaleConfig,
    targets: &[TargetConfig],
    report: &mut Report,
) {
    let bounded = || {
        targets.iter().map(|target| &target.resilience).filter(|of| of.max_in_flight.is_some() || of.adaptive)
    };
    if let Some(into) = &raw.into
        && bounded().next().is_none()
    {
        let message = "`scale.in` has no effect: how busy a target is can be told by its `max_in_flight`, and none has one";
        report.warn(&into.whole.spot, message);
    }
    if let (Some(RawScaleOut { queued: Some(written), .. }), Some(out)) = (&raw.out, &accepted.out)
        && bounded().all(|of| of.queue <= out.queued)
    {
        let message =
            format!("`scale.out` has no effect: in no target more than {} requests can wait", out.queued);
        report.warn(&written.spot, &message);
    }
}
