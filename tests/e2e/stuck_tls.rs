//! TLS by hand, so that it can be stopped anywhere: inside a record, inside a handshake.

use std::io::Write as _;
use std::sync::Arc;

use fake_backend::Authority;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::support::Client;
use super::support::tls::{BOTH, client_config};

/// A certificate for evenkeel, and clients that trust it.
pub struct Secrets {
    folder: tempfile::TempDir,
    config: Arc<ClientConfig>,
}

impl Secrets {
    pub fn new() -> Secrets {
        let authority = Authority::new("stuck");
        let issued = authority.issue(["127.0.0.1"]);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cert.pem"), issued.cert_pem).unwrap();
        std::fs::write(folder.path().join("key.pem"), issued.key_pem).unwrap();
        let config = client_config(&[authority.ca_pem()], BOTH, None);
        Secrets { folder, config: Arc::new(config) }
    }

    /// The key `tls` of a target.
    pub fn key(&self) -> String {
        let folder = self.folder.path().display();
        format!("tls: {{cert_file: {folder}/cert.pem, cert_key: {folder}/key.pem}}")
    }

    /// The side of a client; nothing was sent.
    pub fn session(&self) -> ClientConnection {
        let name = ServerName::try_from("127.0.0.1").unwrap();
        ClientConnection::new(Arc::clone(&self.config), name).unwrap()
    }

    /// A ClientHello in its record.
    pub fn hello(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.session().write_tls(&mut bytes).unwrap();
        bytes
    }

    /// Shakes hands to the end.
    pub fn shake(&self, client: &mut Client) -> ClientConnection {
        let mut session = self.session();
        session.complete_io(&mut client.socket).unwrap();
        assert!(!session.is_handshaking());
        session
    }
}

/// The record that carries these bytes.
pub fn seal(session: &mut ClientConnection, bytes: &str) -> Vec<u8> {
    session.writer().write_all(bytes.as_bytes()).unwrap();
    let mut record = Vec::new();
    session.write_tls(&mut record).unwrap();
    assert!(!session.wants_write());
    record
}
