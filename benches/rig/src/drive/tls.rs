//! TLS with nothing left to choose: one version, one suite, one group. What a handshake or a record costs must
//! not depend on what two libraries prefer this year.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// Sessions towards one server, with the tickets that it gave.
pub(crate) struct Sessions {
    config: Arc<ClientConfig>,
    server: ServerName<'static>,
}

impl Sessions {
    /// Trusts what is in `file`. Without `resume` every handshake is a full one.
    pub(crate) fn new(file: &Path, server: &str, resume: bool) -> Result<Sessions> {
        let mut roots = RootCertStore::empty();
        let certificates = CertificateDer::pem_file_iter(file);
        for certificate in certificates.with_context(|| format!("cannot read {}", file.display()))? {
            roots.add(certificate.with_context(|| format!("{}", file.display()))?)?;
        }
        let provider = CryptoProvider {
            cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256],
            kx_groups: vec![aws_lc_rs::kx_group::X25519],
            ..aws_lc_rs::default_provider()
        };
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = if resume { Resumption::in_memory_sessions(4) } else { Resumption::disabled() };
        Ok(Sessions { config: Arc::new(config), server: ServerName::try_from(server.to_owned())? })
    }

    /// Asks for this protocol (ALPN, RFC 7301), and for none without this call.
    pub(crate) fn speaking(mut self, protocol: &[u8]) -> Sessions {
        Arc::make_mut(&mut self.config).alpn_protocols = vec![protocol.to_vec()];
        self
    }

    /// A connection that has not sent anything yet.
    pub(crate) fn begin(&self) -> Result<ClientConnection> {
        Ok(ClientConnection::new(Arc::clone(&self.config), self.server.clone())?)
    }
}
