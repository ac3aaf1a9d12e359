//! Lists of revoked certificates (RFC 5280 §5).

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::WebPkiClientVerifier;
use x509_parser::prelude::{CertificateRevocationList, FromDer as _, X509Certificate};

use super::name::shown_name;
use super::{labels, read, wrong};
use crate::config::error::Wrong;
use crate::config::model::tls::RevocationList;

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
    let (issuer, name) = (shown_name(parsed.issuer()), parsed.issuer().as_raw().to_vec());
    let next_update = parsed.next_update().map(|next| next.timestamp());
    Ok(RevocationList { file: file.to_owned(), issuer, name, next_update, der })
}

/// Why the first of these lists that can't be used can't be, with its number; whoever is to use them takes them all, or none.
pub(in crate::config) fn unusable(
    lists: &[RevocationList],
    authorities: &[CertificateDer<'static>],
) -> Option<(usize, String)> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities.iter().cloned());
    let roots = Arc::new(roots);
    lists.iter().enumerate().find_map(|(place, list)| {
        let builder =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::new(default_provider()));
        let error = builder.with_crls([list.der.clone()]).build().err()?;
        Some((place, error.to_string()))
    })
}

/// Whether one of these certificates is for whom a list says has issued it.
pub(in crate::config) fn is_of(list: &RevocationList, authorities: &[CertificateDer<'_>]) -> bool {
    authorities
        .iter()
        .any(|one| X509Certificate::from_der(one).is_ok_and(|(_, one)| one.subject().as_raw() == &*list.name))
}
