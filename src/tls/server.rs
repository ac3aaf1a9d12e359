//! The server's side: which certificate a client sees, and what it must show.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};

use super::sessions::InForce;
use super::{TicketKeys, provider};
use crate::config::model::Protocol;
use crate::config::model::tls::{ClientAuth, Identity, ListenerTls, TlsVersion};

/// Sessions of TLS 1.2 kept per listener, for clients that take no tickets.
const SESSIONS: usize = 1024;

/// Bytes of authorities' names that a client is told of, to help it choose a certificate. A longer list fits no handshake
/// message (64 KiB), and saying none of them is allowed (RFC 8446 §4.2.4, RFC 5246 §7.4.4).
const HINTS: usize = 16 * 1024;

const BOTH: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];
const NEW: &[&SupportedProtocolVersion] = &[&version::TLS13];

/// The config of a listener that speaks `protocol`. Sessions are resumed by tickets of `keys`; there is no 0-RTT.
#[must_use]
pub fn server_config(tls: &ListenerTls, protocol: Protocol, keys: Arc<TicketKeys>) -> Arc<ServerConfig> {
    server_config_by(tls, protocol, keys, Arc::new(DefaultTimeProvider))
}

/// The same by another clock.
pub(super) fn server_config_by(
    tls: &ListenerTls,
    protocol: Protocol,
    keys: Arc<TicketKeys>,
    clock: Arc<dyn TimeProvider>,
) -> Arc<ServerConfig> {
    let versions = match tls.oldest {
        TlsVersion::V12 => BOTH,
        TlsVersion::V13 => NEW,
    };
    let builder = ServerConfig::builder_with_details(provider(), Arc::clone(&clock))
        .with_protocol_versions(versions)
        .expect("the provider has suites for both versions");
    let builder = match &tls.clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(clients.authorities.certificates.iter().cloned());
            let named: usize = roots.subjects().iter().map(|name| name.as_ref().len()).sum();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
            let verifier = if named > HINTS { verifier.clear_root_hint_subjects() } else { verifier };
            let verifier = match clients.auth {
                ClientAuth::Required => verifier,
                ClientAuth::Optional => verifier.allow_unauthenticated(),
            };
            builder.with_client_cert_verifier(
                verifier.build().expect("config refuses a file without authorities"),
            )
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(Chooser::new(&tls.identities)));
    config.alpn_protocols = match protocol {
        // A client that offers only HTTP/1.0, as `curl -0` does, would be refused if we did not offer it too.
        Protocol::Http => vec![b"http/1.1".to_vec(), b"http/1.0".to_vec()],
        // What is spoken inside is not ours to say.
        Protocol::Tcp => Vec::new(),
    };
    // For clients of TLS 1.2 that take no tickets, curl among them.
    let sessions = ServerSessionMemoryCache::new(SESSIONS);
    if tls.clients.is_some() {
        config.session_storage = Arc::new(InForce { sessions, clock: Arc::clone(&clock) });
        config.ticketer = Arc::new(InForce { sessions: keys, clock });
    } else {
        config.session_storage = sessions;
        config.ticketer = keys;
    }
    Arc::new(config)
}

/// Whether a handshake failed for the client's certificate: there was none, or it did not convince.
#[must_use]
pub fn is_certificate_fault(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::NoCertificatesPresented | rustls::Error::InvalidCertificate(_))
}

/// Chooses a certificate by the name that the client asks for (SNI, RFC 6066 §3).
#[derive(Debug)]
struct Chooser {
    /// By name.
    exact: HashMap<String, Vec<Arc<CertifiedKey>>>,
    /// By name without its star: `.example.com`.
    wildcard: HashMap<String, Vec<Arc<CertifiedKey>>>,
    /// For everybody else: the first, and those with the same names (another kind of key).
    default: Vec<Arc<CertifiedKey>>,
}

impl Chooser {
    fn new(identities: &[Arc<Identity>]) -> Chooser {
        let mut chooser = Chooser { exact: HashMap::new(), wildcard: HashMap::new(), default: Vec::new() };
        for identity in identities {
            for name in &identity.names {
                let (map, name) = match name.strip_prefix('*') {
                    Some(rest) => (&mut chooser.wildcard, rest),
                    None => (&mut chooser.exact, name.as_str()),
                };
                map.entry(name.to_owned()).or_default().push(Arc::clone(&identity.certified));
            }
            if identities.first().is_some_and(|first| first.names == identity.names) {
                chooser.default.push(Arc::clone(&identity.certified));
            }
        }
        chooser
    }

    fn candidates(&self, name: Option<&str>) -> &[Arc<CertifiedKey>] {
        let Some(name) = name else { return &self.default };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        // A star stands for one label, the leftmost (RFC 9525 §6.3).
        let parent = || self.wildcard.get(&name[name.find('.')?..]);
        self.exact.get(&name).or_else(parent).unwrap_or(&self.default)
    }
}

impl ResolvesServerCert for Chooser {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let candidates = self.candidates(hello.server_name());
        let usable = |one: &&Arc<CertifiedKey>| one.key.choose_scheme(hello.signature_schemes()).is_some();
        candidates.iter().find(usable).or(candidates.first()).map(Arc::clone)
    }
}

#[cfg(test)]
mod tests;
