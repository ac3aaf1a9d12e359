//! A verifier of clients' certificates that looks them up in lists of revoked ones.
//!
//! What is in any list of its issuer, by that one's name, is revoked, whichever list it is and whatever part of its certificates the list says to be
//! about: whoever puts a list into the config means it. The lists were looked at when they were read (`config`): they are whole ones, and of those
//! issuers that are known here they bear the signature.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use x509_parser::prelude::{CertificateRevocationList, FromDer as _, X509Certificate};

use crate::config::model::tls::{ExpiredList, Revoked};

/// What is known of the certificates of one issuer.
#[derive(Debug, Default)]
struct OfIssuer {
    /// The numbers of those that are revoked.
    numbers: HashSet<Vec<u8>>,
    /// When the newest of its lists should be renewed; `None`: never.
    next_update: Option<i64>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Revoking {
    inner: Arc<dyn ClientCertVerifier>,
    /// By the issuer's name in DER.
    issuers: HashMap<Vec<u8>, OfIssuer>,
    expired: ExpiredList,
}

impl Revoking {
    /// Asks `inner` first.
    pub(super) fn new(inner: Arc<dyn ClientCertVerifier>, revoked: &Revoked) -> Revoking {
        let mut issuers: HashMap<Vec<u8>, OfIssuer> = HashMap::new();
        for list in &revoked.lists {
            let Ok((_, parsed)) = CertificateRevocationList::from_der(&list.der) else { continue };
            let is_first = !issuers.contains_key(&list.name);
            let of = issuers.entry(list.name.clone()).or_default();
            of.numbers.extend(parsed.iter_revoked_certificates().map(|one| plain(one.raw_serial()).to_vec()));
            // A list without an end is never overdue.
            let newest = of.next_update.zip(list.next_update).map(|(one, other)| one.max(other));
            of.next_update = if is_first { list.next_update } else { newest };
        }
        Revoking { inner, issuers, expired: revoked.expired }
    }

    /// Whether a certificate that is right otherwise is revoked.
    fn look_up(&self, certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), CertificateError> {
        let (_, leaf) = X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
        let Some(of) = self.issuers.get(leaf.issuer().as_raw()) else { return Ok(()) };
        if of.numbers.contains(plain(leaf.raw_serial())) {
            return Err(CertificateError::Revoked);
        }
        let next = of.next_update.filter(|_| self.expired == ExpiredList::Refuse);
        match next.map(|next| u64::try_from(next).unwrap_or(0)) {
            Some(next) if now.as_secs() > next => Err(CertificateError::ExpiredRevocationListContext {
                time: now,
                next_update: UnixTime::since_unix_epoch(Duration::from_secs(next)),
            }),
            Some(_) | None => Ok(()),
        }
    }
}

/// A number without zeros in front, with which some write it.
fn plain(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|&&byte| byte == 0).count();
    &number[zeros..]
}

impl ClientCertVerifier for Revoking {
    fn offer_client_auth(&self) -> bool {
        self.inner.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(end_entity, intermediates, now)?;
        self.look_up(end_entity, now).map_err(Error::InvalidCertificate)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
