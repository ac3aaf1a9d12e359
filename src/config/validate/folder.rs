//! Where files that this process makes are to be: the access log, sockets.

use std::path::Path;

use crate::config::origin::Spot;
use crate::config::report::Report;

/// A file can be made, but not in a folder that is not there.
pub(super) fn check(file: &Path, what: &str, spot: &Spot, report: &mut Report) {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        let message = format!("the folder of {what} does not exist: `{}`", folder.display());
        report
            .spot(spot, message)
            .note("make the folder; a relative path counts from the folder of the config file");
    }
}
