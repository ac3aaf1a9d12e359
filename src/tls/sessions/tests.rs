use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, date_time_ymd,
};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, HandshakeKind, RootCertStore, ServerConfig,
    ServerConnection, SupportedProtocolVersion, version,
};

use super::super::ServedNames;
use super::super::server::server_config_by;
use super::*;
use crate::config::model::tls::{Authorities, ClientAuth, ClientCertificates, Identity, ListenerTls};

/// A clock that a test sets, in seconds since 1970.
#[derive(Debug)]
struct Clock(AtomicU64);

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0.load(Ordering::Relaxed))))
    }
}

/// Noon on 1 June of a year from 2000 on, near enough.
fn june(year: u64) -> u64 {
    946_684_800 + (year - 2000) * 31_557_600 + 13_000_000
}

/// An authority, a server, and a client whose certificate ends with 2030.
struct Lab {
    authority: CertificateDer<'static>,
    server: Arc<ServerConfig>,
    clock: Arc<Clock>,
    client: (CertificateDer<'static>, KeyPair),
}

impl Lab {
    fn new() -> Lab {
        Lab::trusting(Vec::new())
    }

    /// The same with `others` who may issue certificates of clients, too.
    fn trusting(mut others: Vec<CertificateDer<'static>>) -> Lab {
        let key = KeyPair::generate().expect("randomness");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2099, 1, 1);
        let authority = params.self_signed(&key).expect("signed").der().clone();
        let issuer = Issuer::new(params, key);
        let issue = |names: &[&str], usage, end: i32| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let mut params = CertificateParams::new(names).expect("names");
            params.extended_key_usages = vec![usage];
            params.not_before = date_time_ymd(2000, 1, 1);
            params.not_after = date_time_ymd(end, 1, 1);
            let key = KeyPair::generate().expect("randomness");
            (params.signed_by(&key, &issuer).expect("signed").der().clone(), key)
        };
        let (leaf, key) = issue(&["localhost"], ExtendedKeyUsagePurpose::ServerAuth, 2099);
        let client = issue(&[], ExtendedKeyUsagePurpose::ClientAuth, 2031);
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let certified = Arc::new(CertifiedKey::new(vec![leaf], any_supported_type(&key).expect("P-256")));
        let identity = Identity {
            file: "a.pem".into(),
            certified,
            names: Vec::new(),
            begins: 0,
            expires: 0,
            facts: Default::default(),
            staple: None,
        };
        others.push(authority.clone());
        let authorities = Authorities { file: "ca.pem".into(), certificates: others.into() };
        let tls = ListenerTls {
            clients: Some(ClientCertificates { authorities, auth: ClientAuth::Required, revoked: None }),
            ..ListenerTls::showing(vec![Arc::new(identity)])
        };
        let clock = Arc::new(Clock(AtomicU64::new(june(2030))));
        let by = Arc::clone(&clock) as Arc<dyn TimeProvider>;
        let server = server_config_by(&tls, &ServedNames::new(&tls.identities), &[], Arc::default(), by);
        Lab { authority, server, clock, client }
    }

    /// A client that shows its certificate and `more` behind it, and remembers sessions.
    fn client(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        more: Option<CertificateDer<'static>>,
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone()).expect("an authority");
        let chain = [self.client.0.clone()].into_iter().chain(more).collect();
        let key = PrivateKeyDer::try_from(self.client.1.serialize_der()).expect("a key");
        ClientConfig::builder_with_details(
            Arc::new(default_provider()),
            Arc::clone(&self.clock) as Arc<dyn TimeProvider>,
        )
        .with_protocol_versions(versions)
        .expect("versions")
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .expect("an identity")
    }

    /// Both ends in memory: what the server says of the handshake.
    fn shake(&self, client: &Arc<ClientConfig>) -> Result<HandshakeKind, rustls::Error> {
        let name = ServerName::try_from("localhost").expect("a name");
        let mut client = ClientConnection::new(Arc::clone(client), name).expect("a client");
        let mut server = ServerConnection::new(Arc::clone(&self.server)).expect("a server");
        while client.wants_write() || server.wants_write() {
            let (mut up, mut down) = (Vec::new(), Vec::new());
            while client.wants_write() {
                client.write_tls(&mut up).expect("memory");
            }
            let mut up = &up[..];
            while !up.is_empty() {
                server.read_tls(&mut up).expect("memory");
                server.process_new_packets()?;
            }
            while server.wants_write() {
                server.write_tls(&mut down).expect("memory");
            }
            let mut down = &down[..];
            while !down.is_empty() {
                client.read_tls(&mut down).expect("memory");
                client.process_new_packets()?;
            }
        }
        Ok(server.handshake_kind().expect("complete"))
    }
}

const VERSIONS: [&[&SupportedProtocolVersion]; 2] = [&[&version::TLS12], &[&version::TLS13]];

#[test]
fn a_client_certificate_that_has_run_out_is_not_resumed_on() {
    for versions in VERSIONS {
        let lab = Lab::new();
        let client = Arc::new(lab.client(versions, None));
        assert_ne!(lab.shake(&client), Ok(HandshakeKind::Resumed));
        assert_eq!(lab.shake(&client), Ok(HandshakeKind::Resumed), "{versions:?}");
        lab.clock.0.store(june(2031), Ordering::Relaxed);
        let refused = lab.shake(&client).expect_err("it has run out");
        assert!(
            matches!(
                refused,
                rustls::Error::InvalidCertificate(
                    CertificateError::Expired | CertificateError::ExpiredContext { .. }
                )
            ),
            "{versions:?}: {refused}"
        );
    }
}

#[test]
fn a_chain_that_no_ticket_can_hold_is_taken_and_not_resumed() {
    // Behind its certificate a client may send whatever it likes.
    for length in [20_000, 60_000] {
        for versions in VERSIONS {
            let lab = Lab::new();
            let filler = CertificateDer::from(vec![0x30; length]);
            let client = Arc::new(lab.client(versions, Some(filler)));
            for _ in 0..2 {
                let kind = lab.shake(&client).unwrap_or_else(|error| panic!("{length}: {error}"));
                assert_ne!(kind, HandshakeKind::Resumed, "{length}, {versions:?}");
            }
        }
    }
}

#[test]
fn authorities_whose_names_fit_no_message_are_trusted_and_not_told() {
    let key = KeyPair::generate().expect("randomness");
    let authority = |nth: u32| {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::OrganizationName, format!("{nth:01000}"));
        params.self_signed(&key).expect("signed").der().clone()
    };
    for versions in VERSIONS {
        let lab = Lab::trusting((0..70).map(authority).collect());
        let client = Arc::new(lab.client(versions, None));
        let kind = lab.shake(&client).unwrap_or_else(|error| panic!("{versions:?}: {error}"));
        assert_ne!(kind, HandshakeKind::Resumed);
    }
}

#[test]
fn sessions_that_are_kept_in_memory_obey_the_same_rules() {
    let lab = Lab::new();
    let store = &lab.server.session_storage;
    assert!(!store.put(vec![1], vec![0; LARGEST + 1]) && store.get(&[1]).is_none());
    // No name, version and suite, no secret, no flag, and a chain with one certificate.
    let mut session = vec![0, 3, 3, 0, 0, 0, 0, 1];
    let leaf = lab.client.0.as_ref();
    for length in [leaf.len() + 3, leaf.len()] {
        session.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
    }
    session.extend_from_slice(leaf);
    assert!(store.put(vec![2], session.clone()));
    assert_eq!(store.get(&[2]), Some(session));
    lab.clock.0.store(june(2031), Ordering::Relaxed);
    assert_eq!(store.get(&[2]), None);
    assert_eq!(store.take(&[2]), None);
}

proptest! {
    #[test]
    fn no_bytes_that_are_taken_for_a_session_do_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Some(Shown::Certificate(leaf)) = shown(&bytes) {
            prop_assert!(leaf.len() < bytes.len());
        }
    }
}
