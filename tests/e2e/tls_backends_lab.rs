//! What the `tls_backends_*` tests share: configs as an operator writes them, certificates that no authority made,
//! and a backend whose records a test writes itself.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use evenkeel::config::model::Config;
use evenkeel::config::{Flags, load_text};
use evenkeel::server::{Options, Server};
use fake_backend::{Authority, Fake, Issued, Running, TlsOptions};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

use super::support::{Keel, accept, events, eventually};

/// A folder with the files that a config names. `ca.pem` is the certificate of `authority`.
pub struct Lab {
    pub authority: Authority,
    folder: tempfile::TempDir,
}

impl Lab {
    pub fn new() -> Lab {
        let lab = Lab { authority: Authority::new("lab"), folder: tempfile::tempdir().unwrap() };
        lab.write("ca.pem", lab.authority.ca_pem());
        lab
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Puts a certificate and its key into `NAME.pem` and `NAME.key`.
    pub fn keep(&self, name: &str, issued: &Issued) {
        self.write(&format!("{name}.pem"), &issued.cert_pem);
        self.write(&format!("{name}.key"), &issued.key_pem);
    }

    /// TLS with a certificate of the authority for `127.0.0.1`, `::1` and `localhost`.
    pub fn tls(&self) -> TlsOptions {
        TlsOptions::new().authority(&self.authority)
    }

    /// A recording HTTP backend that the authority vouches for.
    pub fn fake(&self) -> Running {
        start(Fake::http("fake-1"), self.tls())
    }

    /// The config of one target, with one worker and health checks off: these keys and these backends, both in YAML.
    /// Each target has another name, so that what is logged of it can be told from all other tests'.
    pub fn config(&self, protocol: &str, keys: &str, backends: &[String]) -> Config {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let backends = backends.join(", ");
        let text = format!(
            "workers: 1\ntargets: {{lab-{number}: {{protocol: {protocol}, listener: '127.0.0.1:0', health_check: off, \
             {keys}, backends: [{backends}]}}}}\n"
        );
        load(self.path(), &text)
    }

    /// An HTTP target in front of these, verified by the authority.
    pub fn keel(&self, backends: &[&Running]) -> Keel {
        self.keel_with("upstream_tls: {ca_file: ca.pem}", backends)
    }

    /// An HTTP target in front of these, with these keys.
    pub fn keel_with(&self, keys: &str, backends: &[&Running]) -> Keel {
        Keel::start(&self.config("http", keys, &urls(backends)))
    }
}

pub fn load(folder: &Path, text: &str) -> Config {
    events::listen();
    match load_text(text, "lab.yaml", folder, &Flags::default(), &|_| None) {
        Ok(loaded) => loaded.config,
        Err(problems) => panic!("{problems}\n{text}"),
    }
}

pub fn urls(backends: &[&Running]) -> Vec<String> {
    backends.iter().map(|backend| url(&backend.url())).collect()
}

pub fn url(url: &str) -> String {
    format!("{{url: '{url}'}}")
}

/// Starts a fake that records and speaks TLS.
pub fn start(fake: Fake, tls: TlsOptions) -> Running {
    fake.record().tls(tls).start_in_thread().unwrap()
}

/// What the event log calls the first backend.
pub fn identity(keel: &Keel) -> String {
    keel.server.targets()[0].backends[0].identity.to_string()
}

/// What the event log has of TLS with the first backend that failed.
pub fn told_of(identity: &str) -> Vec<String> {
    events::with(&format!("TLS with backend {identity} failed: "))
}

/// Makes a backend close its idle connections, and waits until it has none.
pub fn until_left(backend: &Running) {
    eventually("the backend has closed", || {
        // One that has just answered is not idle yet.
        backend.close_idle();
        backend.open_connections() == 0
    });
}

/// With the raw relay or without.
pub fn keel_relaying(config: &Config, raw_relay: bool) -> Keel {
    Keel { server: Server::start(config, Options { raw_relay }).unwrap() }
}

/// A certificate that nobody but itself vouches for, and its key.
pub struct SelfSigned {
    pub issued: Issued,
    params: CertificateParams,
    key: KeyPair,
}

impl SelfSigned {
    /// For these names; `authority`: it calls itself one, as those of `openssl req -x509` do.
    pub fn new(names: &[&str], authority: bool) -> SelfSigned {
        SelfSigned::changed(names, authority, |_| ())
    }

    pub fn expired(names: &[&str]) -> SelfSigned {
        SelfSigned::changed(names, true, |params| {
            params.not_before = rcgen::date_time_ymd(2001, 1, 1);
            params.not_after = rcgen::date_time_ymd(2002, 2, 3);
        })
    }

    fn changed(names: &[&str], authority: bool, change: impl FnOnce(&mut CertificateParams)) -> SelfSigned {
        let mut params =
            CertificateParams::new(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()).unwrap();
        if authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let issued = Issued { cert_pem: certificate.pem(), key_pem: key.serialize_pem() };
        SelfSigned { issued, params, key }
    }

    /// A certificate for these names that this one's key has signed.
    pub fn sign(&self, names: &[&str]) -> Issued {
        let params =
            CertificateParams::new(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()).unwrap();
        let key = KeyPair::generate().unwrap();
        let issuer = rcgen::Issuer::from_params(&self.params, &self.key);
        let certificate = params.signed_by(&key, &issuer).unwrap();
        Issued { cert_pem: certificate.pem() + &self.issued.cert_pem, key_pem: key.serialize_pem() }
    }
}

/// A listening socket behind which the test itself speaks TLS, record by record.
pub struct Puppet {
    listener: TcpListener,
    config: Arc<ServerConfig>,
}

impl Puppet {
    pub fn new(lab: &Lab) -> Puppet {
        let issued = lab.authority.issue(["127.0.0.1"]);
        let chain =
            CertificateDer::pem_slice_iter(issued.cert_pem.as_bytes()).collect::<Result<_, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Puppet { listener, config: Arc::new(config) }
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    pub fn url(&self) -> String {
        url(&format!("https://{}", self.address()))
    }

    /// The next connection, after its handshake.
    pub fn accept(&self) -> Strings {
        let mut socket = accept(&self.listener);
        socket.set_nodelay(true).unwrap();
        let mut session = ServerConnection::new(Arc::clone(&self.config)).unwrap();
        while session.is_handshaking() || session.wants_write() {
            session.complete_io(&mut socket).unwrap();
        }
        Strings { socket, session }
    }
}

/// One connection of a [`Puppet`].
pub struct Strings {
    pub socket: TcpStream,
    pub session: ServerConnection,
}

impl Strings {
    /// Reads until `text` has come, and gives everything; less when the peer ends before.
    pub fn read_until(&mut self, text: &str) -> String {
        let mut all = Vec::new();
        let mut stream = rustls::Stream::new(&mut self.session, &mut self.socket);
        while !all.windows(text.len()).any(|part| part == text.as_bytes()) {
            let mut space = [0; 4096];
            match stream.read(&mut space) {
                Ok(count @ 1..) => all.extend_from_slice(&space[..count]),
                Ok(_) | Err(_) => break,
            }
        }
        String::from_utf8_lossy(&all).into_owned()
    }

    /// The bytes of a record with this content.
    pub fn record(&mut self, content: &str) -> Vec<u8> {
        use std::io::Write as _;
        self.session.writer().write_all(content.as_bytes()).unwrap();
        self.pending()
    }

    /// The records that the session wants to send.
    pub fn pending(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.session.wants_write() {
            self.session.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    /// Writes; a peer that has closed is no failure here.
    pub fn send(&mut self, bytes: &[u8]) {
        use std::io::Write as _;
        let _ = self.socket.write_all(bytes);
    }
}

/// An answer with this body.
pub fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}
