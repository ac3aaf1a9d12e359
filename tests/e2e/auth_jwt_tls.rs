//! Keys of tokens that are behind an https URL: whom we believe that they are the issuer's.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use fake_backend::{Authority, Issued};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::auth_jwt::{KEYS, bearer, rule};
use super::auth_lab::{Door, cause};
use super::support::{PATIENCE, events, eventually};

const ALL: &str = "    auth: tokens\n    routes: [{target: web}]\n";

/// An issuer that shows this certificate, and its keys to whoever believes it.
fn issuer(issued: &Issued) -> SocketAddr {
    let chain = CertificateDer::pem_slice_iter(issued.cert_pem.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for tcp in listener.incoming().map_while(Result::ok) {
            tcp.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), tcp);
            let (mut head, mut byte) = (Vec::new(), [0]);
            // Whoever does not believe it says nothing.
            while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                head.push(byte[0]);
            }
            if head.starts_with(b"GET /keys HTTP/1.1\r\nhost: ") {
                let length = KEYS.len();
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{KEYS}");
                let _ = stream.write_all(answer.as_bytes());
            }
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    address
}

/// A listener whose keys are at `https://HOST:PORT/keys`, where whoever has a certificate of `trusted` is believed.
fn door(host: &str, at: SocketAddr, trusted: &Authority) -> Door {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, trusted.ca_pem()).unwrap();
    let (port, file) = (at.port(), file.display());
    Door::new(&rule(&format!("jwks_url: 'https://{host}:{port}/keys', ca_file: {file}")), ALL, None)
}

#[test]
fn keys_come_over_tls_from_whom_the_file_of_authorities_vouches_for() {
    events::listen();
    let authority = Authority::new("the issuer's authority");
    for host in ["localhost", "127.0.0.1"] {
        let at = issuer(&authority.issue([host]));
        let door = door(host, at, &authority);
        eventually("the keys are there", || door.get("/", &bearer("good")).status == 200);
        let told = format!(
            "the keys of auth rule tokens were fetched from https://{host}:{}/…: 3 of use",
            at.port()
        );
        eventually("it is told", || events::with(&told).len() == 1);
    }
}

#[test]
fn nobody_is_let_in_by_keys_of_whom_the_file_of_authorities_does_not_vouch_for_and_the_log_says_why() {
    events::listen();
    let authority = Authority::new("the issuer's authority");
    let named = authority.issue(["localhost"]);
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let own = Issued { cert_pem: own.cert.pem(), key_pem: own.signing_key.serialize_pem() };
    let expired = authority.leaf(["localhost"]).expired().issue();
    // Of the same name: what counts is the key.
    let other = Authority::new("the issuer's authority");
    for (issued, trusted, why) in [
        (&named, &other, "its certificate is wrong: "),
        (&named, &Authority::new("another"), "its certificate was issued by nobody whom we trust"),
        (&authority.issue(["id.example"]), &authority, "its certificate is valid for id.example, "),
        (&own, &authority, "its certificate is self-signed"),
        (&expired, &authority, "its certificate expired on "),
    ] {
        let at = issuer(issued);
        let door = door("localhost", at, trusted);
        let (from, why) = (format!("https://localhost:{}/…", at.port()), format!("reason=\"TLS: {why}"));
        eventually(&why, || events::with(&from).iter().any(|line| line.contains(&why)));
        let [told] = &events::with(&from)[..] else { panic!("once: {from}") };
        assert!(told.contains("WARN") && told.contains("kind=\"keys_not_fetched\""), "{told}");
        let refused = door.get("/", &bearer("good"));
        assert_eq!((refused.status, cause(&refused)), (401, "token_keys"), "{told}");
    }
}
