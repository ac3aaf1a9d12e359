//! A TLS server for tests: it answers every head with twelve bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::message::Head;

/// Serves in a thread of this process, which ends with the tests. Its certificate is written to `cert.pem` in `folder`; it asks
/// for none.
pub(crate) fn serve(folder: &Path) -> SocketAddr {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(session, socket.unwrap());
            std::thread::spawn(move || answer_all(&mut stream));
        }
    });
    address
}

/// Answers until the client closes, or wants it closed.
fn answer_all(stream: &mut (impl Read + Write)) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        while Head::read(&bytes).is_none() {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            bytes.extend_from_slice(&buffer[..count]);
        }
        let close = Head::read(&bytes).unwrap().close;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello, world")?;
        if close {
            return Ok(());
        }
        bytes.clear();
    }
}
