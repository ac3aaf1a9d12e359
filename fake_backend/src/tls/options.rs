//! What a fake's TLS is made of: certificate, versions, ALPN, whom it lets in. Turned into rustls' form when
//! the fake starts.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};

use super::{Authority, Issued};

/// What every certificate made here is for, beside the address of the fake.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

/// How a fake speaks TLS. The default: TLS 1.2 and 1.3, a certificate made at the start for `localhost`,
/// `127.0.0.1`, `::1` and the address it listens on, ALPN `http/1.1` for HTTP, resumption by tickets, and
/// everyone is let in.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    certificate: Certificate,
    alpn: Option<Vec<Vec<u8>>>,
    versions: (TlsVersion, TlsVersion),
    clients: Option<Clients>,
    tickets: bool,
}

/// Where the certificate comes from.
#[derive(Clone, Debug)]
enum Certificate {
    /// Made at the start.
    Made { authority: Option<Authority>, names: Vec<String> },
    /// This one.
    Given(Issued),
}

/// Whose certificates are good for a client.
#[derive(Clone, Debug)]
struct Clients {
    ca_pem: String,
    required: bool,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            certificate: Certificate::Made { authority: None, names: Vec::new() },
            alpn: None,
            versions: (TlsVersion::Tls12, TlsVersion::Tls13),
            clients: None,
            tickets: true,
        }
    }
}

impl TlsOptions {
    /// The default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the certificate made at the start from this authority instead of one of its own.
    #[must_use]
    pub fn authority(self, authority: &Authority) -> Self {
        let names = match self.certificate {
            Certificate::Made { names, .. } => names,
            Certificate::Given(_) => Vec::new(),
        };
        Self { certificate: Certificate::Made { authority: Some(authority.clone()), names }, ..self }
    }

    /// Makes the certificate for these names and addresses and no others.
    #[must_use]
    pub fn names<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        let authority = match self.certificate {
            Certificate::Made { authority, .. } => authority,
            Certificate::Given(_) => None,
        };
        let names = names.into_iter().map(Into::into).collect();
        Self { certificate: Certificate::Made { authority, names }, ..self }
    }

    /// Uses this certificate.
    #[must_use]
    pub fn certificate(self, issued: Issued) -> Self {
        Self { certificate: Certificate::Given(issued), ..self }
    }

    /// Uses this certificate (with its chain) and key, both in PEM; what is wrong with them is told at the start.
    #[must_use]
    pub fn pem(self, cert_pem: impl Into<String>, key_pem: impl Into<String>) -> Self {
        self.certificate(Issued { cert_pem: cert_pem.into(), key_pem: key_pem.into() })
    }

    /// Offers these protocols, best first; none at all with an empty list.
    #[must_use]
    pub fn alpn<S: Into<Vec<u8>>>(self, protocols: impl IntoIterator<Item = S>) -> Self {
        Self { alpn: Some(protocols.into_iter().map(Into::into).collect()), ..self }
    }

    /// Speaks no older and no newer version than these.
    #[must_use]
    pub fn versions(self, oldest: TlsVersion, newest: TlsVersion) -> Self {
        Self { versions: (oldest, newest), ..self }
    }

    /// Refuses clients without a certificate from this CA (PEM, one or more).
    #[must_use]
    pub fn require_client(self, ca_pem: impl Into<String>) -> Self {
        Self { clients: Some(Clients { ca_pem: ca_pem.into(), required: true }), ..self }
    }

    /// Asks clients for a certificate from this CA, and lets in those that have none.
    #[must_use]
    pub fn ask_client(self, ca_pem: impl Into<String>) -> Self {
        Self { clients: Some(Clients { ca_pem: ca_pem.into(), required: false }), ..self }
    }

    /// Never resumes a session: every handshake is a full one.
    #[must_use]
    pub fn without_resumption(self) -> Self {
        Self { tickets: false, ..self }
    }

    /// Builds what connections need. `address` is where the fake listens; `http` is what it speaks.
    pub(crate) fn build(self, address: Option<IpAddr>, http: bool) -> io::Result<super::Setup> {
        let (issued, ca_pem) = match self.certificate {
            Certificate::Given(issued) => (issued, None),
            Certificate::Made { authority, mut names } => {
                let authority = authority.unwrap_or_else(|| Authority::new("fake_backend"));
                if names.is_empty() {
                    names.extend(NAMES.map(str::to_owned));
                    let own = address.map(|address| address.to_string());
                    names.extend(own.filter(|own| !NAMES.contains(&own.as_str())));
                }
                (authority.issue(names), Some(authority.ca_pem().to_owned()))
            }
        };
        let chain = certificates(&issued.cert_pem, "the certificate")?;
        let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes())
            .map_err(|error| wrong("the private key", error))?;
        let provider = provider();
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions(self.versions))
            .map_err(|error| wrong("the TLS versions", error))?;
        let builder = match self.clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                for ca in certificates(&clients.ca_pem, "the clients' CA")? {
                    roots.add(ca).map_err(|error| wrong("the clients' CA", error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                let verifier = if clients.required { verifier } else { verifier.allow_unauthenticated() };
                let verifier = verifier.build().map_err(|error| wrong("the clients' CA", error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| wrong("the certificate and its key", error))?;
        config.alpn_protocols =
            self.alpn.unwrap_or_else(|| if http { vec![b"http/1.1".to_vec()] } else { Vec::new() });
        if self.tickets {
            config.ticketer = aws_lc_rs::Ticketer::new().map_err(|error| wrong("the ticket keys", error))?;
        } else {
            config.send_tls13_tickets = 0;
            config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        }
        Ok(super::Setup { config: Arc::new(config), ca_pem })
    }
}

/// The one provider, named everywhere: nothing here depends on what a process installs as its default.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn versions((oldest, newest): (TlsVersion, TlsVersion)) -> Vec<&'static SupportedProtocolVersion> {
    let all = [(TlsVersion::Tls13, &version::TLS13), (TlsVersion::Tls12, &version::TLS12)];
    all.into_iter().filter(|(own, _)| (oldest..=newest).contains(own)).map(|(_, known)| known).collect()
}

/// Every certificate in this text; none is an error.
fn certificates(pem: &str, what: &str) -> io::Result<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match found.map_err(|error| wrong(what, error))? {
        none if none.is_empty() => Err(wrong(what, "there is no CERTIFICATE in it")),
        some => Ok(some),
    }
}

fn wrong(what: &str, error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{what}: {error}"))
}
