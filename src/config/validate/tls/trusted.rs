//! Files with the certificates of those who are trusted.

use std::path::PathBuf;

use crate::config::certificate;
use crate::config::effective::{EffectiveRows, number_of};
use crate::config::model::tls::Authorities;
use crate::config::origin::Written;
use crate::config::report::Report;

/// Reads one, which `subject` names; `None`: there is a fault, which has been reported.
pub(in crate::config::validate) fn authorities(
    file: &Written<PathBuf>,
    subject: &str,
    report: &mut Report,
    rows: &mut EffectiveRows,
    path: String,
) -> Option<Authorities> {
    match certificate::authorities(&file.value) {
        Ok(certificates) => {
            let content = number_of(certificates.iter().map(|certificate| certificate.as_ref()));
            rows.note_file(path, &file.value, file.spot.origin.clone(), Some(content));
            Some(Authorities { file: file.value.clone(), certificates: certificates.into() })
        }
        Err(wrong) => {
            report.wrong(&file.spot, subject, wrong);
            None
        }
    }
}
