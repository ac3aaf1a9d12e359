//! What tells this process from others on the same machine.

use crate::config::effective::EffectiveRows;
use crate::config::model::{AdminSocket, Instance};
use crate::config::origin::Origin;
use crate::config::raw::RawInstance;
use crate::config::report::Report;

/// Makes the accepted form.
pub(in crate::config) fn accept(
    raw: &RawInstance,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Instance {
    let name = raw.name.as_ref().map(|written| written.value.clone());
    match &raw.name {
        Some(written) => rows.note("name", written.value.clone(), written.spot.origin.clone()),
        None => rows.note("name", "a hash of the config's path", Origin::Default),
    }
    match &raw.state_dir {
        Some(written) => {
            rows.note("state_dir", written.value.display().to_string(), written.spot.origin.clone());
            if written.value.exists() && !written.value.is_dir() {
                let message = format!("`state_dir` is `{}`, which is a file", written.value.display());
                report.spot(&written.spot, message).expected("a folder, or a path at which one can be made");
            }
        }
        None => rows.note("state_dir", "the user's folder for state, in evenkeel/NAME", Origin::Default),
    }
    let (socket, origin) = match &raw.socket {
        Some(written) => (written.value.clone(), written.spot.origin.clone()),
        None => (AdminSocket::Usual, Origin::Default),
    };
    let shown = match &socket {
        AdminSocket::Usual => "the user's folder for sockets, or `state_dir`".to_owned(),
        AdminSocket::Off => "off".to_owned(),
        AdminSocket::At(path) => path.display().to_string(),
    };
    rows.note("admin.socket", shown, origin);
    Instance { name, state_dir: raw.state_dir.as_ref().map(|written| written.value.clone()), socket }
}
