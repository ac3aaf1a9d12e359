//! `recorder`: what is kept of requests that are over.

use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::RecorderConfig;
use crate::config::origin::Written;
use crate::config::raw::RawRecorder;
use crate::config::report::Report;
use crate::config::units::show_size;

/// Makes it; `None`: nothing is kept.
pub(in crate::config::validate) fn accept(
    raw: Option<&Written<Option<RawRecorder>>>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<RecorderConfig> {
    let default = RecorderConfig::default();
    let (memory, names) = match raw {
        Some(Written { value: None, spot }) => {
            rows.note("recorder", "off", spot.origin.clone());
            return None;
        }
        Some(Written { value: Some(written), .. }) => {
            (written.memory.as_ref(), written.show_headers.as_ref())
        }
        None => (None, None),
    };
    for (name, spot) in names.iter().flat_map(|names| names.value.iter().map(|name| (name, &names.spot))) {
        if RecorderConfig::sounds_secret(name) {
            let message = format!(
                "`show_headers` has {}, whose name says that it is secret, and `evenkeel why` shows what is in it",
                quoted(name)
            );
            report.warn(spot, &message);
        }
    }
    let memory = rows.settle("recorder.memory", memory, default.memory, |size| show_size(*size));
    let show_headers = rows.settle("recorder.show_headers", names, default.show_headers, |names| {
        format!("[{}]", names.join(", "))
    });
    Some(RecorderConfig { memory, show_headers })
}
