//! A client of HTTPS, so that these tests need no other program.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use evenkeel::config::model::tls::{AlpnProtocol, UpstreamTls};
use evenkeel::tls::{Roots, Upstream};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};

use super::PATIENCE;

fn name() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

/// A client that speaks one version and trusts one authority.
pub(super) fn trusting(ca_pem: &str, version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

/// A client that takes any certificate: our own, towards a backend that nobody vouches for.
pub(super) fn credulous() -> Arc<ClientConfig> {
    let tls = UpstreamTls { authorities: None, name: name(), identity: None, insecure: true };
    Upstream::new(&tls, Some(AlpnProtocol::Http1), &Roots::default()).config
}

/// The answer to `GET path`.
pub(super) fn get(address: SocketAddr, config: Arc<ClientConfig>, path: &str) -> String {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = StreamOwned::new(ClientConnection::new(config, name()).unwrap(), socket);
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}
