//! The client's side, towards backends: whom we trust and how we prove who we are.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::SingleCertAndKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use x509_parser::prelude::{FromDer as _, X509Certificate, X509Version};

use super::fault::{SelfSigned, TlsFault};
use super::{Complaint, provider};
use crate::config::model::tls::{AlpnProtocol, Authorities, UpstreamTls};
use crate::events;

/// Sessions kept for resumption per backend.
const SESSIONS: usize = 64;

/// Certificates as they were read.
type Certificates = Arc<[CertificateDer<'static>]>;

/// Whom to trust: each list is made when first asked for, and once for all backends that share it.
#[derive(Debug, Default)]
pub struct Roots {
    system: OnceCell<Arc<RootCertStore>>,
    chosen: RefCell<Vec<(Certificates, Arc<RootCertStore>)>>,
}

impl Roots {
    fn of(&self, authorities: Option<&Authorities>) -> Arc<RootCertStore> {
        let Some(authorities) = authorities else {
            return Arc::clone(self.system.get_or_init(|| Arc::new(system())));
        };
        let mut chosen = self.chosen.borrow_mut();
        if let Some((_, roots)) = chosen.iter().find(|(from, _)| Arc::ptr_eq(from, &authorities.certificates))
        {
            return Arc::clone(roots);
        }
        let mut roots = RootCertStore::empty();
        let issuers = authorities.certificates.iter().filter(|certificate| may_issue(certificate));
        roots.add_parsable_certificates(issuers.cloned());
        let roots = Arc::new(roots);
        chosen.push((Arc::clone(&authorities.certificates), Arc::clone(&roots)));
        roots
    }
}

/// Whether a certificate of `ca_file` may vouch for others. A backend's own certificate may stand there as well: it is
/// taken as it is ([`Whom`]), and whoever has its key must not be able to make certificates for its neighbours.
fn may_issue(certificate: &CertificateDer<'_>) -> bool {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { return false };
    match parsed.basic_constraints() {
        Ok(Some(constraints)) => constraints.value.ca,
        // Old authorities say it with the key's usage, and version 1 can't say it at all.
        Ok(None) => {
            let signs = parsed.key_usage().ok().flatten().is_some_and(|usage| usage.value.key_cert_sign());
            signs || parsed.version() == X509Version::V1
        }
        Err(_) => false,
    }
}

/// Where an operator says whom to trust; rustls-native-certs reads them as OpenSSL does.
const CHOICES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// The system's store, or the operator's.
fn system() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        events::authority_unreadable(error);
    }
    trusted(found.certs, CHOICES.iter().any(|name| std::env::var_os(name).is_some()))
}

/// Whom to trust when these were found. On a machine without any it is Mozilla's list, as of the build; never when the
/// operator has `chosen` another.
fn trusted(found: Vec<CertificateDer<'static>>, chosen: bool) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found);
    if roots.is_empty() && chosen {
        events::no_authorities(&CHOICES.join(" and "));
    } else if roots.is_empty() {
        events::own_authorities();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

/// TLS towards one backend: connections and probes use the same.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// With sessions of its own, so that resumption never crosses backends.
    pub config: Arc<ClientConfig>,
    /// The name that the certificate must have.
    pub name: ServerName<'static>,
    /// What operators have been told of failed handshakes.
    pub complaint: Arc<Complaint>,
    alpn: Option<AlpnProtocol>,
}

impl Upstream {
    /// What `tls` asks for, towards a backend that is to speak `alpn`; `None`: whatever it is, it is not HTTP.
    #[must_use]
    pub fn new(tls: &UpstreamTls, alpn: Option<AlpnProtocol>, roots: &Roots) -> Upstream {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider has suites for both versions");
        let verifier = Verifier { whom: Whom::of(tls, roots), provider: provider() };
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &tls.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&identity.certified)))),
        };
        config.resumption = Resumption::in_memory_sessions(SESSIONS);
        config.alpn_protocols = alpn.iter().map(|alpn| alpn.name().into()).collect();
        Upstream { config: Arc::new(config), name: tls.name.clone(), complaint: Arc::default(), alpn }
    }

    /// Whether it was made for a backend that is to speak `alpn`.
    #[must_use]
    pub fn is_for(&self, alpn: Option<AlpnProtocol>) -> bool {
        self.alpn == alpn
    }

    /// True when it is of no use where HTTP/2 is not spoken.
    #[must_use]
    pub fn needs_http2(&self) -> bool {
        self.alpn == Some(AlpnProtocol::H2)
    }
}

/// What verifies chains up to `roots`; `None` when there is nobody who could have issued one.
fn chains(roots: Arc<RootCertStore>) -> Option<Arc<WebPkiServerVerifier>> {
    // Without revocation lists an empty store is all that can be wrong.
    WebPkiServerVerifier::builder_with_provider(roots, provider()).build().ok()
}

/// Whose certificates are taken.
#[derive(Debug)]
enum Whom {
    /// Everybody's: `insecure: true`.
    Anyone,
    /// What an authority has issued, and a certificate that stands in `ca_file` itself. Self-signed ones, as
    /// `openssl req -x509` makes them, call themselves an authority, and a verifier of chains refuses an authority
    /// at the end of one.
    Trusted { chains: Option<Arc<WebPkiServerVerifier>>, pins: Option<Certificates> },
}

impl Whom {
    fn of(tls: &UpstreamTls, roots: &Roots) -> Whom {
        if tls.insecure {
            return Whom::Anyone;
        }
        let chosen = tls.authorities.as_ref();
        let pins = chosen.map(|chosen| Arc::clone(&chosen.certificates));
        Whom::Trusted { chains: chains(roots.of(chosen)), pins }
    }
}

/// Judges the certificates of a backend. That it has the key of what it shows is proven whomever we trust.
#[derive(Debug)]
struct Verifier {
    whom: Whom,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.whom {
            Whom::Anyone => Ok(ServerCertVerified::assertion()),
            Whom::Trusted { pins: Some(pins), .. } if pins.contains(leaf) => verify_pin(leaf, name, now),
            Whom::Trusted { chains: Some(chains), .. } => {
                let verdict = chains.verify_server_cert(leaf, chain, name, ocsp, now);
                verdict.map_err(|error| told_apart(error, leaf))
            }
            Whom::Trusted { chains: None, .. } => {
                Err(told_apart(Error::InvalidCertificate(CertificateError::UnknownIssuer), leaf))
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A certificate that nobody has issued but itself has another cure than one of an unknown authority.
fn told_apart(error: Error, leaf: &CertificateDer<'_>) -> Error {
    let is_own_issuer = || {
        let parsed = X509Certificate::from_der(leaf).ok();
        parsed.is_some_and(|(_, leaf)| leaf.issuer().as_raw() == leaf.subject().as_raw())
    };
    match TlsFault::of(&error, true) {
        TlsFault::Issuer if is_own_issuer() => {
            CertificateError::Other(OtherError(Arc::new(SelfSigned))).into()
        }
        _ => error,
    }
}

/// Judges a certificate that stands in `ca_file` itself: its dates and its name are all that can be wrong.
fn verify_pin(
    leaf: &CertificateDer<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    let (_, parsed) = X509Certificate::from_der(leaf)
        .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
    let at =
        |time: i64| UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(time).unwrap_or_default()));
    let not_before = at(parsed.validity().not_before.timestamp());
    let not_after = at(parsed.validity().not_after.timestamp());
    if now > not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after }.into());
    }
    if now < not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before }.into());
    }
    verify_server_name(&ParsedCertificate::try_from(leaf)?, name)?;
    Ok(ServerCertVerified::assertion())
}

#[cfg(test)]
mod tests;
