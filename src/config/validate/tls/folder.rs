//! The certificates of a folder.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;

use crate::config::certificate::staple::staple;
use crate::config::certificate::{self, Mismatch};
use crate::config::effective::{EffectiveRows, number_of};
use crate::config::error::{Wrong, quoted};
use crate::config::model::tls::Identity;
use crate::config::raw::{FoundCertificate, RawFolder};
use crate::config::report::Report;

type Chain = Vec<CertificateDer<'static>>;

/// Makes them; each has to be right. Those that are not in force are left out with a warning: one that nobody has renewed in time must not keep the
/// others from being.
pub(super) fn accept(
    raw: &RawFolder,
    report: &mut Report,
    rows: &mut EffectiveRows,
    path: &str,
) -> Vec<Arc<Identity>> {
    let spot = &raw.path.spot;
    let mut chains: Vec<(&FoundCertificate, Chain)> = Vec::with_capacity(raw.found.len());
    let mut is_whole = true;
    for found in &raw.found {
        match certificate::chain(&found.cert) {
            Ok(chain) => chains.push((found, chain)),
            // A key that stands alone is for none of them.
            Err(_) if certificate::holds_only_key(&found.cert) => {}
            Err(wrong) => {
                report.wrong(spot, "a file of `dir`", wrong);
                is_whole = false;
            }
        }
    }
    let (own, others): (Vec<_>, Vec<_>) =
        chains.into_iter().partition(|(found, _)| found.key.is_some() || certificate::holds_key(&found.cert));
    let known: HashSet<&CertificateDer<'_>> = own.iter().flat_map(|(_, chain)| chain).collect();
    for (found, chain) in &others {
        if !known.contains(&chain[0]) && !certificate::is_authority(&chain[0]) {
            report.wrong(spot, "a file of `dir`", keyless(&found.cert));
            is_whole = false;
        }
    }
    let (mut all, mut content) = (Vec::with_capacity(own.len()), Vec::with_capacity(own.len()));
    for (found, chain) in own {
        content.push(number_of(chain.iter().map(|certificate| certificate.as_ref())));
        match identity(found, chain) {
            Ok(identity) => {
                let public = identity.certified.key.public_key();
                content.extend(public.map(|public| number_of([public.as_ref()])));
                let answer = identity.staple.as_ref().and_then(|staple| staple.certified.ocsp.as_deref());
                content.extend(answer.map(|answer| number_of([answer])));
                all.push(Arc::new(identity));
            }
            Err(Mismatch::NotInForce(wrong)) => {
                report.warn(spot, &format!("a file of `dir` {}: it is left out", wrong.message));
            }
            Err(Mismatch::Certificate(wrong) | Mismatch::Key(wrong)) => {
                report.wrong(spot, "a file of `dir`", wrong);
                is_whole = false;
            }
        }
    }
    if all.is_empty() && is_whole {
        let name = quoted(&raw.path.value.display().to_string());
        let wrong = Wrong::new(
            format!("is {name}, which has no certificate in it that can be shown"),
            "at least one that is in force, with its key",
        );
        report.wrong(spot, "`dir`", wrong);
    }
    let content: Vec<[u8; 8]> = content.into_iter().map(u64::to_be_bytes).collect();
    let content = number_of(content.iter().map(|number| &number[..]));
    rows.note_file(format!("{path}dir"), &raw.path.value, spot.origin.clone(), Some(content));
    all
}

fn identity(found: &FoundCertificate, chain: Chain) -> Result<Identity, Mismatch> {
    let FoundCertificate { cert, key, ocsp } = found;
    let key_file = key.as_ref().unwrap_or(cert);
    let private = certificate::key(key_file).map_err(Mismatch::Key)?;
    let mut identity = certificate::identity(cert, chain, private, key_file)?;
    if let Some(ocsp) = ocsp {
        identity.staple = Some(staple(ocsp, &identity.certified).map_err(Mismatch::Certificate)?);
    }
    Ok(identity)
}

fn keyless(cert: &Path) -> Wrong {
    let stem = cert.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let name = quoted(&cert.display().to_string());
    Wrong::new(format!("is {name}, which has a certificate and no private key"), "a certificate with its key")
        .note(format!(
            "its key belongs into the same file, or beside it into `{stem}.key` or `{stem}-key.pem`"
        ))
}
