//! TLS as a probe speaks it: with the settings of the backend's traffic, and a full handshake each time.
//!
//! A resumed session would not show a certificate that has run out meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::{ResolvesClientCert, Resumption};
use rustls::pki_types::ServerName;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ProtocolVersion, SignatureScheme};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::fault;
use super::finding::Finding;
use crate::config::model::tls::AlpnProtocol;
use crate::targets::Verdict;
use crate::tls::Upstream;

/// How the probes of one backend shake hands.
pub(super) struct ProbeSession {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    identity: Arc<Identity>,
    asks_http2: bool,
}

/// Our certificate, if there is one, and whether the backend has asked for it in the latest handshake.
#[derive(Debug)]
struct Identity {
    shown: Arc<dyn ResolvesClientCert>,
    asked: AtomicBool,
}

impl ResolvesClientCert for Identity {
    fn resolve(&self, hints: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.asked.store(true, Ordering::Relaxed);
        self.shown.resolve(hints, schemes)
    }

    fn has_certs(&self) -> bool {
        self.shown.has_certs()
    }
}

impl ProbeSession {
    /// `asks_http2`: what is asked behind the handshake is asked in HTTP/2.
    pub(super) fn new(tls: &Upstream, asks_http2: bool) -> ProbeSession {
        let mut config = ClientConfig::clone(&tls.config);
        let shown = Arc::clone(&config.client_auth_cert_resolver);
        let identity = Arc::new(Identity { shown, asked: AtomicBool::new(false) });
        config.client_auth_cert_resolver = Arc::clone(&identity) as Arc<dyn ResolvesClientCert>;
        config.resumption = Resumption::disabled();
        if tls.needs_http2() && !asks_http2 {
            // What it asks, it asks in HTTP/1.1.
            config.alpn_protocols = vec![AlpnProtocol::Http1.name().into()];
        }
        ProbeSession { config: Arc::new(config), name: tls.name.clone(), identity, asks_http2 }
    }

    /// Shakes hands.
    pub(super) async fn open<S>(&self, stream: S) -> Result<TlsStream<S>, Finding>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.identity.asked.store(false, Ordering::Relaxed);
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let stream = connector
            .connect(self.name.clone(), stream)
            .await
            .map_err(|error| fault::of_handshake(&error, self.was_asked()))?;
        let chosen = stream.get_ref().1.alpn_protocol();
        if self.asks_http2 && chosen != Some(AlpnProtocol::H2.name().as_bytes()) {
            return Err(Finding::bad("TLS: it did not choose HTTP/2"));
        }
        Ok(stream)
    }

    /// The verdict of a probe that only shakes hands. In TLS 1.3 a backend looks at our certificate when our side is
    /// done already (RFC 8446 §4.4.2.4): if it has asked for one we say goodbye, and see what it says. One that has
    /// said nothing by `consent` has nothing against us.
    pub(super) async fn judge<S>(&self, mut stream: TlsStream<S>, consent: Instant) -> Finding
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        // Whoever has closed meanwhile can't be told.
        let _ = stream.shutdown().await;
        let late = stream.get_ref().1.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        if late && self.was_asked() {
            let mut byte = [0];
            if let Ok(Err(error)) = timeout_at(consent, stream.read(&mut byte)).await
                && let Some(refused) = fault::of_alert(&error)
            {
                return refused;
            }
        }
        Finding::Verdict(Verdict::Good)
    }

    fn was_asked(&self) -> bool {
        self.identity.asked.load(Ordering::Relaxed)
    }
}
