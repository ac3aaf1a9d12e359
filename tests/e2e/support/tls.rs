//! A TLS client on a blocking socket that shows what was agreed and how the connection ended, and listeners with
//! certificates that are made at run time.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use evenkeel::config::model::tls::ListenerTls;
use evenkeel::config::model::{Config, Protocol};
use evenkeel::config::{Flags, load_text};
use fake_backend::{Authority, Issued, Running};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, HandshakeKind, ProtocolVersion, RootCertStore,
    SupportedProtocolVersion, version,
};

use super::{Client, Keel, config};

pub const TLS12: &[&SupportedProtocolVersion] = &[&version::TLS12];
pub const TLS13: &[&SupportedProtocolVersion] = &[&version::TLS13];
pub const BOTH: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];

/// A session over TCP.
pub struct TlsSocket {
    pub tcp: TcpStream,
    pub session: ClientConnection,
}

/// An HTTP client inside of TLS.
pub type TlsClient = Client<TlsSocket>;

impl Read for TlsSocket {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        rustls::Stream::new(&mut self.session, &mut self.tcp).read(space)
    }
}

impl Write for TlsSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        rustls::Stream::new(&mut self.session, &mut self.tcp).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        rustls::Stream::new(&mut self.session, &mut self.tcp).flush()
    }
}

impl TlsSocket {
    /// Connects and shakes hands. With TLS 1.3 a server that refuses our certificate says so only afterwards.
    ///
    /// # Errors
    /// No session came of it; see [`alert`].
    pub fn open(address: SocketAddr, config: &Arc<ClientConfig>, name: &str) -> io::Result<TlsSocket> {
        let tcp = Client::connect(address).socket;
        TlsSocket::over(tcp, config, name)
    }

    /// Shakes hands on a connection that stands.
    ///
    /// # Errors
    /// No session came of it; see [`alert`].
    pub fn over(tcp: TcpStream, config: &Arc<ClientConfig>, name: &str) -> io::Result<TlsSocket> {
        TlsSocket::behind(b"", tcp, config, name)
    }

    /// The same, with `first` in one piece with the first message.
    ///
    /// # Errors
    /// No session came of it; see [`alert`].
    pub fn behind(
        first: &[u8],
        tcp: TcpStream,
        config: &Arc<ClientConfig>,
        name: &str,
    ) -> io::Result<TlsSocket> {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let session = ClientConnection::new(Arc::clone(config), name).unwrap();
        let mut socket = TlsSocket { tcp, session };
        let mut hello = first.to_vec();
        socket.session.write_tls(&mut hello)?;
        socket.tcp.write_all(&hello)?;
        while socket.session.is_handshaking() {
            socket.session.complete_io(&mut socket.tcp)?;
        }
        Ok(socket)
    }

    /// Writes all of `bytes` and reads at the same time, until what came satisfies `done` or the peer ends.
    pub fn exchange(&mut self, mut bytes: &[u8], done: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let (mut came, mut space) = (Vec::new(), vec![0; 64 * 1024]);
        self.tcp.set_nonblocking(true).unwrap();
        super::eventually("all is sent and has come", || {
            let mut blocked = false;
            while !blocked {
                blocked = true;
                if let Ok(count @ 1..) = self.write(bytes) {
                    bytes = &bytes[count..];
                    blocked = false;
                }
                match self.read(&mut space) {
                    Ok(0) => return true,
                    Ok(count) => {
                        came.extend_from_slice(&space[..count]);
                        blocked = false;
                    }
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
            }
            bytes.is_empty() && done(&came)
        });
        self.tcp.set_nonblocking(false).unwrap();
        came
    }

    /// Says that we have sent our last byte, within the session only.
    pub fn say_end(&mut self) {
        self.session.send_close_notify();
        self.session.write_tls(&mut self.tcp).unwrap();
    }

    /// The connection ends, the session does not.
    pub fn vanish(&self) {
        self.tcp.shutdown(Shutdown::Write).unwrap();
    }

    pub fn is_resumed(&self) -> bool {
        self.session.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    pub fn version(&self) -> ProtocolVersion {
        self.session.protocol_version().unwrap()
    }

    /// The server's own certificate.
    pub fn leaf(&self) -> CertificateDer<'static> {
        self.session.peer_certificates().unwrap()[0].clone().into_owned()
    }
}

/// The alert that ended it.
pub fn alert(error: &io::Error) -> Option<AlertDescription> {
    match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::AlertReceived(alert) => Some(*alert),
        _ => None,
    }
}

/// The first certificate in a text.
pub fn first_der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// What a client trusts, speaks and shows. Its fields may be changed before it is used.
pub fn client_config(
    roots: &[&str],
    versions: &[&'static SupportedProtocolVersion],
    identity: Option<&Issued>,
) -> ClientConfig {
    client_config_of(default_provider(), roots, versions, identity)
}

/// The same for a client that knows what this provider knows.
pub fn client_config_of(
    provider: CryptoProvider,
    roots: &[&str],
    versions: &[&'static SupportedProtocolVersion],
    identity: Option<&Issued>,
) -> ClientConfig {
    let mut store = RootCertStore::empty();
    roots.iter().for_each(|pem| store.add(first_der(pem)).unwrap());
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(store);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(issued) => {
            let chain =
                CertificateDer::pem_slice_iter(issued.cert_pem.as_bytes()).map(Result::unwrap).collect();
            let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

/// What a `tls` section comes to, with these files beside the config: read by the loader that users meet.
pub fn listener_tls(section: &str, files: &[(&str, &str)]) -> Arc<ListenerTls> {
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(folder.path().join(name), text).unwrap());
    load(section, folder.path()).listeners[0].tls.clone().unwrap()
}

fn load(section: &str, folder: &Path) -> Config {
    let backends = "backends: [{host: 127.0.0.1, port: 2}]";
    let text =
        format!("targets: {{web: {{protocol: https, listener: 1, {backends}, tls: {{{section}}}}}}}\n");
    match load_text(&text, "t.yaml", folder, &Flags::default(), &|_| None) {
        Ok(loaded) => loaded.config,
        Err(problems) => panic!("{problems}"),
    }
}

/// A listener with one certificate for `localhost`.
pub fn plain_tls(authority: &Authority) -> Arc<ListenerTls> {
    more_tls(authority, "")
}

/// The same with more keys: `, min_version: …`.
pub fn more_tls(authority: &Authority, more: &str) -> Arc<ListenerTls> {
    let issued = authority.issue(["localhost"]);
    let section = format!("cert_file: a.pem, cert_key: a.key{more}");
    let ca = ("ca.pem", authority.ca_pem());
    listener_tls(&section, &[("a.pem", &issued.cert_pem), ("a.key", &issued.key_pem), ca])
}

/// A server with TLS for `localhost`, and a client's config that trusts it.
pub struct Secure {
    pub keel: Keel,
    pub authority: Authority,
    pub client: Arc<ClientConfig>,
}

impl Secure {
    /// HTTPS in front of these backends.
    pub fn http(backends: &[&Running]) -> Secure {
        Secure::with(Protocol::Http, backends, "", |_| ())
    }

    /// TLS in front of these backends with `more` keys of `tls` and changes.
    pub fn with(
        protocol: Protocol,
        backends: &[&Running],
        more: &str,
        change: impl FnOnce(&mut Config),
    ) -> Secure {
        let authority = Authority::new("test authority");
        let addresses: Vec<_> = backends.iter().map(|running| running.addr()).collect();
        let mut config = config(protocol, &addresses);
        config.listeners[0].tls = Some(more_tls(&authority, more));
        change(&mut config);
        let keel = Keel::start(&config);
        let client = Arc::new(client_config(&[authority.ca_pem()], BOTH, None));
        Secure { keel, authority, client }
    }

    /// A client with only these versions.
    pub fn versions(&self, versions: &[&'static SupportedProtocolVersion]) -> Arc<ClientConfig> {
        Arc::new(client_config(&[self.authority.ca_pem()], versions, None))
    }

    pub fn open(&self) -> TlsSocket {
        self.open_with(&self.client)
    }

    pub fn open_with(&self, config: &Arc<ClientConfig>) -> TlsSocket {
        TlsSocket::open(self.keel.address(), config, "localhost").unwrap()
    }

    pub fn client(&self) -> TlsClient {
        Client::over(self.open())
    }

    pub fn client_with(&self, config: &Arc<ClientConfig>) -> TlsClient {
        Client::over(self.open_with(config))
    }
}

/// A client that takes any certificate: here the name is what is asked for, and not what must be.
pub fn credulous(versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
    let mut config = client_config(&[], versions, None);
    config.dangerous().set_certificate_verifier(Arc::new(danger::Anyone(default_provider())));
    config
}

mod danger {
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::crypto::CryptoProvider;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{DigitallySignedStruct, Error, SignatureScheme};

    #[derive(Debug)]
    pub struct Anyone(pub CryptoProvider);

    impl ServerCertVerifier for Anyone {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    }
}
