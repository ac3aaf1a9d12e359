//! The backend's side of a tunnel.

use crate::net::{Buffer, Stream};

/// What a 101 has made of a call: bytes to a backend and from it, on whatever carries them.
///
/// One that is cut, by silence, by the client's failure or by the end of the process, must not look as if it had ended: unless
/// [`TunnelFar::ended`] is set, its connection is reset when it is dropped.
pub struct TunnelFar {
    /// The connection.
    pub stream: Stream,
    /// What the backend has sent behind its head.
    pub early: Option<Buffer>,
    /// The backend knows that this was the end.
    pub ended: bool,
}

impl TunnelFar {
    /// One that has not ended.
    pub(super) fn new(stream: Stream, early: Option<Buffer>) -> TunnelFar {
        TunnelFar { stream, early, ended: false }
    }
}

impl Drop for TunnelFar {
    fn drop(&mut self) {
        if !self.ended {
            self.stream.reset_on_close();
        } else if let Stream::Carried(carried) = &mut self.stream {
            // No close will say it.
            let _ = carried.shutdown();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use tokio::io::AsyncReadExt as _;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn a_backend_sees_an_end_only_of_a_tunnel_that_has_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        for (ended, seen) in [(true, None), (false, Some(io::ErrorKind::ConnectionReset))] {
            let near = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connects");
            let (mut backend, _) = listener.accept().await.expect("accepts");
            let mut far = TunnelFar::new(Stream::from(near), None);
            far.ended = ended;
            drop(far);
            let read = backend.read(&mut [0]).await;
            assert_eq!(read.as_ref().err().map(io::Error::kind), seen, "{read:?}");
        }
    }
}
