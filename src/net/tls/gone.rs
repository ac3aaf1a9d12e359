//! Peers that say something and go.

use std::future::poll_fn;

use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs::default_provider;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::*;

/// A client's session that has not begun, and the other end.
fn client() -> (Tls, UnixStream) {
    let (near, far) = UnixStream::pair().expect("a pair of sockets");
    let name = ServerName::try_from("app.internal").expect("a name");
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("it has suites for both versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let session = Tls::client(near.into(), Arc::new(config), name).expect("a session");
    (session, far)
}

/// The fatal alert `access_denied`.
const DENIED: &[u8] = b"\x15\x03\x03\0\x02\x02\x31";

/// Its word says more than the broken pipe that our next write meets.
#[tokio::test]
async fn an_alert_is_heard_although_its_sender_takes_nothing_any_more() {
    let (mut session, mut far) = client();
    far.write_all(DENIED).await.expect("room");
    drop(far);
    let broken = poll_fn(|cx| session.poll_handshake(cx)).await.expect_err("it was refused");
    let denied = rustls::Error::AlertReceived(rustls::AlertDescription::AccessDenied);
    assert!(matches!(&broken, TlsBroken::Protocol(error) if *error == denied), "{broken}");
}

#[tokio::test]
async fn a_peer_that_goes_without_a_word_has_closed() {
    let (mut session, far) = client();
    drop(far);
    let broken = poll_fn(|cx| session.poll_handshake(cx)).await.expect_err("nobody is there");
    assert!(matches!(broken, TlsBroken::Closed(_)), "{broken}");
}

/// Were the connection used again, the other part would be read as an answer.
#[tokio::test]
async fn a_part_of_a_record_is_something_left() {
    let (mut session, mut far) = client();
    assert!(!session.has_leftover());
    far.write_all(&DENIED[..3]).await.expect("room");
    let shaking = poll_fn(|cx| {
        let _ = session.poll_handshake(cx);
        if session.has_leftover() { Poll::Ready(()) } else { Poll::Pending }
    });
    tokio::time::timeout(std::time::Duration::from_secs(20), shaking).await.expect("it comes");
    assert!(far.read(&mut [0; 16]).await.expect("a hello") > 0);
}
