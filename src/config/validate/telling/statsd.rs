//! `metrics.statsd`: who is sent numbers, and how.

use crate::config::effective::EffectiveRows;
use crate::config::model::{Share, StatsdConfig, StatsdFormat};
use crate::config::origin::{Field, Origin};
use crate::config::raw::RawStatsd;
use crate::config::units::show_duration;
use crate::config::validate::show::name_of;

/// Makes it; `None`: nobody is.
pub(in crate::config::validate) fn accept(
    raw: Option<&RawStatsd>,
    rows: &mut EffectiveRows,
) -> Option<StatsdConfig> {
    let Some(raw) = raw else {
        rows.note("metrics.statsd", "none", Origin::Default);
        return None;
    };
    let Field::Given(to) = &raw.to else { return None };
    rows.note("metrics.statsd.to", to.value.to_string(), to.spot.origin.clone());
    let format = StatsdFormat::default();
    let show_share = |share: &Option<Share>| share.map_or("off".to_owned(), |share| share.to_string());
    Some(StatsdConfig {
        to: to.value.clone(),
        format: rows.settle("metrics.statsd.format", raw.format.as_ref(), format, |format| {
            name_of(StatsdFormat::ALL, *format).to_owned()
        }),
        interval: rows.settle(
            "metrics.statsd.interval",
            raw.interval.as_ref(),
            StatsdConfig::INTERVAL,
            |time| show_duration(*time),
        ),
        timings: rows.settle("metrics.statsd.timings", raw.timings.as_ref(), None, show_share),
    })
}
