//! Lists of revoked certificates (RFC 5280 §5).

use std::path::Path;

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use x509_parser::prelude::{CertificateRevocationList, FromDer as _, X509Certificate};
use x509_parser::revocation_list::RevokedCertificate;

use super::name::shown_name;
use super::{labels, read, wrong};
use crate::config::error::Wrong;
use crate::config::model::tls::RevocationList;

/// deltaCRLIndicator (RFC 5280 §5.2.4), and certificateIssuer of one of the revoked (§5.3.3).
const DELTA: &str = "2.5.29.27";
const CERTIFICATE_ISSUER: &str = "2.5.29.29";

const LISTS: &str = "a file with certificate revocation lists, as PEM or DER";

/// Reads the lists of a file: at least one, each of which can be used.
pub(in crate::config) fn lists(file: &Path) -> Result<Vec<RevocationList>, Wrong> {
    let bytes = read(file, LISTS)?;
    let mut all = Vec::new();
    if CertificateRevocationList::from_der(&bytes).is_ok() {
        all.push(list(file, 1, CertificateRevocationListDer::from(bytes))?);
        return Ok(all);
    }
    for der in CertificateRevocationListDer::pem_slice_iter(&bytes) {
        let number = all.len() + 1;
        let der = der.map_err(|error| {
            let why = format!("has a damaged PEM section at list {number}: {}", super::damage(&error));
            wrong(file, &why, LISTS)
        })?;
        all.push(list(file, number, der)?);
    }
    if all.is_empty() {
        let labels = labels(&bytes);
        let why = match labels.iter().any(|label| label.contains("CERTIFICATE")) {
            true => "has certificates and no list of revoked ones",
            false => "has no list of revoked certificates in it",
        };
        return Err(wrong(file, why, LISTS));
    }
    Ok(all)
}

fn list(
    file: &Path,
    number: usize,
    der: CertificateRevocationListDer<'static>,
) -> Result<RevocationList, Wrong> {
    let damaged = || wrong(file, &format!("has a list (number {number}) that is damaged"), LISTS);
    let (_, parsed) = CertificateRevocationList::from_der(&der).map_err(|_| damaged())?;
    if let Some(why) = part(&parsed) {
        let why = format!("has a list (number {number}) that {why}");
        return Err(wrong(file, &why, "whole lists, each of one issuer about its own certificates"));
    }
    let (issuer, name) = (shown_name(parsed.issuer()), parsed.issuer().as_raw().to_vec());
    let next_update = parsed.next_update().map(|next| next.timestamp());
    Ok(RevocationList { file: file.to_owned(), issuer, name, next_update, der })
}

/// What a list is that does not say by itself which certificates of its issuer are revoked.
fn part(list: &CertificateRevocationList<'_>) -> Option<&'static str> {
    let has = |oid: &str| list.extensions().iter().any(|extension| extension.oid.to_id_string() == oid);
    let names_issuers = |one: &RevokedCertificate<'_>| {
        one.extensions().iter().any(|extension| extension.oid.to_id_string() == CERTIFICATE_ISSUER)
    };
    if has(DELTA) {
        Some("says only what has changed since another one (a delta)")
    } else if list.iter_revoked_certificates().any(names_issuers) {
        Some("is about certificates of several issuers (an indirect one)")
    } else {
        None
    }
}

/// Whether a list bears the signature of nobody among those authorities that have its issuer's name. False where none of them has: it may be one
/// whose certificate clients send along.
pub(in crate::config) fn is_forged(list: &RevocationList, authorities: &[CertificateDer<'_>]) -> bool {
    let Ok((_, parsed)) = CertificateRevocationList::from_der(&list.der) else { return true };
    let parsed_all = authorities.iter().filter_map(|one| Some(X509Certificate::from_der(one).ok()?.1));
    let mut issuers = parsed_all.filter(|one| one.subject().as_raw() == &*list.name).peekable();
    issuers.peek().is_some() && !issuers.any(|one| has_signed(&one, &parsed))
}

/// Whether the signature of a list was made with this certificate's key, by whichever algorithm.
fn has_signed(issuer: &X509Certificate<'_>, list: &CertificateRevocationList<'_>) -> bool {
    let (key, signed) = (&issuer.public_key().subject_public_key.data, list.tbs_cert_list.as_ref());
    let algorithms = default_provider().signature_verification_algorithms.all;
    let mut algorithms = algorithms.iter();
    algorithms.any(|algorithm| algorithm.verify_signature(key, signed, &list.signature_value.data).is_ok())
}

/// Whether one of these certificates is for whom a list says has issued it.
pub(in crate::config) fn is_of(list: &RevocationList, authorities: &[CertificateDer<'_>]) -> bool {
    authorities
        .iter()
        .any(|one| X509Certificate::from_der(one).is_ok_and(|(_, one)| one.subject().as_raw() == &*list.name))
}
