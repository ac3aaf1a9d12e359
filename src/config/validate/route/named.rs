//! The targets that a route names.

use crate::config::error::quoted;
use crate::config::model::TargetConfig;
use crate::config::origin::Written;
use crate::config::report::Report;

/// The target of this name, which has to be there.
pub(super) fn find<'t>(
    name: &Written<String>,
    targets: &'t [TargetConfig],
    report: &mut Report,
) -> Option<&'t TargetConfig> {
    let found = targets.iter().find(|target| target.name == name.value);
    if found.is_none() {
        let problem = report.spot(&name.spot, format!("there is no target {}", quoted(&name.value)));
        let distance = |target: &&TargetConfig| strsim::levenshtein(&target.name, &name.value);
        match targets.iter().min_by_key(distance).filter(|target| distance(target) <= 2) {
            Some(near) => problem.note(format!("did you mean {}?", quoted(&near.name))),
            None => problem.note("its name stands under `targets`"),
        };
    }
    found
}
