//! What every row needs: a server in front of one backend, and files.

use std::path::{Path, PathBuf};

use evenkeel::config::Flags;
use evenkeel::config::model::Config;
use evenkeel::reload::bound::Bound;
use fake_backend::{Authority, Behaviour, Fake, Running};
use tempfile::TempDir;

use crate::support::Keel;

/// How the client reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
    /// HTTP/2 over TLS.
    Http2,
}

impl Scheme {
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Http2 => "http2",
        }
    }

    /// As URLs say it, and `X-Forwarded-Proto`.
    pub fn in_urls(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https | Self::Http2 => "https",
        }
    }
}

/// One server, one backend called `fake-1` that records and can be controlled, and a folder.
pub struct Scene {
    pub scheme: Scheme,
    pub keel: Keel,
    pub backend: Running,
    folder: TempDir,
}

/// Two listeners with TLS: `web`, and `members`, which wants a certificate of its clients. What these rows hold clients to is HTTP/1.1, and
/// they would choose HTTP/2.
const WITH_TLS: &str = "
workers: 2
targets:
  web:
    protocol: https
    listener: 127.0.0.1:0
    health_check: off
    http2: off
    tls:
      cert_file: local.pem
      cert_key: local.key
      certificates: [{cert_file: shop.pem, cert_key: shop.key}]
    backends: [{host: 127.0.0.1, port: PORT}]
  members:
    protocol: https
    listener: 127.0.0.1:0
    health_check: off
    http2: off
    tls: {cert_file: local.pem, cert_key: local.key, client_ca: ca.pem}
    backends: [{host: 127.0.0.1, port: PORT}]
";

/// The same with HTTP/2, as it is if nothing is said, and with answers that the backend does not give: a redirect, one that is packed, and
/// one with several cookies.
const WITH_HTTP2: &str = "
workers: 2
listeners:
  web:
    bind: 127.0.0.1:0
    protocol: https
    tls:
      cert_file: local.pem
      cert_key: local.key
      certificates: [{cert_file: shop.pem, cert_key: shop.key}]
    routes:
      - match: {path: /moved}
        redirect: {to: /bytes/5, status: 302}
      - match: {path: /moved-for-good}
        redirect: {to: /echo}
      - match: {path_prefix: /packed}
        rewrite: {strip_prefix: /packed}
        target: all
        compress: on
      - match: {path: /cookies}
        target: all
        headers: {response: {add: {Set-Cookie: [a=1, b=2]}}}
      - target: all
  members:
    bind: 127.0.0.1:0
    protocol: https
    tls: {cert_file: local.pem, cert_key: local.key, client_ca: ca.pem}
    routes: [{target: all}]
targets:
  all:
    health_check: off
    backends: [{host: 127.0.0.1, port: PORT}]
";

impl Scene {
    pub fn new(scheme: Scheme) -> Scene {
        let backend = Fake::http("fake-1").record().control().start_in_thread().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let keel = match scheme {
            Scheme::Http => Keel::http(&[&backend]),
            Scheme::Https => Keel::start(&with_tls(folder.path(), &backend, WITH_TLS)),
            Scheme::Http2 => Keel::start(&with_tls(folder.path(), &backend, WITH_HTTP2)),
        };
        Scene { scheme, keel, backend, folder }
    }

    pub fn port(&self) -> u16 {
        self.port_of("web")
    }

    /// The port of this target's listener.
    pub fn port_of(&self, name: &str) -> u16 {
        let found = self.keel.server.bound().iter().find_map(|(listener, bound)| match bound {
            Bound::Tcp(address) if listener == name => Some(address.port()),
            Bound::Tcp(_) | Bound::Udp(_) | Bound::Unix(_) => None,
        });
        found.unwrap()
    }

    /// The URL of a path, by a name that is in the certificate.
    pub fn url(&self, path: &str) -> String {
        format!("{}://localhost:{}{path}", self.scheme.in_urls(), self.port())
    }

    /// The certificate to trust.
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// A file with these bytes.
    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Between two rows: the backend behaves again, and its record is empty.
    pub fn reset(&self) {
        self.backend.behave(Behaviour::default());
        drop(self.backend.take_requests());
    }
}

/// Writes certificates and the config that uses them, with the backend's port where it says `PORT`.
fn with_tls(folder: &Path, backend: &Running, config: &str) -> Config {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let authority = Authority::new("the tests' authority");
    write("ca.pem", authority.ca_pem());
    for (name, issued) in [
        ("local", authority.issue(["localhost", "127.0.0.1"])),
        ("shop", authority.intermediate("the shops' authority").issue(["*.shop.test"])),
        ("alice", authority.issue_client("alice")),
        ("mallory", Authority::new("another authority").issue_client("mallory")),
    ] {
        write(&format!("{name}.pem"), &issued.cert_pem);
        write(&format!("{name}.key"), &issued.key_pem);
    }
    write("evenkeel.yaml", &config.replace("PORT", &backend.port().to_string()));
    evenkeel::config::load(Some(&folder.join("evenkeel.yaml")), &Flags::default(), &|_| None).unwrap().config
}
