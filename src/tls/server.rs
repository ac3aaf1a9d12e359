//! The server's side: which certificate a client sees, and what it must show.

use std::sync::Arc;

use rustls::server::{ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};

use super::offers::provider_of;
use super::revoking::Revoking;
use super::sessions::InForce;
use super::{ServedNames, TicketKeys, provider};
use crate::config::model::tls::{AlpnProtocol, ClientAuth, ExpiredList, ListenerTls, Revoked, TlsVersion};

/// Sessions of TLS 1.2 kept per listener, for clients that take no tickets.
const SESSIONS: usize = 1024;

/// Bytes of authorities' names that a client is told of, to help it choose a certificate. A longer list fits no handshake
/// message (64 KiB), and saying none of them is allowed (RFC 8446 §4.2.4, RFC 5246 §7.4.4).
const HINTS: usize = 16 * 1024;

const BOTH: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];
const NEW: &[&SupportedProtocolVersion] = &[&version::TLS13];

/// The config of a listener whose clients see the certificates of `names` and may choose one of `protocols`, of which ours is the
/// first that they offer; where there is none, what is spoken inside is not ours to say. Sessions are resumed by tickets of `keys`; there
/// is no 0-RTT.
#[must_use]
pub fn server_config(
    tls: &ListenerTls,
    names: &ServedNames,
    protocols: &[AlpnProtocol],
    keys: Arc<TicketKeys>,
) -> Arc<ServerConfig> {
    server_config_by(tls, names, protocols, keys, Arc::new(DefaultTimeProvider))
}

/// The same by another clock.
pub(super) fn server_config_by(
    tls: &ListenerTls,
    names: &ServedNames,
    protocols: &[AlpnProtocol],
    keys: Arc<TicketKeys>,
    clock: Arc<dyn TimeProvider>,
) -> Arc<ServerConfig> {
    let versions = match tls.oldest {
        TlsVersion::V12 => BOTH,
        TlsVersion::V13 => NEW,
    };
    let builder = ServerConfig::builder_with_details(provider_of(tls), Arc::clone(&clock))
        .with_protocol_versions(versions)
        .expect("config refuses suites of none of these versions");
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
            let verifier = verifier.build().expect("config refuses a file without authorities");
            builder.with_client_cert_verifier(match &clients.revoked {
                None => verifier,
                Some(revoked) => Arc::new(Revoking::new(verifier, revoked)),
            })
        }
    };
    let mut config = builder.with_cert_resolver(names.resolver());
    config.alpn_protocols = offered(protocols);
    // For clients of TLS 1.2 that take no tickets, curl among them.
    let sessions = ServerSessionMemoryCache::new(SESSIONS);
    if let Some(clients) = &tls.clients {
        let lists = clients.revoked.as_ref().filter(|revoked| revoked.expired == ExpiredList::Refuse);
        let until = lists.and_then(Revoked::next_update).map(|next| u64::try_from(next).unwrap_or(0));
        config.session_storage = Arc::new(InForce { sessions, clock: Arc::clone(&clock), until });
        config.ticketer = Arc::new(InForce { sessions: keys, clock, until });
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

/// The names of `protocols` in a handshake (RFC 7301 §6).
fn offered(protocols: &[AlpnProtocol]) -> Vec<Vec<u8>> {
    let names = protocols.iter().flat_map(|protocol| match protocol {
        AlpnProtocol::H2 => &["h2"][..],
        // A client that offers only HTTP/1.0, as `curl -0` does, would be refused if we did not offer it too.
        AlpnProtocol::Http1 => &["http/1.1", "http/1.0"],
    });
    names.map(|name| name.as_bytes().to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_offered_what_a_listener_says_in_its_order_and_http_1_0_behind_http_1_1() {
        use AlpnProtocol::{H2, Http1};
        let told = |protocols: &[AlpnProtocol]| {
            let names = offered(protocols);
            names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told(&AlpnProtocol::usual(true)), "h2 http/1.1 http/1.0");
        assert_eq!(told(&AlpnProtocol::usual(false)), "http/1.1 http/1.0");
        assert_eq!(told(&[Http1, H2]), "http/1.1 http/1.0 h2");
        assert_eq!(told(&[H2]), "h2");
        assert_eq!(told(&[]), "", "what is spoken inside is not ours to say");
    }
}
