use std::io::Read as _;
use std::os::unix::net::UnixStream;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, RootCertStore, crypto::aws_lc_rs};

use super::*;
use crate::config::model::tls::{AlpnProtocol, Identity, ListenerTls};
use crate::proxy::fixtures::{context, here};
use crate::tls::{ServedNames, server_config};

const NAME: &str = "shop.test";

/// What a listener with a certificate for `NAME` shakes hands with, and who trusts that. HTTP/2 is preferred.
fn configs() -> (Arc<ServerConfig>, RootCertStore) {
    let key = KeyPair::generate().expect("randomness");
    let params = CertificateParams::new(vec![NAME.to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("signed").der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let key = aws_lc_rs::sign::any_supported_type(&key).expect("P-256");
    let certified = Arc::new(CertifiedKey::new(vec![certificate.clone()], key));
    let names = vec![NAME.to_owned()];
    let identities = vec![Arc::new(Identity {
        file: "a.pem".into(),
        certified,
        names,
        begins: 0,
        expires: 0,
        facts: Default::default(),
        staple: None,
    })];
    let alpn = AlpnProtocol::usual(true);
    let tls = ListenerTls { alpn, ..ListenerTls::showing(identities) };
    let config = server_config(&tls, &ServedNames::new(&tls.identities), &tls.alpn, Arc::default());
    let mut config = ServerConfig::clone(&config);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a root");
    (Arc::new(config), roots)
}

/// A client that asks for `NAME`, offers `protocols`, and reads until the end.
fn client(mut socket: UnixStream, roots: RootCertStore, protocols: &[&str]) {
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from(NAME).expect("a name");
    let mut session = ClientConnection::new(Arc::new(config), name).expect("a session");
    let _ = rustls::Stream::new(&mut session, &mut socket).read(&mut [0]);
}

/// What is known of a client that offers `protocols`.
fn secured(protocols: &'static [&'static str]) -> Rc<Secured> {
    let (config, roots) = configs();
    let (near, far) = UnixStream::pair().expect("a pair of sockets");
    let far = std::thread::spawn(move || client(far, roots, protocols));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
        .expect("a runtime");
    let secured = runtime.block_on(async {
        let ctx = context();
        near.set_nonblocking(true).expect("non-blocking");
        let stream = Stream::from(tokio::net::UnixStream::from_std(near).expect("inside of a runtime"));
        let newcomer = Newcomer::new(&ctx, stream, Peer::default(), here(&ctx));
        let deadline = ctx.ticker.deadline();
        deadline.set(std::time::Duration::from_secs(10));
        let (newcomer, secured) = secure(newcomer, &config, &deadline).await.expect("a session that stands");
        assert!(matches!(newcomer.stream, Stream::Tls(_)) && newcomer.held.is_none());
        secured
    });
    far.join().expect("no panic");
    secured
}

#[test]
fn of_a_session_of_http_2_it_is_known_for_which_host_it_was_made() {
    let http2 = secured(&["h2", "http/1.1"]);
    assert_eq!((http2.is_http2, http2.sni.as_deref()), (true, Some(NAME)));
    assert_eq!(http2.agreed, Some("h2"));
    for (others, agreed) in [(&["http/1.1"][..], Some("http/1.1")), (&[], None)] {
        let http1 = secured(others);
        let known = (http1.is_http2, http1.agreed, http1.sni.as_deref());
        assert_eq!(known, (false, agreed, Some(NAME)), "{others:?}");
    }
}
