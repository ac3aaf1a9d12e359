//! Two ends of a TLS session for unit tests: ours on a unix socket, and rustls' own client, moved by hand.

use std::future::poll_fn;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};
use tokio::io::ReadBuf;

use super::{Stream, Tls};

/// The client's end. Nothing in here waits.
pub(crate) struct Far {
    pub(crate) socket: UnixStream,
    pub(crate) session: ClientConnection,
}

impl Far {
    /// Takes in everything that has come.
    pub(crate) fn take_in(&mut self) -> Result<(), rustls::Error> {
        // The end, an error, or nothing more for now.
        while let Ok(1..) = self.session.read_tls(&mut self.socket) {
            self.session.process_new_packets()?;
        }
        Ok(())
    }

    /// Sends everything that waits.
    pub(crate) fn send(&mut self) {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.socket).expect("room");
        }
    }

    /// Encrypts and sends.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.session.writer().write_all(bytes).expect("taken");
        self.send();
    }

    /// Everything decrypted that is there, and then why there is no more: `WouldBlock`, `UnexpectedEof`, or
    /// nothing, which is a clean end.
    pub(crate) fn read(&mut self) -> (Vec<u8>, Option<io::ErrorKind>) {
        let (mut all, mut space) = (Vec::new(), [0; 4096]);
        loop {
            let moved = self.session.read_tls(&mut self.socket).unwrap_or(0);
            self.session.process_new_packets().expect("sound records");
            loop {
                match self.session.reader().read(&mut space) {
                    Ok(0) => return (all, None),
                    Ok(count) => all.extend_from_slice(&space[..count]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock && moved > 0 => break,
                    Err(error) => return (all, Some(error.kind())),
                }
            }
        }
    }
}

/// Both ends, before the handshake.
pub(crate) fn strangers() -> (Tls, Far) {
    strangers_who_offer([&[], &[]])
}

/// The same, where the server and the client offer these protocols.
pub(crate) fn strangers_who_offer(protocols: [&[&str]; 2]) -> (Tls, Far) {
    let [ours, theirs] =
        protocols.map(|names| names.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>());
    let key = KeyPair::generate().expect("randomness");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("signed").der().clone();
    let provider = Arc::new(default_provider());
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.clone()],
            PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        )
        .expect("they match");
    server.alpn_protocols = ours;
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a root");
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = theirs;
    let (near, far) = UnixStream::pair().expect("a pair of sockets");
    near.set_nonblocking(true).expect("non-blocking");
    far.set_nonblocking(true).expect("non-blocking");
    let near = Stream::from(tokio::net::UnixStream::from_std(near).expect("inside of a runtime"));
    let name = ServerName::try_from("localhost").expect("a name");
    let session = ClientConnection::new(Arc::new(client), name).expect("a session");
    (Tls::server(near, Arc::new(server), &[]).expect("a session"), Far { socket: far, session })
}

/// Both ends, after it.
pub(crate) async fn pair() -> (Tls, Far) {
    acquainted(strangers()).await
}

/// Both ends once they have shaken hands.
pub(crate) async fn acquainted((mut near, mut far): (Tls, Far)) -> (Tls, Far) {
    loop {
        far.send();
        settle().await;
        let done = match once(|cx| near.poll_handshake(cx)).await {
            Poll::Ready(outcome) => outcome.is_ok(),
            Poll::Pending => false,
        };
        far.take_in().expect("a sound server");
        if done && !far.session.is_handshaking() {
            return (near, far);
        }
    }
}

/// Lets the event loop learn what the kernel knows: it looks at the latest in every 61st turn.
pub(crate) async fn settle() {
    for _ in 0..2 * 61 {
        tokio::task::yield_now().await;
    }
}

/// Polls once.
pub(crate) async fn once<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    poll_fn(|cx| Poll::Ready(poll(cx))).await
}

/// Reads up to so many decrypted bytes, if they are there.
pub(crate) fn read_now(near: &mut Tls, most: usize) -> Poll<io::Result<Vec<u8>>> {
    let mut space = vec![0; most];
    let mut space = ReadBuf::new(&mut space);
    let polled = near.poll_read(&mut Context::from_waker(Waker::noop()), &mut space);
    polled.map(|outcome| outcome.map(|()| space.filled().to_vec()))
}
