//! One handshake: as RFC 8446 and RFC 5246 want it, or spoiled as the behaviour of the moment says.

use std::io;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{HandshakeKind, ProtocolVersion, ServerConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_parser::parse_x509_certificate;

use super::Setup;
use super::facts::{Handshake, TlsFacts};
use crate::behaviour::{Fault, TlsFault};
use crate::socket::Socket;
use crate::state::State;

/// A ServerHello's beginning: the record promises 122 bytes, and 38 of them come.
const HALF_HELLO: &[u8] = b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03These 32 bytes should be random.";

/// What became of a connection before its first clear byte.
#[derive(Debug)]
pub(crate) enum Met {
    /// It goes on in clear: without TLS, or because that is the fault.
    Clear(Socket),
    /// It goes on under TLS.
    Secure(Box<TlsStream<Socket>>, Arc<TlsFacts>),
    /// There is nothing to go on with.
    Failed(Socket),
}

/// A stream, or why there is none.
type Tried = Result<TlsStream<Socket>, (io::Error, Socket)>;

/// Does what comes before the first clear byte.
pub(crate) async fn meet(socket: Socket, state: &State, connection: u64) -> Met {
    let Some(setup) = &state.tls else { return Met::Clear(socket) };
    let behaviour = state.behaviour();
    if matches!(behaviour.fault, Some(Fault::CloseOnAccept | Fault::ResetOnAccept)) {
        return Met::Clear(socket);
    }
    let tried = match behaviour.tls_fault {
        None | Some(TlsFault::NoCloseNotify) => shake(socket, setup).await,
        Some(fault) => {
            state.take_behaviour();
            if fault == TlsFault::Plain {
                return Met::Clear(socket);
            }
            spoil(socket, setup, fault).await
        }
    };
    match tried {
        Ok(stream) => {
            let facts = facts(stream.get_ref().1);
            state.shook(Handshake { connection, outcome: Ok(facts.clone()) });
            Met::Secure(Box::new(stream), Arc::new(facts))
        }
        Err((error, socket)) => {
            state.shook(Handshake { connection, outcome: Err(error.to_string()) });
            Met::Failed(socket)
        }
    }
}

async fn shake(socket: Socket, setup: &Setup) -> Tried {
    TlsAcceptor::from(setup.config.clone()).accept(socket).into_fallible().await
}

/// Does it badly.
async fn spoil(mut socket: Socket, setup: &Setup, fault: TlsFault) -> Tried {
    let spoiled = match fault {
        TlsFault::TalkFirst => {
            let text = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nin clear";
            match socket.write_all(text.as_bytes()).await {
                Ok(()) => return shake(socket, setup).await,
                Err(error) => Err(error),
            }
        }
        TlsFault::Hang => drain(&mut socket).await,
        TlsFault::Half => half(&mut socket).await,
        TlsFault::Close => first_bytes(&mut socket).await,
        TlsFault::Plain | TlsFault::NoCloseNotify => return shake(socket, setup).await,
    };
    Err((spoiled.err().unwrap_or_else(|| io::Error::other("the handshake was spoiled as told")), socket))
}

async fn half(socket: &mut Socket) -> io::Result<()> {
    first_bytes(socket).await?;
    socket.write_all(HALF_HELLO).await?;
    drain(socket).await
}

/// Waits for the ClientHello, or as much of it as comes at first.
async fn first_bytes(socket: &mut Socket) -> io::Result<()> {
    socket.read(&mut [0; 4096]).await.map(|_| ())
}

/// Reads until the client leaves.
async fn drain(socket: &mut Socket) -> io::Result<()> {
    let mut bytes = [0; 512];
    while socket.read(&mut bytes).await? > 0 {}
    Ok(())
}

fn facts(connection: &ServerConnection) -> TlsFacts {
    TlsFacts {
        version: match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2".to_owned(),
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3".to_owned(),
            other => format!("{other:?}"),
        },
        resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        server_name: connection.server_name().map(str::to_owned),
        alpn: connection.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
        group: connection.negotiated_key_exchange_group().map(|group| format!("{:?}", group.name())),
        client_subject: connection.peer_certificates().and_then(|chain| subject(chain.first()?)),
    }
}

/// rustls has verified the certificate; one that cannot be parsed again has no subject to tell.
fn subject(certificate: &CertificateDer<'_>) -> Option<String> {
    parse_x509_certificate(certificate).ok().map(|(_, parsed)| parsed.subject().to_string())
}
