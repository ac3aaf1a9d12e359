//! The client's side, towards backends: whom we trust, how we prove who we are, and what failed.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::SingleCertAndKey;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};

use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::provider;
use crate::config::model::Protocol;
use crate::config::model::tls::{Authorities, UpstreamTls};

/// Sessions kept for resumption per backend.
const SESSIONS: usize = 64;

/// Whom the system trusts, read when first asked for.
#[derive(Debug, Default)]
pub struct Roots(OnceLock<Arc<RootCertStore>>);

impl Roots {
    fn of(&self, authorities: Option<&Authorities>) -> Arc<RootCertStore> {
        let Some(authorities) = authorities else {
            return Arc::clone(self.0.get_or_init(|| Arc::new(system())));
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities.certificates.iter().cloned());
        Arc::new(roots)
    }
}

/// The system's store; Mozilla's list, as of the build, on a machine without one.
fn system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        tracing::warn!("this system has no trusted certificates; Mozilla's list is used instead");
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
}

impl Upstream {
    /// What `tls` asks for, towards a backend that speaks `protocol`.
    #[must_use]
    pub fn new(tls: &UpstreamTls, protocol: Protocol, roots: &Roots) -> Upstream {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider has suites for both versions");
        let verifier: Arc<dyn ServerCertVerifier> = if tls.insecure {
            Arc::new(TakesAny(provider()))
        } else {
            let trusted = tls.authorities.as_ref();
            let verifier = WebPkiServerVerifier::builder_with_provider(roots.of(trusted), provider()).build();
            let verifier =
                verifier.expect("config refuses a file without authorities, and the system's list has one");
            match trusted {
                None => verifier,
                Some(trusted) => Arc::new(Pinning { verifier, pins: trusted.certificates.clone() }),
            }
        };
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match &tls.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&identity.certified)))),
        };
        config.resumption = Resumption::in_memory_sessions(SESSIONS);
        config.alpn_protocols = match protocol {
            Protocol::Http => vec![b"http/1.1".to_vec()],
            Protocol::Tcp => Vec::new(),
        };
        Upstream { config: Arc::new(config), name: tls.name.clone() }
    }
}

/// Also takes a certificate that stands in `ca_file` itself. Self-signed ones, as `openssl req -x509` makes them,
/// call themselves an authority, and a verifier of chains refuses an authority at the end of one.
#[derive(Debug)]
struct Pinning {
    verifier: Arc<WebPkiServerVerifier>,
    pins: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Pinning {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.pins.iter().any(|pin| pin == leaf) {
            return self.verifier.verify_server_cert(leaf, chain, name, ocsp, now);
        }
        let (_, parsed) = X509Certificate::from_der(leaf)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        if now > parsed.validity().not_after.timestamp() {
            return Err(Error::InvalidCertificate(CertificateError::Expired));
        }
        if now < parsed.validity().not_before.timestamp() {
            return Err(Error::InvalidCertificate(CertificateError::NotValidYet));
        }
        verify_server_name(&ParsedCertificate::try_from(leaf)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Takes any certificate: `insecure: true`. That the peer has its key is still proven.
#[derive(Debug)]
struct TakesAny(Arc<CryptoProvider>);

impl ServerCertVerifier for TakesAny {
    fn verify_server_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Why there is no session with a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its certificate is for another name.
    Name,
    /// Its certificate has expired, or is not in force yet.
    Expired,
    /// Nobody whom we trust has issued its certificate.
    Issuer,
    /// It did not accept our certificate, or wants one.
    Refused,
    /// What it sent is not TLS.
    NotTls,
    /// Anything else: no common version or suite, a broken message, a certificate that is wrong otherwise.
    Other,
}

impl Fault {
    /// What `error` means.
    #[must_use]
    pub fn of(error: &Error) -> Fault {
        match error {
            Error::InvalidCertificate(wrong) => match wrong {
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    Fault::Name
                }
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => Fault::Expired,
                CertificateError::UnknownIssuer => Fault::Issuer,
                // rustls' list is open.
                _ => Fault::Other,
            },
            Error::AlertReceived(
                AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied,
            ) => Fault::Refused,
            Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => Fault::NotTls,
            // rustls' list is open.
            _ => Fault::Other,
        }
    }
}
