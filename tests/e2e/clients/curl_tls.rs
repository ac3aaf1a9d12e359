//! The rows of curl that only TLS has.

use super::curl::Row;

pub const ROWS: &[Row] = &[
    ("tls-1.2", |scene| {
        let got = scene.fetch(&["--tlsv1.2", "--tls-max", "1.2"], "/");
        assert!(got.trace.contains("TLSv1.2 / "), "{}", got.trace);
        assert_eq!(got.text(), "Hello from fake-1");
    }),
    ("tls-1.3", |scene| {
        let got = scene.fetch(&["--tlsv1.3"], "/");
        assert!(got.trace.contains("TLSv1.3 / "), "{}", got.trace);
        assert_eq!(got.text(), "Hello from fake-1");
    }),
    ("tls-ciphers-and-curves", |scene| {
        for suite in ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"] {
            let got = scene.fetch(&["--tls-max", "1.2", "--ciphers", suite], "/");
            assert!(got.trace.contains(&format!("TLSv1.2 / {suite}")), "{}", got.trace);
        }
        for curve in ["X25519", "P-256", "P-384"] {
            assert_eq!(scene.fetch(&["--curves", curve], "/").status(), 200, "{curve}");
        }
    }),
    ("sessions-are-resumed", |scene| {
        let url = scene.url("/[1-5]");
        // Under TLS 1.2 curl wants no tickets (SSL_OP_NO_TICKET): it resumes by the session's id.
        for version in [&["--tls-max", "1.2"][..], &["--tlsv1.3"]] {
            let got = scene.curl(&[version, &["-H", "Connection: close", &url]].concat());
            assert_eq!((got.exit, got.connections()), (Some(0), 5), "{}", got.trace);
            // Later versions write it without the hyphen.
            let reused = got.trace.replace("re-using", "reusing").matches("SSL reusing session").count();
            assert_eq!(reused, 4, "{}", got.trace);
        }
    }),
    ("an-unknown-issuer", |scene| {
        let other = fake_backend::Authority::new("other");
        let other = scene.file("other.pem", other.ca_pem().as_bytes());
        let got = scene.curl(&["--cacert", &other, &scene.url("/")]);
        assert_eq!((got.exit, got.status()), (Some(60), 0), "{}", got.trace);
    }),
    ("a-wrong-name", |scene| {
        let port = scene.port();
        let resolve = format!("elsewhere.test:{port}:127.0.0.1");
        let got = scene.curl(&["--resolve", &resolve, &format!("https://elsewhere.test:{port}/")]);
        assert_eq!((got.exit, got.status()), (Some(60), 0), "{}", got.trace);
    }),
    ("the-name-chooses-the-certificate", |scene| {
        let port = scene.port();
        for (name, subject) in [("a.shop.test", "*.shop.test"), ("localhost", "localhost")] {
            let resolve = format!("{name}:{port}:127.0.0.1");
            let got = scene.curl(&["--resolve", &resolve, &format!("https://{name}:{port}/")]);
            assert_eq!((got.exit, got.status()), (Some(0), 200), "{}", got.trace);
            assert!(got.trace.contains(&format!("subject: CN={subject}\n")), "{}", got.trace);
        }
    }),
    ("certificates-of-clients", |scene| {
        let url = format!("https://localhost:{}/", scene.port_of("members"));
        let file = |name: &str| scene.folder().join(name).to_str().unwrap().to_owned();
        let (certificate, key) = (file("alice.pem"), file("alice.key"));
        let forged = "X-Forwarded-Client-Cert: forged";
        let got = scene.curl(&["--cert", &certificate, "--key", &key, "-H", forged, &url]);
        assert_eq!((got.exit, got.status()), (Some(0), 200), "{}", got.trace);
        let received = scene.received();
        assert!(received.contains("CN=alice") && !received.contains("forged"), "{received}");
        assert!(received.contains("\r\nClient-Cert: :"), "{received}");

        let (certificate, key) = (file("mallory.pem"), file("mallory.key"));
        for own in [&["--cert", &certificate, "--key", &key][..], &[]] {
            for most in ["1.2", "1.3"] {
                let got = scene.curl(&[own, &["--tls-max", most, &url]].concat());
                // 35 and 98: the handshake failed; 56: TLS 1.3 tells a client only when it reads.
                assert!(matches!(got.exit, Some(35 | 56 | 98)), "{own:?} {:?} {}", got.exit, got.trace);
            }
        }
        assert_eq!(scene.backend.last_requests().len(), 1);
    }),
    ("clear-http-on-the-tls-port", |scene| {
        let got = scene.curl(&[&scene.url("/").replace("https:", "http:")]);
        assert_eq!((got.exit, got.status()), (Some(0), 400), "{}", got.trace);
        assert!(got.text().contains("TLS") || got.text().contains("HTTPS"), "{}", got.text());
    }),
];
